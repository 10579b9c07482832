"""Classes of numbers that users write, in files and in programs: a wrong one is a WrongSetting wherever it is written."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from sim.base.errors import WrongValue, from_validation


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
