"""Parallax's search for the number of variable partitions, over runs of this launch."""

from __future__ import annotations

from dataclasses import replace

from real.language.session import Session
from real.runtime import Runner
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.options import SEARCH
from sim.studies.partition_search import Search
from sim.studies.partition_search import searched as search

STEPS, WARMUP = 50, 10  # of each number that is tried


def searched(runner: Runner, scenario: Scenario) -> Search:
    """The search over short runs; collective, and the same at every rank: all hear rank 0's times.

    Raises:
        WrongSetting: a runtime whose ranks have no communicator.
    """
    if not isinstance(runner, Session):
        raise WrongSetting("--variable-partitions", SEARCH, "a number, or --runtime mpi, whose ranks can compare times")
    session = runner

    def step_s(tried: Scenario) -> float:
        trace = session.run(replace(tried, steps=STEPS, warmup=WARMUP))
        return session.comm.bcast(float(of_trace(trace).step_s.mean()) if trace else None)

    return search(scenario, step_s, machines=session.machines)
