"""Each model against its layers written out in NumPy, in float64."""

import numpy as np
import pytest

from real import models
from sim.base.errors import WrongSetting
from sim.model.workload import NAMED

LAYERS = {
    "toy_fc": "relu relu relu linear",
    "toy_conv": "convolve convolve pool relu linear",
    "mnist": "convolve pool convolve pool relu linear",
    "cifar10": "convolve pool convolve pool relu relu linear",
    "mlp": "sigmoid linear",
    "lstm_classifier": "lstm linear",
    "lstm_lm": "embed lstm linear",
    "bigram": "follow",
    "softmax": "linear",
}
VARIABLES = {"pool": 0, "embed": 1, "follow": 1}  # of a layer, where not two


def convolve(x, kernel, bias):
    """Same padding, stride 1, then relu; x (samples, height, width, channels)."""
    edge = kernel.shape[0] // 2
    padded = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[:2], axis=(1, 2))
    return np.maximum(np.tensordot(windows, kernel, axes=([4, 5, 3], [0, 1, 2])) + bias, 0)


def pool(x):
    samples, height, width, channels = x.shape
    return x.reshape(samples, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def linear(x, weights, bias):
    return x.reshape(len(x), -1) @ weights + bias


def relu(x, weights, bias):
    return np.maximum(linear(x, weights, bias), 0)


def sigmoid(x, weights, bias):
    return 1 / (1 + np.exp(-linear(x, weights, bias)))


def embed(x, table):
    return table[x.astype(int)]


def follow(x, table):
    return table[x[:, -1].astype(int)]


def lstm(x, kernel, bias):
    """Hochreiter and Schmidhuber's equations, gate by gate; the last output."""
    enter, new, keep, leave = np.split(kernel, 4, axis=1)
    b_enter, b_new, b_keep, b_leave = np.split(bias, 4)
    h = c = np.zeros((len(x), len(bias) // 4))
    for step in range(x.shape[1]):
        z = np.concatenate([x[:, step], h], axis=1)
        c = c / (1 + np.exp(-(z @ keep + b_keep + 1))) + np.tanh(z @ new + b_new) / (1 + np.exp(-(z @ enter + b_enter)))
        h = np.tanh(c) / (1 + np.exp(-(z @ leave + b_leave)))
    return h


def logits(workload, parameters, x):
    """What the workload's model answers, shape (samples, classes)."""
    left = split(workload, parameters)
    for layer in LAYERS[workload.name].split():
        variables = [left.pop(0) for _ in range(VARIABLES.get(layer, 2))]
        x = globals()[layer](x, *variables)
    assert not left
    return x


def loss_sum(workload, parameters, x, y):
    """The sum of the softmax cross-entropies."""
    answers = logits(workload, parameters, x)
    answers = answers - answers.max(axis=1, keepdims=True)
    return float((np.log(np.exp(answers).sum(axis=1)) - answers[np.arange(len(y)), y]).sum())


def split(workload, parameters):
    """The variables in a flat vector."""
    ends = np.cumsum([v.size for v in workload.variables])[:-1]
    return [part.reshape(v.shape) for part, v in zip(np.split(parameters, ends), workload.variables, strict=True)]


def sample(workload, samples, seed=0):
    """Parameters, away from zero biases, and inputs and labels that mean nothing."""
    rng = np.random.default_rng(seed)
    parameters = models.initial(workload, seed) + rng.normal(0, 0.01, workload.parameters).astype(np.float32)
    shape = (samples, *workload.sample_shape)
    words = workload.inputs == "words"
    x = rng.integers(workload.classes, size=shape).astype(np.float32) if words else rng.random(shape, np.float32)
    return parameters, x, rng.integers(workload.classes, size=samples).astype(np.int32)


def test_no_model_is_left_out():
    assert set(models.FORWARD) == set(LAYERS)
    assert set(LAYERS) <= set(NAMED)


@pytest.mark.tensorflow
@pytest.mark.parametrize("workload", [NAMED[name] for name in models.FORWARD], ids=list(models.FORWARD))
def test_forward_pass_is_its_layers(workload):
    from real.training.tensorflow_setup import tensorflow

    tf = tensorflow()
    parameters, x, _ = sample(workload, 3)
    variables = [tf.constant(v) for v in split(workload, parameters)]
    expected = logits(workload, parameters.astype(float), x.astype(float))
    np.testing.assert_allclose(models.forward_of(workload)(variables, tf.constant(x)), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("workload", [NAMED[name] for name in models.FORWARD], ids=list(models.FORWARD))
def test_start_keeps_the_size_of_signals(workload):
    parameters = models.initial(workload, 0)
    assert (parameters.shape, parameters.dtype) == ((workload.parameters,), np.float32)
    for variable, sparse in zip(split(workload, parameters), [v.rows for v in workload.variables], strict=True):
        inputs = 1 if sparse else variable.size // variable.shape[-1]
        if variable.ndim == 1:
            assert not variable.any()
        else:  # He's variance 2 / inputs, within 5 standard errors
            assert variable.var() * inputs / 2 == pytest.approx(1, abs=5 * np.sqrt(2 / variable.size))


def test_start_is_the_seeds():
    first, again, other = (models.initial(NAMED["mlp"], seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_workload_without_a_model_is_refused():
    mine = NAMED["mlp"].model_copy(update={"name": "mine"})
    with pytest.raises(WrongSetting, match=r"--workload: given 'mine'; allowed: .*toy_fc, toy_conv, mnist"):
        models.forward_of(mine)
