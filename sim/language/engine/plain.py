"""What the kernel's files need of Cython's types and decorators, so that they run as plain Python, too.

`building.py` writes Cython's own in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable)
double = float
integer = int
nan, inf = float("nan"), float("inf")


def compiled(function: F) -> F:
    """A function of the kernel: in C it neither raises nor needs the interpreter."""
    return function
