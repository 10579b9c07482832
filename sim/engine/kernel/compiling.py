"""How functions of the kernel are compiled: by numba, into one library that is kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sim.engine import kept

Function = TypeVar("Function", bound=Callable)
IS_COMPILED = kept.can_compile()  # or else it is plain Python, which is much slower than the event world


def compiled(function: Function) -> Function:
    """A function of the kernel, which other functions of it call."""
    return _made(function, forceinline=False)  # said, because numba hands `forceinline` on to all that a function calls


def in_place(function: Function) -> Function:
    """The same, put in place of its calls: what is called most, at few places."""
    return _made(function, forceinline=True)


def outermost(function: Function) -> Function:
    """The function that Python calls; other threads may run meanwhile. It alone is kept on disk, with all that it calls."""
    if not IS_COMPILED:
        return function
    from sim.engine.kernel.libraries import CompilerOfAll

    with kept.in_folder() as is_kept:
        return _made(function, cache=is_kept, nogil=True, no_cpython_wrapper=False, pipeline_class=CompilerOfAll)


def _made(function: Function, **options: Any) -> Function:
    if not IS_COMPILED:
        return function
    import numba

    from sim.engine.kernel.libraries import CompilerOfParts

    options = {"no_cpython_wrapper": True, "pipeline_class": CompilerOfParts} | options
    njit: Any = numba.njit  # which declares no types of what it takes besides
    made = njit(error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    made.get_call_template = _without_literals(made.get_call_template)
    return cast("Function", made)


def _without_literals(template: Callable) -> Callable:
    """Find a function for any integers, where numba would make another one for each number that is written in a call."""
    from numba.core.types import unliteral

    return lambda args, kws: template(tuple(map(unliteral, args)), kws)
