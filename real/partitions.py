"""Parallax's search for the number of variable partitions, over runs of this launch."""

from __future__ import annotations

from dataclasses import replace

from real.session import Session
from sim.outcome import of_trace
from sim.partitions import Search
from sim.partitions import searched as search
from sim.scenario import Scenario

STEPS, WARMUP = 50, 10  # of each number that is tried


def searched(session: Session, scenario: Scenario) -> Search:
    """The search over short runs; collective, and the same at every rank, for all hear rank 0's times."""

    def step_s(tried: Scenario) -> float:
        trace = session.run(replace(tried, steps=STEPS, warmup=WARMUP))
        return session.comm.bcast(float(of_trace(trace).step_s.mean()) if trace else None)

    return search(scenario, step_s, machines=session.machines)
