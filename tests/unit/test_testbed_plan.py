"""What the experiment testbed fits and predicts, and how it says which of allreduce and servers wins."""

import numpy as np
import pytest

from experiments import testbed_plan as plan
from experiments.testbed import Row, winners
from experiments.testbed_plan import Where
from real.cells import refusal
from sim.answers.outcome import Outcome

RATE = "400 Mbit/s"


@pytest.fixture
def runs():
    return plan.runs(RATE, seed=0)


def test_fit_and_prediction_share_no_run_and_all_can_be_run(runs):
    """Fitted: a worker with its server, or two in a ring. Predicted: three and four hosts."""
    names = [name for name, _ in runs]
    assert len(set(names)) == len(names)
    for name, cell in runs:
        hosts = cell.workers + (cell.protocol != "allreduce")
        assert hosts == 2 if name.startswith("fit-") else hosts in plan.HOSTS
        assert not refusal(cell)


def test_fitted_runs_come_between_predicted_ones(runs):
    """A machine has slow minutes: neither kind has them all."""
    fitted = np.array([name.startswith("fit-") for name, _ in runs])
    at = np.flatnonzero(fitted) / len(fitted)
    assert fitted.sum() == plan.FITS_OF_EACH * len(plan.FITS) * len(plan.MODELS)
    assert 0.35 < at.mean() < 0.65
    assert at.max() - at.min() > 0.75


def row(where: Where, predicted_s: float, *measured_s: float) -> Row:
    def outcome(step_s: float) -> Outcome:
        return Outcome(np.full((1, 5), step_s), np.full((1, 5), 64), np.zeros((1, 3)))

    return Row(where.cell, outcome(predicted_s), [outcome(s) for s in measured_s], network=0.9)


@pytest.mark.parametrize(
    ("ring_s", "server_s", "found"), [(0.1, 0.2, [True]), (0.2, 0.1, [False]), (0.1, 0.1, [False])]
)
def test_who_wins_is_judged_by_what_was_measured(ring_s, server_s, found):
    """Measured, the ring is twice as fast; the floor is 2 %."""
    ring, server = (Where(RATE, 3, "mlp", way) for way in ("ring", "fmb"))
    rows = {ring: row(ring, ring_s, 0.100, 0.102), server: row(server, server_s, 0.200, 0.204)}
    assert [right for *_, right in winners(rows)] == found


def test_pairs_within_the_floor_are_not_judged():
    ring, server = (Where(RATE, 3, "mlp", way) for way in ("ring", "fmb"))
    rows = {ring: row(ring, 0.1, 0.100, 0.102), server: row(server, 0.2, 0.100, 0.103)}
    assert winners(rows) == []
