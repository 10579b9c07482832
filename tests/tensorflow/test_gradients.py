"""Gradients against finite differences, and the anytime loop against its deadline."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from test_models import loss_sum, sample, split

from real.data import Batches, data_for, load
from real.models import FORWARD, forward_of, initial
from real.training.gradients import Gradients
from real.training.optimiser import Optimiser
from sim.base.errors import WrongSetting
from sim.model.workload import NAMED

pytestmark = pytest.mark.tensorflow
HOUR_S = 3600.0


@cache
def gradients(name):
    return Gradients(NAMED[name])


@pytest.mark.parametrize("name", FORWARD)
def test_gradient_is_the_slope_of_the_summed_loss(name):
    workload = NAMED[name]
    parameters, x, y = sample(workload, 2)
    gradient, _, loss, *_ = gradients(name).fixed(parameters, x, y)
    assert (gradient.shape, gradient.dtype) == ((workload.parameters,), np.float32)
    assert loss == pytest.approx(loss_sum(workload, parameters.astype(float), x, y), rel=1e-4)
    for variable in range(len(workload.variables)):  # along the gradient, one variable at a time
        kept = [g if i == variable else 0 * g for i, g in enumerate(split(workload, gradient.astype(float)))]
        direction = np.concatenate([g.reshape(-1) for g in kept])
        slope = np.linalg.norm(direction)
        step = 1e-5 * direction / slope
        ahead, behind = (loss_sum(workload, parameters + sign * step, x, y) for sign in (1, -1))
        assert (ahead - behind) / 2e-5 == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize("name", FORWARD)
def test_gradient_is_the_plain_tapes(name):
    import tensorflow as tf

    workload = NAMED[name]
    parameters, x, y = sample(workload, 4, seed=1)
    variables = [tf.Variable(v) for v in split(workload, parameters)]
    with tf.GradientTape() as tape:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(y, forward_of(workload)(variables, tf.constant(x)))
    expected = np.concatenate([np.reshape(tf.convert_to_tensor(g), -1) for g in tape.gradient(loss, variables)])
    np.testing.assert_allclose(gradients(name).fixed(parameters, x, y)[0], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "batch", "partitions"), [*((name, 11, 4) for name in FORWARD), ("mlp", 8, 1), ("mlp", 8, 4)]
)
def test_anytime_without_haste_is_fixed_over_whole_partitions(name, batch, partitions):
    parameters, x, y = sample(NAMED[name], batch)
    used = partitions * int(batch / partitions)
    expected, _, expected_loss, *_ = gradients(name).fixed(parameters, x[:used], y[:used])
    gradient, samples, loss, *_ = gradients(name).anytime(parameters, x, y, partitions, HOUR_S)
    assert (samples, type(samples)) == (used, int)
    assert loss == pytest.approx(expected_loss, rel=1e-4)
    np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("remaining_s", [0.0, -1.0, 1e-9])
def test_no_time_left_does_one_partition(remaining_s):
    parameters, x, y = sample(NAMED["toy_fc"], 12)
    gradient, samples, *_ = gradients("toy_fc").anytime(parameters, x, y, 4, remaining_s)
    assert samples == 3
    np.testing.assert_allclose(gradient, gradients("toy_fc").fixed(parameters, x[:3], y[:3])[0], rtol=1e-3, atol=1e-4)


def test_stops_at_the_first_look_after_the_limit(monkeypatch):
    """By a clock that counts the partitions that have ended: read before the last has, it would allow for one more."""
    import tensorflow as tf

    from real.training import gradients as module

    ended, counted = [0], Gradients(NAMED["toy_fc"])
    plain = counted._gradients

    def end(gradient):
        ended[0] += 1
        return gradient

    def counting(variables, x, y):
        (first, *others), loss = plain(variables, x, y)
        with tf.control_dependencies(others):
            last = tf.numpy_function(end, [first], tf.float32, stateful=False)  # else TensorFlow would order it
        return [tf.ensure_shape(last, first.shape), *others], loss

    monkeypatch.setattr(counted, "_gradients", counting)
    monkeypatch.setattr(tf, "timestamp", lambda: tf.py_function(lambda: float(ended[0]), [], tf.float64))
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: 0.0))
    for limit_s, done in ((0.5, 1), (1.5, 2), (2.5, 3), (9.5, 8)):
        ended[0] = 0
        _, samples, _, computed_s, *_ = counted.anytime(*sample(NAMED["toy_fc"], 8), 8, limit_s)
        assert (samples, computed_s) == (done, done)


def test_the_first_partition_is_inside_the_limit():
    """Left to itself, a single thread reads the start of the clock when the first partition has ended."""
    parameters, x, y = sample(NAMED["toy_fc"], 4 * 1024)
    assert [gradients("toy_fc").anytime(parameters, x, y, 4, 0.004)[1] for _ in range(3)] == [1024] * 3


def test_nothing_is_traced_after_the_warm_up():
    fresh = Gradients(NAMED["mlp"])
    fresh.warm_up(8, 2)
    fresh.warm_up(8)
    graphs = (fresh._fixed, fresh._anytime, fresh._evaluate)
    parameters, x, y = sample(NAMED["mlp"], 30)
    for partitions, limit_s in ((2, 0.0), (3, 0.5)):
        fresh.anytime(parameters, x, y, partitions, limit_s)
    fresh.fixed(parameters, x, y)
    fresh.evaluate(parameters, x, y)
    assert [graph.experimental_get_tracing_count() for graph in graphs] == [1, 1, 1]


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


@pytest.mark.parametrize("partitions", [0, 9])
def test_partitions_without_samples_are_refused(partitions):
    with pytest.raises(WrongSetting, match="partitions"):
        gradients("mlp").anytime(*sample(NAMED["mlp"], 8), partitions, HOUR_S)


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
    expected = gradients("toy_conv").anytime(parameters, x, y, 4, HOUR_S)
    np.testing.assert_allclose(fenced.anytime(parameters, x, y, 4, HOUR_S)[0], expected[0], rtol=1e-5)


@pytest.mark.parametrize(("name", "steps"), [("toy_fc", 60), ("mlp", 120), ("toy_conv", 60), ("lstm_classifier", 60)])
def test_training_on_digits_learns(name, steps):
    workload = NAMED[name]
    digits = load("digits", workload.sample_shape, workload.classes, seed=0)
    parameters, optimiser, batches = initial(workload, 0), Optimiser("adm"), Batches(digits, 128, 0, 0, 1)
    for _ in range(steps):
        gradient, *_ = gradients(name).fixed(parameters, *next(batches))
        optimiser.apply(parameters, gradient, 128)
    loss, accuracy = gradients(name).evaluate(parameters, digits.test_x, digits.test_y)
    assert accuracy > 0.8
    assert loss < np.log(10) / 2


def test_training_on_words_learns():
    """Better than to say the most frequent word always."""
    workload = NAMED["lstm_lm"]
    words = data_for(workload, None, seed=0)
    parameters, optimiser, batches = initial(workload, 0), Optimiser("adm", 0.01), Batches(words, 128, 0, 0, 1)
    for _ in range(60):
        gradient, *_ = gradients("lstm_lm").fixed(parameters, *next(batches))
        optimiser.apply(parameters, gradient, 128)
    loss, accuracy = gradients("lstm_lm").evaluate(parameters, words.test_x, words.test_y)
    always = np.bincount(words.test_y).max() / len(words.test_y)
    assert accuracy > 2 * always
    assert loss < np.log(10_000) / 2


def test_training_on_synthetic_pictures_learns():
    workload = NAMED["toy_fc"]
    made = load("synthetic", workload.sample_shape, workload.classes, seed=0)
    parameters, optimiser, batches = initial(workload, 0), Optimiser("mom"), Batches(made, 64, 0, 0, 1)
    for _ in range(40):
        gradient, samples, *_ = gradients("toy_fc").anytime(parameters, *next(batches), 4, HOUR_S)
        optimiser.apply(parameters, gradient, samples)
    assert gradients("toy_fc").evaluate(parameters, made.test_x, made.test_y)[1] > 0.9
