"""Gradients by NumPy of dense models: as real.training.gradients, without another library."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

from real.models import DENSE, forward_of
from real.models.on_numpy import Chain
from real.training.gradients import EVALUATED_AT_ONCE, Gradient
from real.training.layered import Listener
from sim.base.errors import WrongSetting
from sim.model.workload import Workload


def check_dense(workload: Workload, device: str) -> None:
    """Refuse what NumPy has no operations for.

    Raises:
        WrongSetting: a model without a text, or with other layers than dense ones; or a GPU.
    """
    forward_of(workload, "numpy")
    if workload.name not in DENSE:
        raise WrongSetting("--workload", workload.name, f"{', '.join(DENSE)} with --engine numpy")
    if device != "cpu":
        raise WrongSetting("--device", device, "cpu with --engine numpy")


class Read:
    """A variable that is read when it is computed with.

    Args:
        shape: of it, which is known before.
    """

    def __init__(self, listener: Listener, number: int, shape: tuple[int, ...]):
        self._listener, self._number, self.shape = listener, number, shape

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self._listener.read(self._number)


class NumpyGradients:
    """A workload's gradients by NumPy, as real.training.gradients.Gradients.

    Gradients are computed in their place in one vector, so that nothing is left to join.

    Args:
        threads: of the library that multiplies matrices for NumPy, in this process.
        device: cpu.
        gpu_index: not used.

    Raises:
        WrongSetting: the workload's model is not dense, or the device is not a CPU.
    """

    def __init__(self, workload: Workload, threads: int = 1, device: str = "cpu", gpu_index: int = 0):
        check_dense(workload, device)
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads, "blas")
        self._forward, self._workload = forward_of(workload, "numpy"), workload
        ends = np.cumsum([0, *(variable.size for variable in workload.variables)]).tolist()
        self._places = [(slice(*place), of.shape) for place, of in zip(pairwise(ends), workload.variables, strict=True)]

    def fixed(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> Gradient:
        """The gradient of a whole minibatch, x (samples, *sample_shape) float32 and y (samples,) int32."""
        called_s = time.perf_counter()
        total = self._sums(self._variables(parameters), x, y)
        total.flags.writeable = False
        return Gradient(total, time.perf_counter() - called_s)

    def weighted(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The sum, float32 (parameters,), of a minibatch that has each sample so many times, `times` float32 (samples,)."""
        return self._sums(self._variables(parameters), x, y, times)

    def by_layer(self, listener: Listener, x: np.ndarray, y: np.ndarray) -> None:
        """Compute the gradient of a whole minibatch and tell `listener` of it, variable by variable."""
        variables: list = [Read(listener, number, of.shape) for number, of in enumerate(self._workload.variables)]
        chain = self._forward(variables, Chain(x))
        _, gradient = cross_entropy(chain.value, y)
        left = list(enumerate(self._workload.variables))
        for number, step in reversed(list(enumerate(chain.steps))):
            if step.put:
                variable, of = left.pop()
                made = np.empty(of.shape, np.float32)
                step.put(gradient, made)
                listener.made(variable, made)
            if number:
                gradient = step.back(gradient)

    def evaluate(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """Mean loss and the share of samples that are labelled right."""
        variables, loss, right = self._variables(parameters), 0.0, 0
        for start in range(0, len(x), EVALUATED_AT_ONCE):
            part = slice(start, start + EVALUATED_AT_ONCE)
            logits = self._forward(variables, Chain(x[part])).value
            loss += cross_entropy(logits, y[part])[0]
            right += int(np.count_nonzero(logits.argmax(1) == y[part]))
        return loss / len(x), right / len(x)

    def warm_up(self, batch: int) -> None:
        """Run everything that steps of `batch` samples will, so that step 0 finds its memory and threads at hand."""
        parameters = np.zeros(self._workload.parameters, np.float32)
        x, y = np.zeros((batch, *self._workload.sample_shape), np.float32), np.zeros(batch, np.int32)
        for _ in range(2):
            self.fixed(parameters, x, y)

    def _variables(self, flat: np.ndarray) -> list[np.ndarray]:
        """Views of the variables in a vector."""
        return [flat[place].reshape(shape) for place, shape in self._places]

    def _sums(
        self, variables: list[np.ndarray], x: np.ndarray, y: np.ndarray, times: np.ndarray | None = None
    ) -> np.ndarray:
        """The gradient, float32 (parameters,), summed over samples, each so many times."""
        chain = self._forward(variables, Chain(x))
        _, gradient = cross_entropy(chain.value, y)
        if times is not None:
            gradient *= times[:, None]
        flat = np.empty(self._workload.parameters, np.float32)
        due = self._variables(flat)
        for number, step in reversed(list(enumerate(chain.steps))):
            if step.put:
                step.put(gradient, due.pop())
            if number:  # nothing needs the gradient with respect to samples
                gradient = step.back(gradient)
        return flat


def cross_entropy(logits: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """The softmax cross-entropy summed over samples, and its gradient with respect to logits, float32 (samples, classes)."""
    samples = np.arange(len(y))
    shifted = logits - logits.max(1, keepdims=True)
    powers = np.exp(shifted)
    totals = powers.sum(1, keepdims=True)
    loss = float((np.log(totals[:, 0]) - shifted[samples, y]).sum())
    gradient = powers / totals
    gradient[samples, y] -= 1
    return loss, gradient
