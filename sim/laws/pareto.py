"""The Pareto law: tails that fall like a power."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, Field, model_validator

from sim.base.errors import WrongSetting
from sim.base.ranges import Location, Spread, TailExponent
from sim.laws.base import Continuous


class _Moments(BaseModel):
    """What may stand for the parameters."""

    mean: Location = 1.0
    shape: TailExponent = 2.0
    cv: Annotated[Spread, Field(ge=0.01)] = 1.0


class Pareto(Continuous):
    """P(X > x) = (least / x)^shape from x = least; the mean is least shape / (shape - 1).

    It may be written with its mean in place of `least`, and with its coefficient of variation `cv` in place of `shape`, whose square is
    1 / (shape (shape - 2)).

    Args:
        least: the smallest draw.
        shape: exponent of the tail. It is above 1, because there is no mean otherwise.
    """

    kind: Literal["pareto"] = "pareto"
    least: Location
    shape: TailExponent
    in_unit: ClassVar = ("least",)

    @model_validator(mode="before")
    @classmethod
    def _of_moments(cls, given: Any) -> Any:
        return _without_moments(given) if isinstance(given, dict) else given

    @property
    def mean(self) -> float:
        return self.least * self.shape / (self.shape - 1)

    def draw(self, rng, size):
        return self.least * (1 + rng.pareto(self.shape, size))

    def expected_maximum(self, draws):
        """Equal to least n B(n, 1 - 1 / shape), with B the beta function (Arnold, Pareto Distributions, 1983)."""
        from scipy.special import betaln

        return float(self.least * draws * np.exp(betaln(draws, 1 - 1 / self.shape)))

    @property
    def stats(self):
        from scipy.stats import pareto

        return pareto(self.shape, scale=self.least)


def _without_moments(given: dict) -> dict:
    """The parameters, where the mean or the coefficient of variation may stand for one of them.

    Raises:
        ValueError: both of a pair are given, or one is out of its range.
    """
    for name, other in (("mean", "least"), ("cv", "shape")):
        if name in given and other in given:
            raise WrongSetting(name, given[name], f"{name} or {other}, one of both")
    moments = _Moments.model_validate({name: given[name] for name in _Moments.model_fields if name in given})
    found = {name: value for name, value in given.items() if name not in ("mean", "cv")}
    if "cv" in given:
        found["shape"] = moments.shape = 1 + math.sqrt(1 + moments.cv**-2)
    if "mean" in given and "shape" not in found:
        raise WrongSetting("shape", None, "the tail's exponent, as in pareto(mean=50ms, shape=2.5), or cv in its place")
    if "mean" in given:
        found["least"] = moments.mean * (moments.shape - 1) / moments.shape
    return found
