"""Loops over replications, steps and messages that numba compiles.

A process of a sweep or a plan uses them where loading them, or compiling them, takes less time than what is left to simulate
(sim.sweeps.work). They say what arrays say, to 1e-9 s and better (tests/unit/test_compiled.py).
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar, cast

Function = TypeVar("Function", bound=Callable)
_in_use = ContextVar("in_use", default=False)  # of each thread


def in_use() -> bool:
    """Whether this thread uses them."""
    return _in_use.get()


def use(wanted: bool = True) -> bool:
    """Use them from now on, if numba compiles here, or no more; whether they are used."""
    _in_use.set(wanted and can_compile())
    return in_use()


def can_compile() -> bool:
    """Whether numba fits the other libraries, and is not told to leave functions as they are (NUMBA_DISABLE_JIT)."""
    try:
        from numba import config
    except ImportError:  # where it is of another version than NumPy needs
        return False
    return not getattr(config, "DISABLE_JIT", False)


def loop(function: Function) -> Function:
    """The compiled function, kept on disk for the next process where there is room."""
    import numba

    from sim.vector.compiled import kept

    with kept.in_folder() as is_kept:
        return cast("Function", numba.njit(cache=is_kept, error_model="numpy")(function))
