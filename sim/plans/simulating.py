"""Candidates are simulated, on all cores, with the same random numbers for all."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from sim.answers import candidates, extrapolation, quantities
from sim.base.errors import WrongSetting
from sim.base.progress import advance
from sim.plans.candidates import EFFORTS, WHOLE, Candidate, Figures
from sim.runs import replications
from sim.studies import failures

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from sim.job.scenario import Scenario
    from sim.plans.candidates import Candidate, Effort
    from sim.plans.configurations import Configuration, Room
    from sim.sweeps.jobs import Job
    from sim.sweeps.pools import Pool

LONGEST_S = 60.0  # more time for a plan is for more jobs, and not for longer ones
SPENT = 20  # steps in which ports spend what they saved before gradients queued for them: what follows lasts


class Simulating:
    """Simulates candidates until time is over.

    Args:
        pool: opened.
        within_s: seconds for all of it.
        until_s: by time.monotonic, after which nothing more is begun.
        everything: all candidates; those that differ by their offer alone are one job, and known by one simulation.

    `cut` says whether a run was ended by the clock before it had made the steps asked for.
    """

    def __init__(self, room: Room, pool: Pool, within_s: float, until_s: float, everything: Iterable[Candidate] = ()):
        self.room, self.pool, self.until_s = room, pool, until_s
        self._alike: dict[Configuration, list[Candidate]] = defaultdict(list)
        for one in everything:
            self._alike[one.configuration.without_price].append(one)
        self.within_s = min(within_s, LONGEST_S)  # of which each job may take a share
        self.cut = False

    @property
    def left_s(self) -> float:
        """Seconds."""
        return max(0.0, self.until_s - time.monotonic())

    def simulate(self, candidates: Iterable[Candidate], effort: int) -> None:
        """Simulate them with an effort; candidates without time left stay as they are."""
        waiting: dict[str, tuple[Job, dict[int, Candidate]]] = {}
        for one in candidates:
            asked = self.room.scenario(one.configuration)
            much = self._affordable(asked, effort)
            scenario = replace(asked, steps=much.steps, warmup=much.warmup)
            job = self._job(scenario, much)
            alike = [other for other in self._alike[one.configuration.without_price] if other.effort < effort]
            waiting.setdefault(job.digest, (job, {}))[1].update({id(other): other for other in (*alike, one)})
        for row in self._rows([job for job, _ in waiting.values()]):
            job, of_one_job = waiting[row["digest"]]
            for one in of_one_job.values():
                self._take(one, job, row, effort)
            advance()

    def _rows(self, jobs: list[Job]) -> Iterator[dict]:
        """Rows as they come, while there is time."""
        from sim.sweeps import pools

        if not (jobs and self.left_s):
            return
        with closing(cast("Generator", pools.rows(jobs, self.pool, lambda: self.left_s))) as chunks:
            for chunk in chunks:
                yield from chunk

    def _job(self, scenario: Scenario, much: Effort) -> Job:
        from sim.sweeps import jobs

        within_s = self.within_s if much.runs == 1 else math.inf  # as many runs as were asked for, or none
        return jobs.of_scenario(scenario, jobs.How("auto", much.runs, within_s))

    def _affordable(self, scenario: Scenario, effort: int) -> Effort:
        """By counts, and not by the clock: the same plan comes of them whatever else the machine does."""
        much = EFFORTS[effort]
        further = sum(len(one.sides) for one in quantities.of(scenario))  # at ends (sim.answers.quantities)
        able = candidates.of(scenario).values() if candidates.unknown(scenario) else [scenario]
        once_s, step_s = map(sum, zip(*map(replications.once_and_step_s, able), strict=True))

        def needed(runs: int) -> tuple[float, float]:
            several = runs + further * (runs > 1)
            return several * once_s, several * step_s

        found = much.affordable(needed, much.share * self.within_s)
        if scenario.protocol.by_arrival and scenario.network.sustained_bytes_per_s:
            return found._replace(warmup=max(found.warmup, SPENT))
        return found

    def _take(self, one: Candidate, job: Job, row: dict, effort: int) -> None:
        one.effort = effort
        if row.get("error") is not None:
            one.problem, one.figures = row["error"], None
            return
        assert job.scenario
        mid = row["samples_per_s"]
        low, high = row["samples_per_s_low"] or mid, row["samples_per_s_high"] or mid
        did = row["steps_done"], row["warmup_done"], row["runs_done"]
        asked = job.scenario.steps, job.scenario.warmup, job.how.replications
        self.cut = self.cut or did != asked
        one.figures = Figures(min(low, mid), mid, max(high, mid), row["why_no_interval"], row["world"], *did)
        if effort < WHOLE and row["why_no_interval"] is None:
            slower = _slower(job.scenario, row["step_mean_s"], EFFORTS[effort].optimism)
            one.figures = replace(one.figures, slower=slower)
        if failing := self.room.question.failures_for(one.configuration.offer, mid, one.samples):
            self._lose(one, job, failing)

    def _lose(self, one: Candidate, job: Job, failing: str) -> None:
        """The throughput after failures of hosts: the two errors are independent, and add up in squares of logarithms."""
        figures = one.figures
        assert figures
        assert job.scenario
        try:
            lost = failures.lost(job.scenario, failures.read(failing))
        except WrongSetting as error:
            one.problem, one.figures = str(error), None
            return
        mid, share = figures.mid * lost.goodput, lost.goodput
        slower = math.hypot(math.log(figures.mid / figures.low), math.log(max(1.0, share / lost.interval[0])))
        faster = math.hypot(math.log(figures.high / figures.mid), math.log(max(1.0, lost.interval[1] / share)))
        low, high = mid * math.exp(-slower), mid * math.exp(faster)
        one.figures = replace(figures, low=low, mid=mid, high=high, goodput=share)


def _slower(scenario: Scenario, step_s: float, optimism: float) -> float:
    """Logarithm of what more steps and runs leave unknown, at least; what numbers at their ends do is not told by a few steps."""
    ends = (extrapolation.residuals(scenario, seconds, {}) for seconds in (step_s, step_s / optimism))
    return math.hypot(*(min(one.slower, other.slower) for one, other in zip(*ends, strict=True)))
