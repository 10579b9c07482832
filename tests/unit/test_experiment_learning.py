"""The table of the experiment `learning`: errors, floors, coverage, and rows that were not reached."""

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


def test_the_floor_is_the_mean_of_all_pairs_of_repeats():
    assert row(1.0, None, [0.8, 1.0, 1.2]).floor == pytest.approx((0.2 + 0.2 + 0.4) / 3)


def test_rows_that_any_run_did_not_reach_count_apart():
    rows = [row(1.2, (1, 2), [1.0, 1.0]), row(None, None, [1.0, 1.0]), row(1.0, (1, 1), [1.0, np.nan])]
    assert [one.known for one in rows] == [True, False, False]
    assert learning.figures(rows) == ["1", "20.0%", "0.0%", "2 of 2", "0 of 2", "2"]


def test_no_row_was_reached():
    assert learning.figures([row(None, None, [np.nan, np.nan])]) == ["0", "", "", "", "", "1"]


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


def test_the_verdict_holds_the_mean_error_against_ten_percent_or_twice_the_floor():
    quiet = [row(1.2, (1, 2), [1.0, 1.0])]
    noisy = [row(1.2, (1, 2), [0.9, 1.1])]
    assert learning.verdict(quiet)[0] == "Mean error 20.0%, target 10.0% (10 %, or twice the floor): missed"
    assert learning.verdict(noisy)[0] == "Mean error 20.0%, target 40.0% (10 %, or twice the floor): met"


@pytest.mark.parametrize(("held", "met"), [(8, "missed"), (9, "met"), (10, "missed")])
def test_intervals_that_hold_too_many_miss_their_target_too(held, met):
    rows = [row(1.0, (0.9, 1.1) if number < held else (2, 3), [1.0, 1.0]) for number in range(10)]
    assert learning.verdict(rows)[1].startswith("90 % intervals of simulated runs with the real runs' sleeps")
    assert learning.verdict(rows)[1].endswith(met)


def test_rows_that_are_left_out_are_counted_by_whether_all_runs_agree():
    rows = [row(None, None, [np.nan, np.nan]), row(None, None, [1.0, 1.0]), row(1.0, None, [1.0, np.nan])]
    assert [one.differs for one in rows] == [False, True, True]
    assert learning.verdict(rows) == [
        "Left out: 1 rows that no simulated or real run reached in time, 2 that some runs reached and others did not"
    ]
