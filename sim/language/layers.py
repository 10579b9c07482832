"""The layers of a job's model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rows:
    """The rows of a sparse layer, such as an embedding, whose gradient has those alone that minibatches touch.

    Args:
        count: of all rows.
        touched: how many of them so many minibatches touch together.
    """

    count: int
    touched: Callable[[int], int]


@dataclass(frozen=True)
class Layer:
    """One layer of the model.

    Args:
        items: numbers in its weights.
        forward_s, backward_s: seconds of a core of speed 1 for the passes of a minibatch; those of a part of it are in proportion.
        activation_items: numbers in its input, for each sample; None: nobody knows, and no stage of a pipeline can begin with it.
        rows: of a sparse layer.
        server: that holds it, by its rank; None: servers hold layers in turn.
    """

    items: int
    forward_s: float = 0.0
    backward_s: float = 0.0
    activation_items: int | None = 0
    rows: Rows | None = None
    server: int | None = None


def stretches(items: Sequence[int], least: float) -> list[tuple[int, int]]:
    """Layers in stretches (first, stop) of at least so many items, the last layers first; the first layers are what is left.

    Args:
        items: of each layer.

    >>> stretches([1, 2, 3, 4], 5)
    [(2, 4), (0, 2)]
    """
    found, stop = [], len(items)
    for first in reversed(range(len(items))):
        if sum(items[first:stop]) >= least or first == 0:
            found.append((first, stop))
            stop = first
    return found


def stages(layers: Sequence[Any], ranks: int) -> list[int]:
    """The first layer of each rank's stage of a pipeline, and the end of the last, shape (ranks + 1,).

    Stages are as even as layers allow that one can begin with: the first, and those that say what their inputs have.
    """
    ends = [k for k, layer in enumerate(layers) if k == 0 or layer.activation_items is not None]
    found = [len(ends) * rank // ranks for rank in range(ranks)]
    return [*(ends[k] for k in found), len(layers)]
