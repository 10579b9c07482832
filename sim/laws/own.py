"""Stragglers of a user's own: a class in a module."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from sim.base.errors import WrongSetting
from sim.base.own import complaint, imported
from sim.base.ranges import Name
from sim.laws import checked
from sim.laws.base import Stragglers


class Own(Stragglers):
    """A user's class, a subclass of sim.laws.Law or of sim.laws.Stragglers, made with settings.

    Args:
        name: module:Class.
        settings: names and values of its parameters.
    """

    kind: Literal["own"] = "own"
    name: Name
    settings: tuple[tuple[str, bool | int | float | str], ...] = Field(default=(), max_length=100)

    @model_validator(mode="after")
    def _can_be_made(self):
        _ = self.made
        return self

    @cached_property
    def made(self) -> Stragglers:
        """The object.

        Raises:
            WrongSetting: no such class, or not with these settings.
        """
        from sim.base.files import validated

        allowed = "module:Class, a subclass of trainsim.laws.Law or of trainsim.laws.Stragglers"
        found = imported("name", self.name, allowed)
        if not (isinstance(found, type) and issubclass(found, Stragglers)):
            raise WrongSetting("name", self.name, allowed)
        try:
            return validated(found, dict(self.settings), self.name)
        except WrongSetting:
            raise
        except Exception as error:  # whatever its class does
            raise WrongSetting("name", self.name, f"a class that can be made ({complaint(error)})") from error

    @property
    def mean(self) -> float:
        return checked.mean(self.made)

    @property
    def mean_factor(self) -> float:
        return checked.asked(self.made, "mean_factor")

    @property
    def slows_computing(self) -> bool:
        return checked.asked(self.made, "slows_computing")

    def sleeps(self, scenario, random, worker):
        return checked.sequence(self.made, "sleeps", scenario, random, worker)

    def factors(self, scenario, random, worker):
        return checked.sequence(self.made, "factors", scenario, random, worker)

    def check(self, scenario):
        checked.asked(self.made, "check", scenario)

    def scaled(self, factor):
        raise ValueError("no factor of a law of one's own: give it a parameter")

    def notes(self, scenario):
        return checked.notes(self.made, scenario)

    def unreal(self):
        return checked.asked(self.made, "unreal")
