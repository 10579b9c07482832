"""A model to train: a chain of tanh layers of one width, and half the squared error, summed over samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.language.job import Layer


@dataclass(frozen=True)
class Chain:
    """The model and its data.

    Args:
        width: of every layer; a layer has width x width weights.
        depth: number of layers.
        seed: of weights and data.
    """

    width: int = 4
    depth: int = 8
    seed: int = 0

    def layers(self, forward_s: float = 0.0, backward_s: float = 0.0) -> tuple[Layer, ...]:
        """The layers of a job that trains it; seconds of a minibatch, for all layers."""
        one = Layer(self.width**2, forward_s / self.depth, backward_s / self.depth, self.width)
        return (one,) * self.depth

    def weights(self) -> np.ndarray:
        """Weights to begin with, shape (depth x width x width,)."""
        rng = np.random.default_rng([self.seed, 1])
        return rng.normal(size=self.depth * self.width**2) / np.sqrt(self.width)

    def data(self, owner: int, number: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of a rank's minibatch by its number, shape (batch, width) each."""
        rng = np.random.default_rng([self.seed, 2, owner, number])
        return rng.normal(size=(batch, self.width)), np.tanh(rng.normal(size=(batch, self.width)))

    def forward(self, weights: np.ndarray, given: np.ndarray) -> np.ndarray:
        """The output of one layer, shape (samples, width), of its weights, shape (width x width,)."""
        return np.tanh(given @ weights.reshape(self.width, self.width))

    def backward(self, weights: np.ndarray, given: np.ndarray, output: np.ndarray, slope: np.ndarray):
        """The gradients of one layer's weights, flat, and of its input, from that of its output."""
        inner = slope * (1 - output**2)
        return (given.T @ inner).ravel(), inner @ weights.reshape(self.width, self.width).T

    def gradient(self, weights: np.ndarray, given: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The gradient of all weights, flat: the definition that texts are compared with."""
        each = weights.reshape(self.depth, -1)
        outputs = [given]
        for layer in range(self.depth):
            outputs.append(self.forward(each[layer], outputs[-1]))
        found, slope = np.zeros_like(each), outputs[-1] - target
        for layer in reversed(range(self.depth)):
            found[layer], slope = self.backward(each[layer], outputs[layer], outputs[layer + 1], slope)
        return found.ravel()
