"""Functions that a user's text may call, and attributes that it may read, whose values Python may say before the run."""

from __future__ import annotations

import inspect
import os
from types import FunctionType, ModuleType
from typing import Any

from sim.base.home import installed
from sim.base.own import SOURCES
from sim.engine.lowering.values import Value

PLAIN = int | float | str | tuple | range | slice | bool
PURE = {abs, bool, float, int, len, max, min, range, round, slice, str, sum, tuple}  # of what is known before the run
MODULES = {"math", "operator"}
# Whose functions a user's text may call, and whose methods.
OF_TEXTS = (
    installed("sim.verbs.servers"),
    installed("sim.verbs.collectives"),
    installed("sim.verbs.asynchronous"),
    installed("sim.protocols."),
    installed("sim.collectives."),
)
OF_JOBS = tuple(map(installed, ("sim.job.", "sim.model.", "sim.platform.", "sim.verbs.me", "sim.collectives.")))
FIXED = FunctionType | classmethod | staticmethod  # found in a class, and bound to what they are asked of
OF_PYTHON = ("builtins", "collections", "_collections")  # modules of Python's own descriptors


def is_generator(callee: Value) -> bool:
    """Whether a call makes a text, which does nothing without `yield from`."""
    return callee.kind == "const" and inspect.isgeneratorfunction(inspect.unwrap(callee.at))


def is_verb(function: Any) -> bool:
    """Whether it is one of ours over `me`."""
    return (getattr(function, "__module__", None) or "").startswith(installed("sim.verbs."))


def is_of_jobs(function: Any) -> bool:
    """Whether it makes, or tells, something of a job from what is known."""
    return (getattr(function, "__module__", None) or "").startswith(OF_JOBS)


def is_known(function: Any) -> bool:
    """Whether a user's text may call it: a function of ours or of its own module, or one that gives the same each time."""
    module = getattr(function, "__module__", None) or ""
    if inspect.isbuiltin(function) or isinstance(function, type):
        owner = getattr(function, "__self__", None)
        fixed = function in PURE or module in MODULES or module.startswith(OF_JOBS)
        return fixed or isinstance(owner, PLAIN)
    if inspect.ismethod(function) and module.startswith(OF_JOBS):
        return True
    return module.startswith(OF_TEXTS) or os.path.abspath(inspect.getsourcefile(function) or "") in SOURCES


def is_plain_attribute(of: Any, name: str) -> bool:
    """Whether an attribute is a value, or a method; not something that a user's class computes."""
    if isinstance(of, ModuleType | super) or _is_ours(type(of)):
        return True
    found = inspect.getattr_static(of, name)
    if isinstance(found, property):
        return _is_ours(found.fget)
    own = type(of) if not isinstance(of, type) else type
    makes = hasattr(own, "__getattr__") or own.__getattribute__ not in (object.__getattribute__, type.__getattribute__)
    fixed = isinstance(found, FIXED) or not hasattr(type(found), "__get__") or type(found).__module__ in OF_PYTHON
    return not makes and fixed


def _is_ours(of: Any) -> bool:
    return (getattr(of, "__module__", None) or "").startswith(installed("sim."))
