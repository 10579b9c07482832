"""Classes of numbers that users write, in files and in programs: a wrong one is a WrongSetting wherever it is written."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from sim.base.errors import WrongValue, from_validation, nearest


class Checked(BaseModel):
    """A table of a file whose values cannot be changed.

    Raises:
        WrongValue: of what a program gives; naming the class and the field.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, **given: Any) -> Self:
        """A copy with other values, of which nothing is cached: pydantic's copy has what was worked out of the old ones."""
        copy = super().model_copy(**given)
        for name in copy.__dict__.keys() - type(copy).model_fields:
            del copy.__dict__[name]
        return copy

    def __init__(self, /, **given: Any):
        try:
            super().__init__(**given)
        except ValidationError as error:
            found = from_validation(type(self).__name__, error, type(self))
            raise WrongValue(found.setting, found.given, found.allowed) from error

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # files are validated as a whole, and not class by class


@cache
def validator(kind: Any) -> TypeAdapter:
    """The validator of a type, which takes longer to make than to use."""
    return TypeAdapter(kind)


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


def read_only(answer: Any) -> None:
    """Make the arrays of an object such that nobody writes into them by mistake: later figures would follow."""
    for name, value in vars(answer).items():
        if isinstance(value, np.ndarray):
            vars(answer)[name] = value.view()
            vars(answer)[name].flags.writeable = False
