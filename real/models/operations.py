"""The operations that models are written in; an engine has a module of them (`on_tensorflow.py`, `on_numpy.py`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from sim.base.home import installed

EPSILON = 1e-5  # as PyTorch's normalisations have it
NEVER = -1e9  # a score that softmax makes 0 of
Array = Any  # of the engine's own


class Operations(Protocol):
    """One function each, float32 unless said otherwise; samples come first, channels last."""

    def relu(self, x: Array) -> Array:
        """max(x, 0)."""

    def sigmoid(self, x: Array) -> Array:
        """1 / (1 + exp(-x))."""

    def tanh(self, x: Array) -> Array:
        """The hyperbolic tangent."""

    def add_bias(self, x: Array, bias: Array) -> Array:
        """A bias for each number of the last dimension."""

    def convolve(self, x: Array, kernel: Array, stride: int = 1) -> Array:
        """Padded with zeros to the same height and width, over the stride; kernel (height, width, channels, filters)."""

    def max_pool(self, x: Array) -> Array:
        """The largest of each 2 x 2; a last odd row or column is dropped."""

    def reshape(self, x: Array, shape: tuple[int, ...]) -> Array:
        """The same numbers in another shape."""

    def rows(self, table: Array, numbers: Array) -> Array:
        """Rows of a table by their numbers, which are floats."""

    def transpose(self, x: Array, order: tuple[int, ...]) -> Array:
        """Dimensions in another order."""

    def mean(self, x: Array, over: tuple[int, ...]) -> Array:
        """Over some dimensions, which are left out."""

    def normalise(self, x: Array, over: tuple[int, ...]) -> Array:
        """Less its mean, over its standard deviation, each over some dimensions; EPSILON is added to the variance."""

    def softmax(self, x: Array) -> Array:
        """Along the last dimension."""

    def before(self, x: Array) -> Array:
        """Of the last two dimensions, which are equal, the lower triangle and the diagonal; far below 0 above it."""

    def concatenate(self, parts: list[Array]) -> Array:
        """Side by side, along dimension 1."""

    def split(self, x: Array, parts: int) -> list[Array]:
        """Equal parts along dimension 1."""

    def last_state(self, cell: Callable[[Any, Array], Any], state: Any, x: Array) -> Any:
        """The `state` after state = cell(state, slice) for every slice along dimension 1."""

    def zeros(self, like: Array, width: int) -> Array:
        """(samples of `like`, width)."""


def operations(engine: str) -> Operations:
    """Those of an engine, which is imported now."""
    return import_module(installed(f"real.models.on_{engine}"))
