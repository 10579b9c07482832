"""real.models.operations.Operations by NumPy, those of dense layers alone; each remembers how gradients pass back through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Step(NamedTuple):
    """An operation that was done.

    Args:
        back: the gradient with respect to what it took, from that with respect to what it gave; float32 (samples, width) both.
        put: writes the gradient with respect to its variable, summed over samples, into an array; None without a variable.
    """

    back: Callable[[np.ndarray], np.ndarray]
    put: Callable[[np.ndarray, np.ndarray], object] | None = None


class Chain:
    """Numbers that operations gave, one after another.

    Args:
        value: float32 (samples, width).
        steps: the operations, the first one first.
    """

    def __init__(self, value: np.ndarray, steps: tuple[Step, ...] = ()):
        self.value, self.steps = value, steps

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the numbers."""
        return self.value.shape

    def __matmul__(self, weights: np.ndarray) -> Chain:
        before, weights = self.value, np.asarray(weights)
        put = lambda gradient, out: np.matmul(before.T, gradient, out=out)  # noqa: E731
        return self.then(before @ weights, lambda gradient: gradient @ weights.T, put)

    def then(self, value: np.ndarray, *step: Callable) -> Chain:
        """After one more operation."""
        return Chain(value, (*self.steps, Step(*step)))


def add_bias(x: Chain, bias: np.ndarray) -> Chain:
    """As the operation.

    Raises:
        ValueError: there is not one bias for each number.
    """
    if bias.shape != x.shape[1:]:
        raise ValueError(f"a bias of shape {bias.shape} for numbers of shape {x.shape[1:]}")
    return x.then(x.value + bias, lambda gradient: gradient, lambda gradient, out: gradient.sum(0, out=out))


def relu(x: Chain) -> Chain:
    """As the operation."""
    found = np.maximum(x.value, 0)
    return x.then(found, lambda gradient: gradient * (found > 0))


def sigmoid(x: Chain) -> Chain:
    """As the operation; by tanh, which does not overflow."""
    found = 0.5 + 0.5 * np.tanh(0.5 * x.value)
    return x.then(found, lambda gradient: gradient * found * (1 - found))
