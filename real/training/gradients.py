"""Gradients over one flat parameter vector, of a minibatch."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from real.models import forward_of
from real.training.tensorflow_setup import tensorflow
from sim.model.workload import Workload

EVALUATED_AT_ONCE = 500  # samples; 10,000 CIFAR-10 pictures at once would take gigabytes


class Gradient(NamedTuple):
    """A sum over samples.

    Args:
        sum: float32 (parameters,), a read-only view.
        computed_s: seconds from the call until the gradients were there; joining them into one vector comes after.
    """

    sum: np.ndarray
    computed_s: float


class Gradients:
    """A workload's gradients by TensorFlow; every method returns when its results are in NumPy.

    Parameters and gradients are float32 (parameters,), the workload's variables one after another. Gradients are
    sums over samples of the softmax cross-entropy's, without weight decay, and read-only views.

    Args:
        threads: of TensorFlow, within and between operations.
        device: cpu or gpu.
        gpu_index: the local rank, if gpu.

    Raises:
        WrongSetting: a workload without a model, a device that is not there, or not what the process began with.
    """

    def __init__(self, workload: Workload, threads: int = 1, device: str = "cpu", gpu_index: int = 0):
        self._forward = forward_of(workload)
        self._workload, self._device = workload, device
        self._tf = tf = tensorflow(threads, device, gpu_index)
        batch = (
            tf.TensorSpec((workload.parameters,), tf.float32),
            tf.TensorSpec((None, *workload.sample_shape), tf.float32),
            tf.TensorSpec((None,), tf.int32),
        )
        self._fixed = tf.function(self._fixed_graph, input_signature=batch, autograph=False)
        times = (tf.TensorSpec((None,), tf.float32),)
        self._weighted = tf.function(self._weighted_graph, input_signature=batch + times, autograph=False)
        self._evaluate = tf.function(self._evaluate_graph, input_signature=batch, autograph=False)

    def fixed(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> Gradient:
        """The gradient of a whole minibatch, x (samples, *sample_shape) float32 and y (samples,) int32."""
        called_s = time.time()
        gradient, computed_s = self._fixed(parameters, x, y)
        return Gradient(np.asarray(gradient), float(computed_s) - called_s)

    def weighted(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The sum, float32 (parameters,), of a minibatch that has each sample so many times, `times` float32 (samples,)."""
        return np.asarray(self._weighted(parameters, x, y, times))

    def evaluate(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """Mean loss and the share of samples that are labelled right."""
        loss = right = 0.0
        for start in range(0, len(x), EVALUATED_AT_ONCE):
            part = slice(start, start + EVALUATED_AT_ONCE)
            more, hits = self._evaluate(parameters, x[part], y[part])
            loss, right = loss + float(more), right + int(hits)
        return loss / len(x), right / len(x)

    def warm_up(self, batch: int) -> None:
        """Trace and run everything that steps of `batch` samples will, so that step 0 is a step like any other."""
        parameters = np.zeros(self._workload.parameters, np.float32)
        x, y = np.zeros((batch, *self._workload.sample_shape), np.float32), np.zeros(batch, np.int32)
        for _ in range(2):  # the first call traces, the second is the first to find its buffers warm
            self.fixed(parameters, x, y)

    def _variables(self, flat) -> list:
        parts = self._tf.split(flat, [v.size for v in self._workload.variables])
        return [self._tf.reshape(part, v.shape) for part, v in zip(parts, self._workload.variables, strict=True)]

    def _flat(self, tensors):
        return self._tf.concat([self._tf.reshape(t, (-1,)) for t in tensors], 0)

    def _loss(self, logits, y, times=None):
        losses = self._tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        return self._tf.reduce_sum(losses if times is None else losses * times)

    def _gradients(self, variables: list, x, y, times=None):
        with self._tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss = self._loss(self._forward(variables, x), y, times)
        return [self._tf.convert_to_tensor(g) for g in tape.gradient(loss, variables)]  # an embedding's are rows

    def _fixed_graph(self, flat, x, y):
        gradients = self._gradients(self._variables(flat), x, y)
        computed_s = self._clock_after(gradients)
        with self._tf.control_dependencies([computed_s]):
            return self._flat(gradients), computed_s

    def _weighted_graph(self, flat, x, y, times):
        return self._flat(self._gradients(self._variables(flat), x, y, times))

    def _evaluate_graph(self, flat, x, y):
        tf = self._tf
        logits = self._forward(self._variables(flat), x)
        right = tf.argmax(logits, 1, output_type=tf.int32) == y
        return self._loss(logits, y), tf.math.count_nonzero(right)

    def _clock_after(self, tensors):
        """The wall clock, seconds, read when `tensors` are there."""
        with self._tf.control_dependencies(self._finished(tensors)):
            return self._tf.timestamp()

    def _finished(self, sums) -> list:
        """The tensors that must be there before the clock is read: the sums, or on a GPU, which only queues its work, a number of each."""
        if self._device == "cpu":
            return list(sums)
        with self._tf.device("CPU:0"):
            return [self._tf.identity(self._tf.reshape(total, (-1,))[0]) for total in sums]
