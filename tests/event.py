"""One run of a scenario in the event world, as tests ask for it."""

import math

import numpy as np

from sim.answers.outcome import Outcome, join
from sim.job.scenario import Scenario
from sim.language.engine import job as engine
from sim.recording.traces import Trace
from sim.runs.job import job_of
from sim.runs.outcome import outcome_of
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
        text = by_engine.text
        # Rings as a whole count waits otherwise.
        by_messages = outcome_of(scenario, engine.run(job_of(scenario, text, number), text, rings=False))
        np.testing.assert_allclose(by_messages.step_s, expected.step_s, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(by_messages.idle_fraction, expected.idle_fraction, rtol=1e-9, atol=1e-9)


def by_engine(scenario: Scenario, replications: int = 1, first: int = 0) -> Outcome:
    """The engine's answer."""
    runs = Replications(scenario, "engine")
    return join([runs.outcome(number) for number in range(first, first + replications)])
