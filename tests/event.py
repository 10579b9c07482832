"""One run of a scenario in the event world, as tests ask for it."""

import math

import numpy as np

from sim.answers.outcome import Outcome, join
from sim.job.scenario import Scenario
from sim.recording.traces import Trace
from sim.runs.replications import Replications


def run(
    scenario: Scenario, replication: int = 0, within_s: float = math.inf, want_trace: bool = True
) -> tuple[Outcome, Trace | None]:
    """The outcome of a replication, and its trace if one is asked for."""
    runs = Replications(scenario, "event")
    return runs.traced(replication, within_s) if want_trace else (runs.outcome(replication, within_s), None)


def trace(scenario: Scenario, replication: int = 0, within_s: float = math.inf) -> Trace:
    """The trace of a replication."""
    return Replications(scenario, "event").traced(replication, within_s)[1]


def agree(scenario: Scenario, replications: int = 1) -> None:
    """The engine gives the event world's digits in so many replications."""
    by_event, by_engine = Replications(scenario, "event"), Replications(scenario, "engine")
    for number in range(replications):
        expected, found = by_event.outcome(number), by_engine.outcome(number)
        for name in ("step_s", "samples"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
        # In a ring that is taken as a whole, waits for a latecomer count otherwise (sim.language.engine.rings).
        assert abs(found.idle_fraction.mean() - expected.idle_fraction.mean()) < 0.1


def by_engine(scenario: Scenario, replications: int = 1, first: int = 0) -> Outcome:
    """The engine's answer."""
    runs = Replications(scenario, "engine")
    return join([runs.outcome(number) for number in range(first, first + replications)])
