"""What a docstring says of each argument, and what a type is called."""

from __future__ import annotations

import types
import typing
from inspect import cleandoc

CALLED = {str: "text", int: "integer", float: "number", bool: "true or false", type(None): "none"}


def described(text: str) -> dict[str, str]:
    """What the `Args:` of a docstring say of each name; several names may share a line."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in cleandoc(text).partition("Args:")[2].splitlines():
        head, colon, rest = line.strip().partition(": ")
        said = [name.strip() for name in head.split(",")]
        if line.startswith("    ") and not line.startswith("     ") and colon and all(n.isidentifier() for n in said):
            names = said
            found |= dict.fromkeys(names, rest)
        else:
            found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
    return found


def called(annotation: object) -> str:
    """A type in words."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return called(inner[0])
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in inner)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(called(one) for one in inner if one is not type(None)))
    if origin in (tuple, list):
        return f"list of {called(inner[0])}"
    if origin is dict:
        return f"table of {called(inner[1])}"
    return CALLED.get(annotation, getattr(annotation, "__name__", str(annotation)))
