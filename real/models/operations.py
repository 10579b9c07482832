"""The operations that models are written in; an engine has a module of them (`on_tensorflow.py`, `on_jax.py`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

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

    def convolve(self, x: Array, kernel: Array) -> Array:
        """Stride 1, padded with zeros to the same height and width; kernel (height, width, channels, filters)."""

    def max_pool(self, x: Array) -> Array:
        """The largest of each 2 x 2; a last odd row or column is dropped."""

    def reshape(self, x: Array, shape: tuple[int, ...]) -> Array:
        """The same numbers in another shape."""

    def rows(self, table: Array, numbers: Array) -> Array:
        """Rows of a table by their numbers, which are floats."""

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
    return import_module(f"real.models.on_{engine}")
