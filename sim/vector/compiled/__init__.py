"""Loops over replications and messages that numba compiles, where it is installed (extra `fast`).

A process uses them from the moment on when it has simulated for some seconds, as those of a sweep or a plan: before, loading numba would
take longer than they save. Each does the same operations in the same order as arrays do without numba, so that no number changes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TypeVar

Function = TypeVar("Function", bound=Callable)
_state = {"in use": False}


def in_use() -> bool:
    """Whether this process uses them."""
    return _state["in use"]


def use(wanted: bool = True) -> bool:
    """Use them from now on, if numba is installed, or no more; whether they are used."""
    _state["in use"] = wanted and find_spec("numba") is not None
    return in_use()


def loop(function: Function) -> Function:
    """The compiled function, kept on disk for the next process where there is room."""
    import numba

    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # no folder to keep it in
        return numba.njit(function)
