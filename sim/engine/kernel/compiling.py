"""How functions of the kernel are compiled: by numba, without reference counts, and kept on disk.

Counting references to arrays with every call took 70 % of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sim.engine import kept

Function = TypeVar("Function", bound=Callable)
IS_COMPILED = kept.can_compile()  # or else it is plain Python, which is much slower than the event world


def compiled(function: Function, **options: Any) -> Function:
    """A function of the kernel."""
    if not IS_COMPILED:
        return function
    import numba

    njit: Any = numba.njit  # which declares no types of what it takes besides
    with kept.in_folder() as is_kept:
        return cast("Function", njit(cache=is_kept, error_model="numpy", _nrt=False, **options)(function))


def in_place(function: Function) -> Function:
    """The same, put in place of its calls: what is called most, at few places."""
    return compiled(function, forceinline=True)


def outermost(function: Function) -> Function:
    """The function that Python calls; other threads may run meanwhile."""
    return compiled(function, nogil=True)
