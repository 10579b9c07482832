"""The laws by kind; a new one is added here."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sim.laws.base import Law
from sim.laws.constant import Constant
from sim.laws.empirical import Empirical
from sim.laws.exponential import Exponential
from sim.laws.folded_mixture import FoldedMixture
from sim.laws.gamma import Gamma
from sim.laws.lognormal import LogNormal
from sim.laws.normal import Normal
from sim.laws.pareto import Pareto
from sim.laws.shifted_exponential import ShiftedExponential
from sim.laws.weibull import Weibull

_Any = (
    Constant
    | Normal
    | LogNormal
    | Exponential
    | ShiftedExponential
    | Gamma
    | Weibull
    | Pareto
    | FoldedMixture
    | Empirical
)
AnyLaw = Annotated[_Any, Field(discriminator="kind")]
LAWS: dict[str, type[Law]] = {law.model_fields["kind"].default: law for law in _Any.__args__}
