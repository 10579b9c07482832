"""Choices between fewer and more hosts for the same GPUs (experiments.extrapolation.spread), on made tables."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.scaling.steps import CONSTANTS, Scaling
from calibration.scaling.table import Table
from experiments.extrapolation.spread import choices

TRUE = Scaling(4e8, 0.1, 1e-2, 1e-9, both_ways=2.0, within_s=1e-11, residual=0.02)


def table(hosts, gpus):
    """Of these hosts and GPUs, with the true steps."""
    hosts, gpus, ones = np.array(hosts, float), np.array(gpus, float), np.ones(len(hosts))
    rows = Table(hosts, gpus, gpus / hosts, 8 * ones, ones, ones)
    return rows._replace(step_s=TRUE.step_s(rows))


ROWS = table([1, 2, 4, 4], [4, 4, 4, 8])  # 4 GPUs on 1, 2 and 4 hosts: a byte takes twice as long on two


def test_pairs_are_of_the_same_gpus_with_one_that_was_held_out():
    assert len(list(choices(ROWS, 2, TRUE))) == 2
    assert len(list(choices(ROWS, 1, TRUE))) == 3
    assert not list(choices(ROWS, 4, TRUE))


def test_the_truth_is_always_right_and_sure():
    found = list(choices(ROWS, 1, TRUE))
    assert all(one.right and one.sure > 0.99 for one in found)
    assert [one.more for one in found] == [False, False, True]


def test_a_fit_that_has_it_the_other_way_is_wrong():
    other = replace(TRUE, both_ways=0.5)
    assert [one.right for one in choices(ROWS, 2, other)] == [True, False]


def test_it_is_less_sure_of_what_its_constants_do_not_tell():
    unknown = np.zeros((len(CONSTANTS),) * 2)
    place = list(CONSTANTS).index("both_ways")
    unknown[place, place] = 4.0
    (_, sure), (_, doubtful) = (
        [one.sure for one in choices(ROWS, 2, found)] for found in (TRUE, replace(TRUE, covariance=unknown))
    )
    assert doubtful < 0.9 < sure


def test_steps_that_hardly_differ_are_no_choice():
    even = ROWS._replace(step_s=np.array([1.0, 1.01, 1.02, 1.0]))
    assert not list(choices(even, 1, TRUE))


@pytest.mark.parametrize("residual", [0.02, 2.0])
def test_scatter_makes_it_less_sure(residual):
    (first, *_) = choices(ROWS, 1, replace(TRUE, residual=residual))
    assert (first.sure > 0.99) == (residual < 0.1)
