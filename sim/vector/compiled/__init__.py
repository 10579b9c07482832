"""Loops over replications, steps and messages that numba compiles, where it is installed (extra `fast`).

A process uses them from the moment on when it has simulated for some seconds, as those of a sweep or a plan: before, loading numba would
take longer than they save. They say what arrays say, to 1e-9 s and better (tests/unit/test_compiled.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable)
_state = {"in use": False}


def in_use() -> bool:
    """Whether this process uses them."""
    return _state["in use"]


def use(wanted: bool = True) -> bool:
    """Use them from now on, if numba is installed and fits the other libraries, or no more; whether they are used."""
    _state["in use"] = wanted and _can_compile()
    return in_use()


def _can_compile() -> bool:
    try:
        import numba  # noqa: F401
    except ImportError:  # also where it is of another version than NumPy needs
        return False
    return True


def loop(function: Function) -> Function:
    """The compiled function, kept on disk for the next process where there is room."""
    import numba

    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # no folder to keep it in
        return numba.njit(error_model="numpy")(function)
