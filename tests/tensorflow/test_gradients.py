"""Gradients against finite differences, and what training by them learns."""

from functools import cache

import numpy as np
import pytest
from test_models import loss_sum, sample, split

from real.data import Batches, data_for
from real.models import FORWARD, initial
from real.training.gradients import Gradients
from real.training.optimiser import Optimiser
from sim.base.errors import WrongSetting
from sim.model.workload import NAMED

pytestmark = pytest.mark.tensorflow


@cache
def gradients(name):
    return Gradients(NAMED[name])


@pytest.mark.parametrize("name", FORWARD)
def test_gradient_is_the_slope_of_the_summed_loss(name):
    workload = NAMED[name]
    parameters, x, y = sample(workload, 2)
    gradient = gradients(name).fixed(parameters, x, y).sum
    assert (gradient.shape, gradient.dtype) == ((workload.parameters,), np.float32)
    for variable in range(len(workload.variables)):  # along the gradient, one variable at a time
        kept = [g if i == variable else 0 * g for i, g in enumerate(split(workload, gradient.astype(float)))]
        direction = np.concatenate([g.reshape(-1) for g in kept])
        slope = np.linalg.norm(direction)
        step = 1e-5 * direction / slope
        ahead, behind = (loss_sum(workload, parameters + sign * step, x, y) for sign in (1, -1))
        assert (ahead - behind) / 2e-5 == pytest.approx(slope, rel=1e-3)


def test_nothing_is_traced_after_the_warm_up():
    fresh = Gradients(NAMED["mlp"])
    fresh.warm_up(8)
    parameters, x, y = sample(NAMED["mlp"], 30)
    fresh.fixed(parameters, x, y)
    assert fresh._fixed.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("name", ["mnist", "lstm_lm"])
def test_a_sample_that_counts_three_times_is_three_samples(name):
    parameters, x, y = sample(NAMED[name], 6)
    times = np.arange(6) % 4
    whole = gradients(name).fixed(parameters, np.repeat(x, times, 0), np.repeat(y, times, 0)).sum
    found = gradients(name).weighted(parameters, x, y, times.astype(np.float32))
    np.testing.assert_allclose(found, whole, rtol=1e-3, atol=1e-4)


def test_evaluate_in_pieces_is_the_whole():
    workload = NAMED["mlp"]
    parameters, x, y = sample(workload, 1203)
    loss, accuracy = gradients("mlp").evaluate(parameters, x, y)
    assert loss == pytest.approx(loss_sum(workload, parameters.astype(float), x, y) / 1203, rel=1e-4)
    assert 0.02 < accuracy < 0.3  # labels were drawn at random
    assert gradients("mlp").evaluate(parameters, x[:1], y[:1])[1] in (0.0, 1.0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"device": "gpu"}, "--device: given 'gpu'; allowed: cpu; TensorFlow finds no GPU"),
        ({"threads": 2}, "what this process started with"),
    ],
)
def test_devices_and_threads_that_cannot_be(settings, said):
    import tensorflow as tf

    gradients("mlp")
    if settings == {"device": "gpu"} and tf.config.list_physical_devices("GPU"):
        pytest.skip("this host has a GPU")
    with pytest.raises(WrongSetting, match=said):
        Gradients(NAMED["mlp"], **settings)


def test_a_gpus_clock_waits_for_numbers_of_the_sums():
    """The graph that a GPU needs gives the same answer here; that the copy waits for the GPU, only a GPU can show."""
    fenced = Gradients(NAMED["toy_conv"])
    fenced._device = "gpu"
    parameters, x, y = sample(NAMED["toy_conv"], 8)
    expected = gradients("toy_conv").fixed(parameters, x, y)
    np.testing.assert_allclose(fenced.fixed(parameters, x, y).sum, expected.sum, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "data", "steps"),
    [
        ("toy_fc", "digits", 60),
        ("mlp", "digits", 120),
        ("toy_conv", "digits", 60),
        ("lstm_classifier", "digits", 60),
        ("toy_fc", "synthetic", 40),
        ("lstm_lm", "words", 60),
    ],
)
def test_training_learns(name, data, steps):
    """Twice better than to say the most frequent answer always."""
    workload, words = NAMED[name], data == "words"
    made = data_for(workload, data, seed=0)
    parameters, optimiser = initial(workload, 0), Optimiser("adm", 0.01 if words else None)
    batches = Batches(made, 128, 0, 0, 1)
    for _ in range(steps):
        optimiser.apply(parameters, gradients(name).fixed(parameters, *next(batches)).sum, 128)
    loss, accuracy = gradients(name).evaluate(parameters, made.test_x, made.test_y)
    assert accuracy > (2 * np.bincount(made.test_y).max() / len(made.test_y) if words else 0.8)
    assert loss < np.log(workload.classes) / 2
