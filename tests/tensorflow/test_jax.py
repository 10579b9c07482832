"""The engine of JAX against that of TensorFlow: the same gradients, updates and parameters, to rounding."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from test_gradients import HOUR_S
from test_layered import Heard, waits_for_a_late_variable
from test_models import sample, split

from real.data import Batches, load
from real.engines import engine_of, jax_gradients
from real.engines.jax_optimiser import JaxOptimiser
from real.models import FORWARD, initial
from real.training.optimiser import LEARNING_RATES, Optimiser
from real.training.sparse_gradients import look_up
from sim.base.errors import WrongSetting
from sim.model.workload import NAMED

pytestmark = pytest.mark.tensorflow
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


@cache
def gradients(engine, name, kind="whole"):
    return engine_of(engine).gradients(kind, NAMED[name])


@pytest.mark.parametrize("name", FORWARD)
def test_every_models_gradient_is_tensorflows(name):
    parameters, x, y = sample(NAMED[name], 4)
    expected, found = (gradients(engine, name).fixed(parameters, x, y) for engine in ("tensorflow", "jax"))
    assert (found.sum.dtype, found.sum.flags.writeable) == (np.float32, False)
    np.testing.assert_allclose(found.sum, expected.sum, **CLOSE)
    assert (found.samples, found.loss) == (4, pytest.approx(expected.loss, rel=1e-5))


@pytest.mark.parametrize(("batch", "partitions"), [(8, 1), (8, 4), (11, 4)])
def test_anytime_without_haste_is_fixed_over_whole_partitions(batch, partitions):
    parameters, x, y = sample(NAMED["mlp"], batch)
    used = partitions * int(batch / partitions)
    expected = gradients("tensorflow", "mlp").fixed(parameters, x[:used], y[:used])
    found = gradients("jax", "mlp").anytime(parameters, x, y, partitions, HOUR_S)
    np.testing.assert_allclose(found.sum, expected.sum, **CLOSE)
    assert (found.samples, found.loss) == (used, pytest.approx(expected.loss, rel=1e-5))


def test_a_sample_that_counts_three_times_is_three_samples():
    """Few shapes are compiled for, whatever the number of samples."""
    (parameters, x, y), times, engine = sample(NAMED["mlp"], 6), np.arange(6) % 4, gradients("jax", "mlp")
    whole = engine.fixed(parameters, np.repeat(x, times, 0), np.repeat(y, times, 0)).sum
    np.testing.assert_allclose(engine.weighted(parameters, x, y, times.astype(np.float32)), whole, **CLOSE)
    for count in (3, 4):
        engine.weighted(parameters, x[:count], y[:count], times[:count].astype(np.float32))
    assert engine._weighted._cache_size() == 1


def test_copies_are_timed_in_turn():
    """There, computed, joined, and then the copy to the host; the bytes are those of parameters, pictures and labels."""
    model = NAMED["mlp"]
    for found in (
        gradients("jax", "mlp").fixed(*sample(model, 8)),
        gradients("jax", "mlp").anytime(*sample(model, 8), 4, HOUR_S),
    ):
        assert 0 < found.copies.there_s < found.computed_s < found.copies.joined_s
        assert found.copies.to_device_bytes == 4 * (model.parameters + 8 * 785)
    assert gradients("tensorflow", "mlp").fixed(*sample(model, 8)).copies is None


def test_evaluate_in_pieces_is_the_whole():
    """The last piece is filled up by samples that count for nothing."""
    parameters, x, y = sample(NAMED["mlp"], 1203)
    expected = gradients("tensorflow", "mlp").evaluate(parameters, x, y)
    assert gradients("jax", "mlp").evaluate(parameters, x, y) == pytest.approx(expected, rel=1e-5)


def test_stops_at_the_first_reading_of_the_clock_after_the_limit(monkeypatch):
    """By a clock that counts the micro-batches that have ended."""
    counted = engine_of("jax").gradients("whole", NAMED["mlp"])
    ended, plain = [0], counted._finished

    def finished(results):
        ended[0] += 1
        return plain(results)

    monkeypatch.setattr(counted, "_finished", finished)
    monkeypatch.setattr(jax_gradients, "time", SimpleNamespace(perf_counter=lambda: float(ended[0])))
    for limit_s, done in ((-1.0, 1), (0.0, 1), (0.5, 1), (1.5, 2), (2.5, 3), (9.5, 8)):
        ended[0] = 0
        found = counted.anytime(*sample(NAMED["mlp"], 8), 8, limit_s)
        assert found.samples == found.computed_s == done


def test_nothing_is_compiled_after_the_warm_up(monkeypatch):
    fresh = engine_of("jax").gradients("whole", NAMED["mlp"])
    fresh.warm_up(8, 2)
    fresh.warm_up(8)
    calls = [fresh._whole, fresh._first, fresh._next, fresh._joined]
    compiled = [call._cache_size() for call in calls]
    parameters, x, y = sample(NAMED["mlp"], 8)
    fresh.anytime(parameters, x, y, 2, 0.0)
    fresh.fixed(parameters, x, y)
    assert [call._cache_size() for call in calls] == compiled


@pytest.mark.parametrize("name", ["toy_conv", "lstm_classifier", "lstm_lm", "bigram"])
def test_variable_by_variable_it_is_the_same_gradient(name):
    """Variables are read from the first to the last, and gradients there from the last to the first."""
    model = NAMED[name]
    parameters, x, y = sample(model, 4)
    listener, numbers = Heard(parameters, model.variables), range(len(model.variables))
    loss = gradients("jax", name, "layered").by_layer(listener, x, y)
    whole = gradients("tensorflow", name).fixed(parameters, x, y)
    np.testing.assert_allclose(np.concatenate([listener.gradients[n].ravel() for n in numbers]), whole.sum, **CLOSE)
    assert loss == pytest.approx(whole.loss, rel=1e-5)
    assert listener.heard == [*(("reads", n) for n in numbers), *(("made", n) for n in reversed(numbers))]


def test_a_variable_that_is_late_is_waited_for():
    model = NAMED["mlp"]
    waits_for_a_late_variable(gradients("jax", "mlp", "layered"), model.variables, *sample(model, 4))


@pytest.mark.parametrize("name", ["lstm_lm", "bigram"])
def test_rows_have_tensorflows_gradient(name):
    """However many rows a minibatch reads."""
    workload = NAMED[name]
    for samples in (8, 3):
        parameters, x, y = sample(workload, samples)
        x[1] = x[0]  # words that come twice
        table, *dense = split(workload, parameters)
        rows, places = look_up(x)
        flat = np.concatenate([np.ravel(v) for v in dense]) if dense else np.empty(0, np.float32)
        expected, found = (
            gradients(engine, name, "rows").by_rows(flat, [table[rows]], places, y) for engine in ("tensorflow", "jax")
        )
        np.testing.assert_allclose(found.rows[0], expected.rows[0], **CLOSE)
        np.testing.assert_allclose(found.sum, expected.sum, **CLOSE)
        assert (found.samples, found.loss) == (samples, pytest.approx(expected.loss, rel=1e-5))


@pytest.mark.parametrize("name", LEARNING_RATES)
def test_every_optimiser_is_kerass(name):
    """While the rate decays, and after a warm-up, which is no step."""
    rng, rates = np.random.default_rng(0), (name, 0.05, 3, 0.5)
    ours, theirs = JaxOptimiser(*rates), Optimiser(*rates)
    found = rng.normal(size=40).astype(np.float32)
    expected = found.copy()
    ours.warm_up(40)
    for _ in range(8):
        assert ours.learning_rate == pytest.approx(theirs.learning_rate)
        total = rng.normal(size=40).astype(np.float32)
        total.flags.writeable = False
        ours.apply(found, total, 7)
        theirs.apply(expected, total, 7)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "optimiser"), [("mlp", "rms"), ("toy_conv", "mom")])
def test_parameters_after_some_steps_are_tensorflows(name, optimiser):
    """Of the same data and first parameters. Where a gradient is near 0, RMSprop moves by its sign, and rounding decides."""
    workload = NAMED[name]
    digits = load("digits", workload.sample_shape, workload.classes, seed=0)
    ends = []
    for engine in ("tensorflow", "jax"):
        parameters, update = initial(workload, 0), engine_of(engine).optimiser(1, optimiser)
        batches = Batches(digits, 64, 0, 0, 1)
        for _ in range(10):
            gradient = gradients(engine, name).fixed(parameters, *next(batches))
            update.apply(parameters, gradient.sum, gradient.samples)
        ends.append(parameters)
    moved = np.linalg.norm(ends[0] - initial(workload, 0))
    assert np.linalg.norm(ends[0] - ends[1]) < 1e-3 * moved


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"device": "gpu"}, "--device: given 'gpu'; allowed: cpu"),
        ({"device": "tpu"}, "--device: given 'tpu'; allowed: cpu, gpu"),
        ({"threads": 0}, "--threads: given 0"),
        ({"threads": 2}, "what this process started with"),
    ],
)
def test_devices_and_threads_that_cannot_be(settings, said):
    gradients("jax", "mlp")
    with pytest.raises(WrongSetting, match=said):
        jax_gradients.JaxGradients(NAMED["mlp"], **settings)


def test_what_cannot_be_computed_is_refused():
    with pytest.raises(WrongSetting, match="partitions"):
        gradients("jax", "mlp").anytime(*sample(NAMED["mlp"], 8), 9, HOUR_S)
    with pytest.raises(WrongSetting, match="samples"):
        JaxOptimiser("sgd").apply(np.zeros(4, np.float32), np.zeros(4, np.float32), 0)
    with pytest.raises(WrongSetting, match="--engine: given 'torch'; allowed: tensorflow, jax, numpy"):
        engine_of("torch")
