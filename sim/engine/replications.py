"""Replications of a scenario by the engine: the outcomes of the event world, to 1e-9 s."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sim.answers.outcome import Outcome
from sim.engine.job import MAKING, Job
from sim.engine.kernel.layout import FINISHED, SPACE
from sim.engine.lowering.statements import Statements
from sim.engine.tables import Listed, NotBuilt

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

MOST_ROOM = 256  # times as much as a run is given at first
WAITS_OF_A_RANK = 40  # in a step, at first
MOST_WAITS = 2**26
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
        self._room = self._wait_room = self.bytes = 1

    def outcome(self, number: int) -> Outcome | None:
        """One replication; None if there is no room for all that is on its way or waited for, or a text goes wrong."""
        of, room, wait_room = self._scenario, self._room, self._wait_room
        each = WAITS_OF_A_RANK * of.ranks * of.rounds
        while room <= MOST_ROOM and wait_room * each <= MOST_WAITS:
            job = self._job(number, room, wait_room * each)
            status = job.run()
            if status == FINISHED and not job.is_complete:
                return None
            if status == FINISHED and job.waits <= wait_room * each:
                self._room, self._wait_room = max(room, self._room), max(wait_room, self._wait_room)
                return _outcome(job, of)
            if status == SPACE:
                room *= 4
            elif status == FINISHED:
                wait_room = 1 + job.waits // each
            else:
                return None
        return None

    def _job(self, number: int, room: int, waits: int) -> Job:
        with MAKING:
            job = Job(self._scenario, self._code, self._tables, number, waits, room)
            self.bytes = max(self.bytes, job.bytes)
        return job


def _outcome(job: Job, of: Scenario) -> Outcome:
    ends_s, warmup = job.ends_s, of.warmup
    step_s, samples = np.diff(ends_s, prepend=0.0)[warmup:], job.samples[warmup:].astype(int)
    found = Outcome(step_s[None], samples[None], job.idle_fraction(warmup)[None], job.ran_out, warmup)
    return replace(found, rank_step_s=job.rank_step_s(warmup)[None]) if of.by_all_ranks else found
