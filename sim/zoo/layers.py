"""Layers as files have them: variables, and the operations of a forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod


def variable(name: str, *shape: int) -> dict:
    """A variable that is trained."""
    return {"name": name, "shape": list(shape)}


def begins(variables: Iterable[dict], items: int) -> list[dict]:
    """The variables of a layer whose input has so many numbers for a sample: a stage of a pipeline may begin with it."""
    first, *rest = variables
    return [{**first, "activation_items": items}, *rest]


def affine(name: str, *weight: int, out: int) -> Iterator[dict]:
    """PyTorch's names of a layer's weight, of any shape, and its bias of `out` numbers."""
    yield variable(f"{name}.weight", *weight)
    yield variable(f"{name}.bias", out)


def statistics(before: str, numbers: int, *names: str) -> list[dict]:
    """The moving mean and variance of batch normalisation, which are not trained."""
    return [{**variable(f"{before}{name}", numbers), "trained": False} for name in names]


def multiplied(variables: list[dict]) -> int:
    """Numbers of the kernels: of the variables that have more than one dimension."""
    return sum(prod(one["shape"]) for one in variables if len(one["shape"]) > 1)
