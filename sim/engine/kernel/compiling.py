"""How functions of the kernel are compiled: by numba, without reference counts, and kept on disk.

Counting references to arrays with every call took 70 % of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable)
SOURCES = Path(__file__).parent


def _compiles() -> bool:
    try:
        from numba import config
    except ImportError:  # the kernel is plain Python then, which is much slower than the event world
        return False
    return not getattr(config, "DISABLE_JIT", False)


IS_COMPILED = _compiles()


def compiled(function: Function, **options: Any) -> Function:
    """A function of the kernel."""
    if not IS_COMPILED:
        return function
    import numba

    from sim.vector.compiled import kept

    njit: Any = numba.njit  # which declares no types of what it takes besides
    with kept.in_folder(SOURCES) as is_kept:
        return cast("Function", njit(cache=is_kept, error_model="numpy", _nrt=False, **options)(function))


def in_place(function: Function) -> Function:
    """The same, put in place of its calls: what is called most, at few places."""
    return compiled(function, forceinline=True)


def outermost(function: Function) -> Function:
    """The function that Python calls; other threads may run meanwhile."""
    return compiled(function, nogil=True)
