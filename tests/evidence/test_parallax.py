"""Parallax's figure: the systems in their published order, and which rise and fall with a second machine."""

from dataclasses import replace
from functools import cache

import event
import pytest

from experiments import parallax
from sim.answers.outcome import of_trace

# What `python -m experiments.run parallax` fits; fitting takes long.
FITTED = parallax.Constants(resnet50_s=0.3093, lm1b_s=0.1117, add_s=5.756e-10, port_bytes_per_s=1.798e9)


@cache
def said():
    return parallax.predicted(FITTED)


@pytest.mark.parametrize("bar", parallax.FITTED)
def test_the_constants_are_the_fitted_ones(bar):
    model, system, machines = bar
    assert said()[bar] == pytest.approx(parallax.MEASURED[model][system][machines - 1], rel=0.01)


MISSED = pytest.mark.xfail(reason="LM1B on two machines is missed (docs/limits.md)", strict=True)


@pytest.mark.parametrize(
    ("model", "machines"), [("resnet50", 1), ("resnet50", 2), ("lm1b", 1), pytest.param("lm1b", 2, marks=MISSED)]
)
def test_systems_are_in_their_published_order(model, machines):
    assert parallax.order(model, machines, said())


def test_a_second_machine_helps_the_hybrid():
    """Words; the figure on two machines is a fifth too low."""
    alone, together = (said()["lm1b", "Parallax-HYBRID", machines] for machines in (1, 2))
    assert together > 1.3 * alone
    assert together == pytest.approx(149_500, rel=0.2)


@MISSED
def test_a_second_machine_slows_horovod_down():
    """Predicted is a rise, by half a percent, to half more than is published."""
    assert said()["lm1b", "Horovod", 2] < said()["lm1b", "Horovod", 1]


def test_summed_as_dense_the_order_breaks():
    """A negative control: were rows not sparse, allreduce of 3.3 GB would be slower by far than what is published."""
    scenario = parallax.job("lm1b", "Horovod", 2, FITTED)
    dense = replace(scenario, protocol=replace(scenario.protocol, sparse_as_dense=True))
    assert of_trace(event.trace(dense)).throughput()[0] < 0.25 * 46_100
