"""The allowed keys of a file's table, for complaints about another key."""

from __future__ import annotations

import typing
from collections.abc import Iterator

from pydantic import BaseModel

from sim.base.nearest import nearest


def allowed_keys(model: type[BaseModel], where: tuple[str | int, ...]) -> str:
    """The allowed keys beside an unknown one, and the nearest of them.

    Args:
        model: of the whole file.
        where: the path to the unknown key, as pydantic gives it; list indices and keys that users choose are in it.
    """
    models = [model]
    for part in where[:-1]:
        fields = [field for one in models for name, field in one.model_fields.items() if part in (name, field.alias)]
        inner = [found for field in fields for found in _models(field.annotation)]
        named = [one for one in models if one.__name__ == part]  # of a union, the member that was tried
        models = inner or named or models
    keys = {field.alias or name: None for one in models for name, field in one.model_fields.items()}
    return f"the keys {', '.join(keys)}{nearest(where[-1], keys)}"


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """The models that an annotation names, in lists, unions and tables too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _models(argument)
