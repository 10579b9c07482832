"""The table of the experiment `learning`: errors, floors, coverage, and rows that were not reached; and the jobs that papers describe."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import learning
from experiments.learning import Row
from real.cells import Cell, refusal

CELL = Cell("fmb", 2, 64, workload="mlp")


def row(said_s, interval_s, real_s, accuracy=0.8, cell=CELL) -> Row:
    return Row(cell, accuracy, said_s, interval_s, np.array(real_s))


def test_a_row_is_predicted_over_the_mean_of_its_repeats():
    one = row(1.1, (0.9, 1.05), [0.9, 1.1])
    assert one.error == pytest.approx(0.1)
    assert one.floor == pytest.approx(0.2)
    assert one.covered == [True, False]


def test_rows_that_any_run_did_not_reach_count_apart():
    rows = [row(1.2, (1, 2), [1.0, 1.0]), row(None, None, [1.0, 1.0]), row(1.0, (1, 1), [1.0, np.nan])]
    assert [one.known for one in rows] == [True, False, False]
    assert learning.figures(rows) == ["1", "20.0%", "0.0%", "2 of 2", "2"]


def test_no_row_was_reached():
    assert learning.figures([row(None, None, [np.nan, np.nan])]) == ["0", "", "", "", "1"]


def test_a_prediction_without_an_interval_holds_nothing():
    assert row(1.0, None, [1.0, 1.0]).covered == [False, False]


def test_groups_have_every_row_of_theirs():
    other = Cell("amb", 3, 64, 0.06, workload="toy_fc")
    rows = [row(1.0, None, [1.0]), row(1.0, None, [1.0], cell=other)]
    found = dict(learning.groups(rows))
    assert [len(found[name]) for name in ("fmb", "amb", "workload mlp", "workers 3", "all")] == [1, 1, 1, 1, 2]


def test_no_fitted_job_is_predicted_and_all_can_be_run():
    for demo in (False, True):
        chosen = learning.plan(demo, seed=3)
        assert not {(c.workload, c.batch) for c in chosen.fitted} & {(c.workload, c.batch) for c in chosen.predicted}
        assert [refusal(cell) for cell in (*chosen.fitted, *chosen.predicted)] == [None] * (
            len(chosen.fitted) + len(chosen.predicted)
        )
    assert {cell.workers for cell in chosen.predicted} == {2, 3, 4}


@pytest.mark.parametrize("protocol", ["fmb", "amb"])
def test_an_anytime_minibatch_has_the_mean_time_of_a_fixed_one(protocol):
    law = "shifted-exponential(mean=2.5,shift=1)"
    job = learning.of_paper(protocol, 10, law, learning.NEAR_S, seed=0)
    assert job.costs.compute(learning.BATCH) == pytest.approx(learning.COMPUTING_S)
    if protocol == "amb":
        assert job.protocol.time_limit_s == pytest.approx(2.5 * learning.COMPUTING_S)
        assert job.batch // job.protocol.partitions * learning.PARTS_A_BATCH == learning.BATCH
