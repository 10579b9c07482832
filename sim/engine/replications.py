"""Replications of a scenario by the engine: the outcomes of the event world, to 1e-9 s."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sim.answers.outcome import Outcome
from sim.engine.job import MAKING, Job
from sim.engine.kernel.layout import FINISHED, PAUSE, SPACE
from sim.engine.lowering.statements import Statements
from sim.engine.tables import Listed, NotBuilt
from sim.worlds.time_budget import Patience

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

MOST_ROOM = 256  # times as much as a run is given at first
MOST_CONNECTIONS = 2**24  # of ranks, where each has a window or a flow of its own


def check(scenario: Scenario) -> None:
    """A scenario that the engine can build.

    Raises:
        NotBuilt: it has something that the engine does not have.
    """
    missing = {
        "so many connections": bool(scenario.network.fair or scenario.network.tcp)
        and scenario.ranks**2 > MOST_CONNECTIONS,
    }
    reason = next((what for what, there in missing.items() if there), None)
    if reason:
        raise NotBuilt(reason)


class Replications:
    """The programs of a scenario, and what they come to in each replication.

    Raises:
        NotBuilt, NotLowered: the scenario, or a text, has something that the engine does not have.
    """

    def __init__(self, scenario: Scenario):
        check(scenario)
        self._scenario, self._tables = scenario, Listed(scenario)
        self._code = Statements(scenario, self._tables).programs()
        self._room = self.bytes = 1

    def outcome(self, number: int, within_s: float = math.inf) -> Outcome | None:
        """One replication; None if there is no room for all that is on its way, or a text goes wrong.

        Args:
            within_s: seconds after which it ends with the steps that it has made, and at least one after the warm-up's first.
        """
        patience = Patience(self._scenario, within_s)
        while self._room <= MOST_ROOM:
            job = self._job(number, self._room)
            while (status := job.run()) == PAUSE:
                if patience.ends_after(job.updates):
                    return _outcome(job, self._scenario, patience.warmup)
            if status != SPACE:
                done = status == FINISHED and job.updates == self._scenario.updates
                return _outcome(job, self._scenario, self._scenario.warmup) if done else None
            self._room *= 4
        return None

    def _job(self, number: int, room: int) -> Job:
        with MAKING:
            job = Job(self._scenario, self._code, self._tables, number, room)
            self.bytes = max(self.bytes, job.bytes)
        return job


def _outcome(job: Job, of: Scenario, warmup: int) -> Outcome:
    ends_s = job.ends_s
    step_s, samples = np.diff(ends_s, prepend=0.0)[warmup:], job.samples[warmup:].astype(int)
    found = Outcome(step_s[None], samples[None], job.idle_fraction(warmup)[None], job.ran_out, warmup)
    if job.meters and warmup == of.warmup:
        found = replace(found, arrivals=job.arrivals)
    return replace(found, rank_step_s=job.rank_step_s(warmup, len(ends_s))[None]) if of.by_all_ranks else found
