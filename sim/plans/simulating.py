"""Candidates are simulated, on all cores, with the same random numbers for all."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.base.progress import advance
from sim.plans.candidates import EFFORTS, Candidate, Figures
from sim.studies import failures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.plans.configurations import Room
    from sim.sweeps.jobs import Job
    from sim.sweeps.pools import Given, Here, Own


class Simulating:
    """Simulates candidates until time is over.

    Args:
        pool: opened.
        until_s: by time.monotonic, after which nothing more is begun.
    """

    def __init__(self, room: Room, pool: Here | Own | Given, until_s: float):
        self.room, self.pool, self.until_s = room, pool, until_s
        self.count = 0  # of simulations
        text = room.question.failures
        self._failures = failures.read(text) if text else None

    @property
    def left_s(self) -> float:
        """Seconds."""
        return max(0.0, self.until_s - time.monotonic())

    def simulate(self, candidates: Iterable[Candidate], effort: int) -> None:
        """Simulate them with an effort; those for which there is no time stay as they are."""
        from sim.sweeps.dealing import Dealing

        jobs = {job.digest: (job, one) for one in candidates if (job := self._job(one, effort))}
        if not jobs:
            return
        with closing(Dealing([job for job, _ in jobs.values()], self.pool).rows()) as rows:
            for several in rows:
                for row in several:
                    job, one = jobs[row["digest"]]
                    self._take(one, job, row, effort)
                    advance()
                if not self.left_s:
                    return

    def _job(self, one: Candidate, effort: int) -> Job | None:
        from sim.sweeps import jobs

        much = EFFORTS[effort]
        scenario = replace(self.room.scenario(one.configuration), steps=much.steps, warmup=much.warmup)
        return jobs.of_scenario(scenario, jobs.How("auto", much.runs, max(0.1, self.left_s)))

    def _take(self, one: Candidate, job: Job, row: dict, effort: int) -> None:
        self.count += 1
        one.effort = effort
        if row.get("error") is not None:
            one.problem, one.figures = row["error"], None
            return
        mid = row["samples_per_s"]
        low, high = row["samples_per_s_low"] or mid, row["samples_per_s_high"] or mid
        one.figures = Figures(min(low, mid), mid, max(high, mid), row["why_no_interval"], row["world"])
        if self._failures:
            self._lose(one, job)

    def _lose(self, one: Candidate, job: Job) -> None:
        """What hosts that fail leave of it: the two errors are independent, and add up in squares of logarithms."""
        import math

        figures, question = one.figures, self.room.question
        assert figures and self._failures and job.scenario
        hours = question.hours(figures.mid)
        run = replace(self._failures, run_s=min(max(60.0, hours * 3600), failures.MOST_S)) if hours else self._failures
        try:
            lost = failures.lost(job.scenario, run)
        except WrongSetting as error:
            one.problem, one.figures = str(error), None
            return
        mid, share = figures.mid * lost.goodput, lost.goodput
        sides = [
            math.hypot(math.log(figures.mid / figures.low), math.log(max(1.0, share / lost.interval[0]))),
            math.hypot(math.log(figures.high / figures.mid), math.log(max(1.0, lost.interval[1] / share))),
        ]
        one.figures = replace(
            figures, low=mid * math.exp(-sides[0]), mid=mid, high=mid * math.exp(sides[1]), goodput=share
        )
