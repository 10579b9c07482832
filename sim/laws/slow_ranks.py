"""Certain ranks are slow throughout."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from sim.base.errors import WrongSetting
from sim.base.ranges import MOST_RANKS, RanksIfAny
from sim.laws.effect import Effect
from sim.laws.steps import Steps

MOST_SLOW = 10**4


class SlowRanks(Effect):
    """The ranks that are named draw from the law in every step, all others never.

    Args:
        rank: one, or a list; numbered as in traces, where a master or the servers come first.
    """

    kind: Literal["slow-ranks"] = "slow-ranks"
    rank: tuple[RanksIfAny, ...] = Field(min_length=1, max_length=MOST_SLOW)
    by: Literal["rank"] = "rank"

    @field_validator("rank", mode="before")
    @classmethod
    def _one_or_several(cls, value):
        return (value,) if isinstance(value, int) and not isinstance(value, bool) else value

    @property
    def slow_share(self) -> float:
        """Unknown without the number of workers; 1 is the most that it can be."""
        return 1.0

    def check(self, scenario):
        first, last = scenario.servers, scenario.ranks - 1
        wrong = [rank for rank in self.rank if not first <= rank <= last]
        if wrong:
            before = {0: "", 1: ": 0 is the master"}.get(first, f": 0 to {first - 1} are servers")
            if first == 1 and scenario.protocol.has_servers:
                before = ": 0 is the server"
            allowed = f"{first} to {last}, the ranks of the workers{before}" if first <= last <= MOST_RANKS else "none"
            raise WrongSetting("--stragglers: slow-ranks: rank", wrong[0], allowed)

    def steps(self, scenario, random, worker, neutral):
        slow = scenario.rank_of(worker) in self.rank
        return random.draws(self.law, worker) if slow else Steps(sole=neutral)
