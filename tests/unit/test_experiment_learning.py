"""The table of the experiment `learning`: errors, floors, coverage, and rows that were not reached."""

import numpy as np

from experiments import learning
from experiments.learning import Row
from real.cells import Cell

CELL = Cell("fmb", 2, 64, workload="mlp")


def row(said_s, interval_s, real_s, accuracy=0.8, cell=CELL) -> Row:
    return Row(cell, accuracy, said_s, interval_s, np.array(real_s))


def test_a_row_is_predicted_over_the_mean_of_its_repeats():
    one = row(1.1, (0.9, 1.05), [0.9, 1.1])
    assert (round(one.error, 9), round(one.floor, 9)) == (0.1, 0.2)
    assert one.held(one.interval_s) == [True, False]
    assert one.held(one.own_s) == [False, False], "of which there is none"


def test_rows_that_any_run_did_not_reach_count_apart():
    rows = [row(1.2, (1, 2), [1.0, 1.0]), row(None, None, [1.0, 1.0]), row(1.0, (1, 1), [1.0, np.nan])]
    assert [one.known for one in rows] == [True, False, False]
    assert learning.figures(rows) == ["1", "20.0%", "0.0%", "2 of 2", "0 of 2", "2"]
    assert learning.figures(rows[1:2]) == ["0", "", "", "", "", "1"]
