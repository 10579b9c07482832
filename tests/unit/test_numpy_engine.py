"""The engine of NumPy against closed forms and differences. Its numbers are TensorFlow's, too (tests/tensorflow/test_numpy.py)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from real.engines import ENGINES, engine_of, numpy_gradients
from real.engines.numpy_optimiser import NumpyOptimiser
from real.models import DENSE, TRAINED, initial
from real.training.optimiser import LEARNING_RATES
from sim.base.errors import WrongSetting
from sim.model.workload import NAMED, Variable, Workload


def gradients(name: str) -> numpy_gradients.NumpyGradients:
    return numpy_gradients.NumpyGradients(NAMED[name])


def sample(name: str, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parameters away from symmetric points, and a minibatch."""
    workload, rng = NAMED[name], np.random.default_rng(1)
    parameters = initial(workload, 0) + rng.normal(0, 0.01, workload.parameters).astype(np.float32)
    x = rng.random((size, *workload.sample_shape), np.float32)
    return parameters, x, rng.integers(0, workload.classes, size).astype(np.int32)


def test_softmax_regressions_gradient_is_the_closed_form():
    """Features times (probabilities - labels), summed over samples: Bishop, "Pattern recognition", 2006, eq. 4.109."""
    parameters, x, y = sample("softmax", 6)
    weights, bias = parameters[:7840].reshape(784, 10).astype(float), parameters[7840:].astype(float)
    powers = np.exp(x @ weights + bias)
    wrong = powers / powers.sum(1, keepdims=True) - np.eye(10)[y]
    found = gradients("softmax").fixed(parameters, x, y)
    np.testing.assert_allclose(found.sum, np.concatenate([(x.T @ wrong).reshape(-1), wrong.sum(0)]), atol=1e-4)
    loss, _ = gradients("softmax").evaluate(parameters, x, y)
    assert 6 * loss == pytest.approx(-np.log((powers / powers.sum(1, keepdims=True))[range(6), y]).sum(), rel=1e-5)
    assert (found.sum.dtype, found.sum.flags.writeable) == (np.float32, False)


@pytest.mark.parametrize("name", DENSE)
def test_a_dense_models_gradient_is_that_of_differences(name):
    """Of the loss in float64, along the gradient, one variable at a time."""
    (parameters, x, y), engine = sample(name, 4), gradients(name)
    found = engine.fixed(parameters, x, y).sum.astype(float)
    ends = np.cumsum([variable.size for variable in NAMED[name].variables])
    for end, variable in zip(ends, NAMED[name].variables, strict=True):
        direction = np.zeros_like(found)
        direction[end - variable.size : end] = found[end - variable.size : end]
        slope = np.linalg.norm(direction)
        step = 1e-5 * direction / slope
        ahead, behind = (4 * engine.evaluate(parameters + sign * step, x.astype(float), y)[0] for sign in (1, -1))
        assert (ahead - behind) / 2e-5 == pytest.approx(slope, rel=1e-3)


def test_logits_and_inputs_of_any_size_give_numbers():
    """Neither exp overflows; a sample that is surely wrong costs the difference of its logits."""
    loss, gradient = numpy_gradients.cross_entropy(np.array([[1000.0, -1000.0]], np.float32), np.array([1]))
    assert loss == 2000
    np.testing.assert_array_equal(gradient, [[1, -1]])
    assert np.isfinite(
        gradients("mlp").fixed(*(1000 * part for part in sample("mlp", 3)[:2]), np.zeros(3, int)).sum
    ).all()


def test_a_sample_that_counts_three_times_is_three_samples():
    engine, (parameters, x, y), times = gradients("mlp"), sample("mlp", 40), np.arange(40) % 4
    whole = engine.fixed(parameters, np.repeat(x, times, 0), np.repeat(y, times, 0)).sum
    found = engine.weighted(parameters, x, y, times.astype(np.float32))
    np.testing.assert_allclose(found, whole, rtol=1e-4, atol=1e-4)
    assert not np.allclose(found, engine.fixed(parameters, x, y).sum, rtol=1e-2)


def test_evaluate_in_pieces_is_the_whole():
    parameters, x, y = sample("softmax", 1203)
    logits = x @ parameters[:7840].reshape(784, 10) + parameters[7840:]
    loss, accuracy = gradients("softmax").evaluate(parameters, x, y)
    each = [gradients("softmax").evaluate(parameters, x[part], y[part])[0] for part in (slice(600), slice(600, 1203))]
    assert loss == pytest.approx((600 * each[0] + 603 * each[1]) / 1203, rel=1e-5)
    assert accuracy == (logits.argmax(1) == y).mean()


def test_training_a_convex_model_ends_where_no_start_matters():
    """Softmax regression with weight decay has one optimum."""
    engine, ends = gradients("softmax"), []
    _, x, y = sample("softmax", 20)
    for seed in (0, 1):
        update, parameters = NumpyOptimiser("sgd", 0.02, weight_decay=1.0), initial(NAMED["softmax"], seed)
        for _ in range(600):
            update.apply(parameters, engine.fixed(parameters, x, y).sum, 20)
        ends.append(parameters)
    np.testing.assert_allclose(*ends, atol=1e-4)
    assert np.abs(ends[0]).max() > 0.01


@pytest.mark.parametrize("name", LEARNING_RATES)
def test_an_optimiser_goes_on_from_its_state(name):
    """And a warm-up is no step."""
    rng, made = np.random.default_rng(0), [NumpyOptimiser(name, 0.05, 3, 0.5) for _ in range(2)]
    parameters = rng.normal(size=9).astype(np.float32)
    made[0].warm_up(9)
    made[0].apply(parameters, rng.normal(size=9).astype(np.float32), 4)
    assert made[0].learning_rate == pytest.approx(0.05 * 0.5 ** (1 / 3))
    made[1].restore(made[0].state)
    total, there, here = rng.normal(size=9).astype(np.float32), parameters.copy(), parameters.copy()
    for optimiser, vector in zip(made, (there, here), strict=True):
        optimiser.apply(vector, total, 4)
    np.testing.assert_array_equal(there, here)
    assert (there != parameters).all()


@pytest.mark.parametrize("name", sorted(set(TRAINED) - set(DENSE)))
def test_other_models_are_refused(name):
    with pytest.raises(WrongSetting, match=f"--workload: given '{name}'; allowed: toy_fc, mlp, softmax with --engine"):
        engine_of("numpy").gradients("whole", NAMED[name])


def test_gradients_of_rows_are_refused():
    with pytest.raises(WrongSetting, match="--engine: given 'numpy'; allowed: tensorflow where gradients are of"):
        engine_of("numpy").gradients("rows", NAMED["mlp"])


def test_a_gpu_is_refused():
    with pytest.raises(WrongSetting, match="--device: given 'gpu'; allowed: cpu with --engine numpy"):
        numpy_gradients.NumpyGradients(NAMED["mlp"], device="gpu")


def test_threads_are_those_of_the_library_that_multiplies():
    from threadpoolctl import threadpool_info

    for threads in (2, 1):
        numpy_gradients.NumpyGradients(NAMED["mlp"], threads=threads)
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {threads}


@pytest.mark.parametrize(
    "shapes",
    [[(5, 7), (7,), (7, 10), (10,)], [(4, 7), (1,), (7, 10), (10,)], [(4, 7), (7,), (7, 10)], [(4, 5), (5,)]],
    ids=["inputs", "one bias for all", "a bias is missing", "classes"],
)
def test_variables_that_do_not_fit_the_model_of_their_name(shapes):
    variables = [Variable(name=f"v{number}", shape=shape) for number, shape in enumerate(shapes)]
    workload = Workload(name="mlp", variables=variables, sample_shape=(4,), classes=10)
    with pytest.raises(WrongSetting, match="--workload: given 'mlp'; allowed: variables that fit the model mlp"):
        engine_of("numpy").gradients("whole", workload).warm_up(2)


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_refuses_a_model_without_a_text(name):
    with pytest.raises(WrongSetting, match="--workload: given 'vgg16'; allowed: a model that can be trained"):
        engine_of(name).check("whole", NAMED["vgg16"], "cpu")


@pytest.mark.processes
def test_a_process_alone_imports_no_other_engine():
    words = "--engine numpy --protocol fmb --workload mlp --workers 0 --steps 3 --warmup 0 --batch 8 --stragglers none --quiet"
    program = f"import sys; from real.run import main; main({words.split()}); print('MODULES', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not {"tensorflow", "keras", "jax"}.intersection(done.stdout.partition("MODULES")[2].split())
