"""The master's update by JAX: NumPy's formulas, compiled by XLA.

optax has other forms: its momentum leaves the learning rate out of the velocity, which differs once the rate decays, and its Adam adds
epsilon after the correction of the second moment.
"""

from __future__ import annotations

import numpy as np

from real.engines.jax_setup import jax_on
from real.engines.numpy_optimiser import NumpyOptimiser


class JaxOptimiser(NumpyOptimiser):
    """Applies summed gradients to parameters, on the CPU; as real.training.optimiser.Optimiser."""

    def __init__(self, *rates, threads: int = 1, **named):
        super().__init__(*rates, **named)
        self._jax, self._cpu = jax_on(threads)
        self._sqrt = self._jax.numpy.sqrt
        self._step = self._jax.jit(self._updated, donate_argnames="moments")

    def _there(self, *vectors: np.ndarray) -> list:
        return self._jax.device_put(list(vectors), self._cpu)
