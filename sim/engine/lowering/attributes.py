"""Attributes of what is known before the run: whether Python's answer is the same whenever it is asked for."""

from __future__ import annotations

import inspect
from types import FunctionType, ModuleType
from typing import Any

from sim.base.home import installed

FIXED = FunctionType | classmethod | staticmethod  # found in a class, and bound to what they are asked of

OF_PYTHON = ("builtins", "collections", "_collections")  # modules of Python's own descriptors


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
