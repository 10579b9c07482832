"""A law of its own for each worker and step, of factors too, or shared by the ranks of a host."""

from __future__ import annotations

from typing import Literal

from sim.laws.effect import Effect


class Independent(Effect):
    """Each step draws anew; the draws of a step may be shared by the ranks of a host.

    A plain law, such as lognormal(mean=50ms, cv=1), is the same as independent(seconds=lognormal(mean=50ms, cv=1)).
    """

    kind: Literal["independent"] = "independent"

    def steps(self, scenario, random, worker, neutral):
        return random.draws(self.law, self.number(scenario, random, worker))
