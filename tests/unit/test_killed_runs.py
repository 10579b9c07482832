"""Runs whose ranks are killed, as experiments.failures predicts them: replayed failure by failure, and by the law of sim.run --failures."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import failures
from experiments.failures import Costs, replayed
from real.launching.supervisor import Failing
from real.recording.attempts import LOST, RESTART
from sim.recording.traces import Activity, Trace

COSTS = Costs(step_s=0.02, checkpoint_s=0.05, start_s=4.0, noticed_s=0.5)


class At:
    """Failures at given times."""

    def __init__(self, *times_s):
        self._times_s = [*times_s, np.inf]

    def rank(self):
        """Any."""
        return 0

    @property
    def next_s(self):
        """The first that is left."""
        return self._times_s[0]

    def past(self, now_s):
        """Those are gone."""
        while self.next_s <= now_s:
            self._times_s.pop(0)


def test_a_run_without_failures_is_its_steps_and_checkpoints():
    found = replayed(COSTS, At(), 200, every=50)
    assert found == pytest.approx((4.15, 0.15, 0.0, 0.0, 0))
    assert found.goodput == pytest.approx(4 / 4.15)


def test_a_failure_costs_the_work_since_the_checkpoint_and_a_start():
    """It trains from 4 s on; a segment is 1.05 s. At 5.35 s, 0.3 s of the second are lost, and 0.5 s until that is noticed."""
    found = replayed(COSTS, At(5.35), 200, every=50)
    assert found == pytest.approx((4.15 + 0.8 + 4.0, 0.15, 0.8, 4.0, 1))


def test_failures_while_nothing_trains():
    """Before the first training a run has not begun; one during a restart makes that longer; one at no time at all does nothing."""
    assert replayed(COSTS, At(1.0), 200, every=50) == pytest.approx((4.15, 0.15, 0.0, 0.0, 1))
    found = replayed(COSTS, At(5.35, 5.5, 7.85), 200, every=50)
    assert found == pytest.approx((4.15 + 0.8 + 6.5, 0.15, 0.8, 6.5, 2))


def test_replays_are_as_the_law_says():
    """2,000 replays beside Daly's law, which sim.run --failures draws from; with starts that cost nothing they are not: the control."""
    runs = [replayed(COSTS, Failing(seed, 60.0, 2), 2000) for seed in range(2000)]
    goodputs = [run.goodput for run in runs]
    said = by_law(COSTS)
    assert np.mean(goodputs) == pytest.approx(said.goodput, abs=0.02)
    assert np.mean([run.lost_s / run.whole_s for run in runs]) == pytest.approx(said.repeated, abs=0.02)
    inside = np.mean([said.interval[0] <= one <= said.interval[1] for one in goodputs])
    assert 0.85 < inside <= 0.97
    assert abs(np.mean(goodputs) - by_law(COSTS._replace(start_s=0.0)).goodput) > 0.08


def by_law(costs):
    before, failures.MTBF_S = failures.MTBF_S, 60.0
    try:
        return failures.by_law(costs, 2000)
    finally:
        failures.MTBF_S = before


def test_what_a_trace_has_of_it(header):
    rows = [
        Activity(0.0, 1.0, 0, 0, "compute"),
        Activity(1.0, 1.25, 0, 1, "checkpoint"),
        Activity(1.25, 2.0, 0, 1, LOST),
        Activity(2.0, 6.0, 0, 1, RESTART),
        Activity(6.0, 8.0, 0, 1, "compute"),
        Activity(0.0, 9.0, 1, 1, "compute"),
    ]
    trace = Trace.of(replace(header, details={"restarts": 1}), rows)
    assert failures.measured(trace) == pytest.approx((8.0, 0.25, 0.75, 4.0, 1))
