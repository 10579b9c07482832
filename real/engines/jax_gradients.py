"""Gradients by JAX: as real.training.gradients, each computation compiled by XLA for every shape that it meets."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from real.engines.jax_setup import jax_on
from real.models import BY_BATCH, forward_of
from real.training.gradients import CLOCK_S, EVALUATED_AT_ONCE, Copies, Gradient, check_partitions
from sim.model.workload import Workload

NOBODYS = -1  # the label of a sample that fills up a shape
SHAPES = 256  # samples: minibatches of `weighted` are filled up to a multiple


class JaxGradients:
    """A workload's gradients by JAX, as real.training.gradients.Gradients; every method returns when its results are in NumPy.

    JAX has no clock within a compiled computation. `anytime` therefore calls a compiled micro-batch in a loop of the host, which
    reads the clock when the device has finished one.

    Args:
        threads: of XLA, on a CPU.
        device: cpu or gpu.
        gpu_index: the local rank, if gpu.

    Raises:
        WrongSetting: the workload has no model, or the device does not exist or is not the one that the process began with.
    """

    def __init__(self, workload: Workload, threads: int = 1, device: str = "cpu", gpu_index: int = 0):
        self._forward, self._workload = forward_of(workload, "jax"), workload
        self._jax, self._device = jax_on(threads, device, gpu_index)
        jit = self._jax.jit
        self._whole, self._apart = jit(self._of_batch), jit(self._variables)
        self._weighted = jit(self._of_weighted)
        self._first = jit(self._first_micro_batch, static_argnames="size")
        self._next = jit(self._next_micro_batch, static_argnames="size", donate_argnames="state")
        self._joined = jit(self._flat)
        self._evaluate = jit(self._evaluation)

    def fixed(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> Gradient:
        """The gradient of a whole minibatch, x (samples, *sample_shape) float32 and y (samples,) int32."""
        call = Call(self._copied, parameters, x, y)
        gradients, loss = self._finished(self._whole(*call.there))
        return self._gradient(call, gradients, len(x), loss, call.elapsed_s)

    def weighted(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The sum, float32 (parameters,), of a minibatch that has each sample so many times, `times` float32 (samples,).

        Samples that count 0 times are added, so that few shapes are compiled for.
        """
        more = -len(x) % SHAPES
        filled = [np.pad(array, [(0, more)] + [(0, 0)] * (array.ndim - 1)) for array in (x, y, times)]
        return np.asarray(self._weighted(*self._there(parameters, *filled)))

    def anytime(
        self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray, partitions: int, remaining_s: float
    ) -> Gradient:
        """The gradient of as many micro-batches as start within `remaining_s` of this call, at least one; the last overruns.

        Raises:
            WrongSetting: there are fewer samples than partitions.
        """
        check_partitions(partitions, len(x))
        call, size = Call(self._copied, parameters, x, y), len(x) // partitions
        flat, *data = call.there
        batch = self._apart(flat), *data  # once, not in every micro-batch
        state = self._finished(self._first(*batch, size=size))
        computed_s, done = call.elapsed_s, 1
        while done < partitions and remaining_s - computed_s > CLOCK_S:
            state = self._finished(self._next(state, *batch, size=size))
            computed_s, done = call.elapsed_s, done + 1
        _, gradients, loss = state
        return self._gradient(call, gradients, done * size, loss, computed_s)

    def evaluate(self, parameters: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """Mean loss and the share of samples that are labelled right."""
        loss = right = 0.0
        for start in range(0, len(x), EVALUATED_AT_ONCE):
            part = slice(start, start + EVALUATED_AT_ONCE)
            more, hits = self._evaluate(*self._there(parameters, *self._shaped(x[part], y[part])))
            loss, right = loss + float(more), right + int(hits)
        return loss / len(x), right / len(x)

    def _shaped(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Samples as they are evaluated: none added where others would change their answers."""
        return (x, y) if self._workload.name in BY_BATCH else _filled_up(x, y)

    def warm_up(self, batch: int, partitions: int | None = None) -> None:
        """Compile and run everything that steps of `batch` samples will, so that step 0 is a step like any other."""
        parameters = np.zeros(self._workload.parameters, np.float32)
        x, y = np.zeros((batch, *self._workload.sample_shape), np.float32), np.zeros(batch, np.int32)
        for _ in range(2):
            if partitions is None:
                self.fixed(parameters, x, y)
            else:
                self.anytime(parameters, x, y, partitions, remaining_s=3600.0)

    # ---- between host and device

    def _there(self, *arrays: np.ndarray) -> list:
        """Arrays on the device."""
        return self._jax.device_put(list(arrays), self._device)

    def _copied(self, *arrays: np.ndarray) -> list:
        """Arrays on the device, when they are there."""
        return self._jax.block_until_ready(self._there(*arrays))

    def _finished(self, results):
        """Results, when the device has them."""
        return self._jax.block_until_ready(results)

    def _gradient(self, call: Call, gradients: list, samples: int, loss, computed_s: float) -> Gradient:
        joined = self._jax.block_until_ready(self._joined(gradients))
        copies = Copies(call.there_s, call.elapsed_s, call.size_bytes)
        return Gradient(np.asarray(joined), samples, float(loss), computed_s, copies)

    # ---- what is compiled

    def _variables(self, flat) -> list:
        ends = np.cumsum([v.size for v in self._workload.variables])[:-1]
        parts = self._jax.numpy.split(flat, ends)
        return [part.reshape(v.shape) for part, v in zip(parts, self._workload.variables, strict=True)]

    def _flat(self, arrays: list):
        return self._jax.numpy.concatenate([array.reshape(-1) for array in arrays])

    def _losses(self, variables: list, x, y):
        """Logits, and the softmax cross-entropy of each sample."""
        logits = self._forward(variables, x)
        by_class = -self._jax.nn.log_softmax(logits)
        return logits, self._jax.numpy.take_along_axis(by_class, y[:, None], 1)[:, 0]

    def _loss(self, variables: list, x, y):
        return self._losses(variables, x, y)[1].sum()

    def _weighted_loss(self, variables: list, x, y, times):
        return (self._losses(variables, x, y)[1] * times).sum()

    def _gradients(self, variables: list, x, y):
        loss, gradients = self._jax.value_and_grad(self._loss)(variables, x, y)
        return gradients, loss

    def _of_batch(self, flat, x, y):
        return self._gradients(self._variables(flat), x, y)

    def _of_weighted(self, flat, x, y, times):
        return self._flat(self._jax.grad(self._weighted_loss)(self._variables(flat), x, y, times))

    def _micro_batch(self, done, variables, x, y, size: int):
        cut = partial(self._jax.lax.dynamic_slice_in_dim, start_index=done * size, slice_size=size)
        return self._gradients(variables, cut(x), cut(y))

    def _first_micro_batch(self, variables, x, y, size: int):
        gradients, loss = self._micro_batch(0, variables, x, y, size)
        return self._jax.numpy.int32(1), gradients, loss

    def _next_micro_batch(self, state, variables, x, y, size: int):
        """The sums stay where they are: the memory of the old ones is given to the new."""
        done, sums, loss = state
        gradients, more = self._micro_batch(done, variables, x, y, size)
        return done + 1, [total + gradient for total, gradient in zip(sums, gradients, strict=True)], loss + more

    def _evaluation(self, flat, x, y):
        jnp, real = self._jax.numpy, y != NOBODYS
        logits, losses = self._losses(self._variables(flat), x, jnp.maximum(y, 0))
        return (losses * real).sum(), ((logits.argmax(1) == y) & real).sum()


class Call:
    """A call for a gradient, by the clock of this process.

    Args:
        copied: puts arrays on the device, and returns when they are there.
        arrays: parameters and minibatch.

    Attributes:
        there: the arrays on the device.
        there_s: seconds of the call until they were there.
        size_bytes: of them.
    """

    def __init__(self, copied: Callable[..., list], *arrays: np.ndarray):
        self._called_s = time.perf_counter()
        self.there = copied(*arrays)
        self.there_s, self.size_bytes = self.elapsed_s, sum(array.nbytes for array in arrays)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the call."""
        return time.perf_counter() - self._called_s


def _filled_up(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples of nobody's added, up to the next power of 2 or all that are evaluated at once: few shapes to compile for."""
    samples = min(EVALUATED_AT_ONCE, 1 << (len(x) - 1).bit_length())
    more = samples - len(x)
    return np.pad(x, [(0, more)] + [(0, 0)] * (x.ndim - 1)), np.pad(y, (0, more), constant_values=NOBODYS)
