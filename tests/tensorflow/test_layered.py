"""Gradients of single variables: the same numbers, each handed over when it is there, each variable read when it is due."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pytest

from real.models import FORWARD, initial
from real.training.layered import LayeredGradients
from sim.model import workload

pytestmark = pytest.mark.tensorflow
BATCH = 4
MODELS = sorted(set(FORWARD) - {"cifar10"})  # which has mnist's forward pass, and is slow


class Heard:
    """A listener that keeps what it hears, in order.

    Args:
        late: number of the variable that is not there before `come` is set; None where all are.
    """

    def __init__(self, flat: np.ndarray, variables, late: int | None = None):
        ends = np.cumsum([variable.size for variable in variables])[:-1]
        parts = zip(np.split(flat, ends), variables, strict=True)
        self._values = [part.reshape(variable.shape) for part, variable in parts]
        self.heard, self.gradients, self.come, self._late = [], {}, threading.Event(), late

    def read(self, variable: int) -> np.ndarray:
        self.heard.append(("reads", variable))
        if variable == self._late:
            assert self.come.wait(60)
        return self._values[variable]

    def made(self, variable: int, gradient: np.ndarray) -> None:
        self.heard.append(("made", variable))
        self.gradients[variable] = gradient.copy()


def sample(model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (BATCH, *model.sample_shape)).astype(np.float32)
    return initial(model, 0), x, rng.integers(0, model.classes, BATCH).astype(np.int32)


@pytest.mark.parametrize("name", MODELS)
def test_variable_by_variable_it_is_the_same_gradient(name):
    """Of every model; variables are read from the first to the last, and gradients there from the last to the first."""
    model = workload.read(name)
    gradients, (flat, x, y) = LayeredGradients(model), sample(model)
    listener, numbers = Heard(flat, model.variables), range(len(model.variables))
    gradients.by_layer(listener, x, y)
    whole = gradients.fixed(flat, x, y)
    found = np.concatenate([listener.gradients[number].ravel() for number in numbers])
    np.testing.assert_allclose(found, whole.sum, rtol=1e-5, atol=1e-5)
    assert listener.heard == [*(("reads", n) for n in numbers), *(("made", n) for n in reversed(numbers))]


@pytest.mark.parametrize("name", ["toy_fc", "toy_conv", "mnist", "mlp"])
def test_what_hands_a_gradient_over_holds_up_what_comes_after_it(name):
    """In the graph, because TensorFlow with one thread would hand all over at the end: a gradient needs what is handed over before."""
    graph = LayeredGradients(workload.read(name))._by_layer.get_concrete_function().graph
    calls = [operation for operation in graph.get_operations() if operation.type == "PyFunc"]
    hand_overs = [operation for operation in calls if operation.inputs]
    weights = hand_overs[1::2]  # the last variables' first; between them are biases, which come before their weights
    assert len(weights) == len(calls) // 4
    for earlier, later in pairwise(weights):
        assert earlier.name in needed(later.inputs[0].op)


@pytest.mark.parametrize("name", ["toy_fc", "toy_conv", "mnist"])
def test_a_variable_is_read_when_the_layer_before_it_has_been_computed(name):
    graph = LayeredGradients(workload.read(name))._by_layer.get_concrete_function().graph
    reads = [operation for operation in graph.get_operations() if operation.type == "PyFunc" and not operation.inputs]
    for before, weights in zip(reads[::2], reads[2::2], strict=False):
        uses = {operation.name for operation in before.outputs[0].consumers() if operation.type in ("MatMul", "Conv2D")}
        assert uses & needed(weights)


def needed(operation) -> set[str]:
    """The names of all that an operation waits for."""
    found, left = set(), [operation]
    while left:
        one = left.pop()
        for before in [*(tensor.op for tensor in one.inputs), *one.control_inputs]:
            if before.name not in found:
                found.add(before.name)
                left.append(before)
    return found


def test_a_variable_that_is_late_is_waited_for():
    """Nothing is handed over before the third variable has come."""
    model = workload.read("mlp")
    gradients, (flat, x, y) = LayeredGradients(model), sample(model)
    listener = Heard(flat, model.variables, late=2)
    thread = threading.Thread(target=gradients.by_layer, args=(listener, x, y))
    thread.start()
    while ("reads", 2) not in listener.heard:
        assert thread.is_alive()
        thread.join(0.01)
    assert not listener.gradients
    listener.come.set()
    thread.join(60)
    assert sorted(listener.gradients) == [0, 1, 2, 3]


def test_what_goes_wrong_in_a_listener_ends_the_call():
    model = workload.read("mlp")
    gradients, (flat, x, y) = LayeredGradients(model), sample(model)
    listener = Heard(flat, model.variables)
    listener.made = lambda variable, gradient: 1 / 0
    with pytest.raises(Exception, match="division by zero"):
        gradients.by_layer(listener, x, y)
