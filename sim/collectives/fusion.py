"""Gradients that are summed while others are computed: when each is ready, and which fit into a buffer together."""

from __future__ import annotations

from collections.abc import Sequence

from sim.model.nominal import FORWARD_SHARE
from sim.model.sizes import ITEM_BYTES


def fuse(pieces: list[slice], fusion_bytes: int) -> list[list[slice]]:
    """Pieces in order, together as long as they fit in a buffer of `fusion_bytes`."""
    buffers: list[list[slice]] = []
    room = 0
    for piece in pieces:
        size_bytes = ITEM_BYTES * (piece.stop - piece.start)
        if not buffers or size_bytes > room:
            buffers.append([])
            room = fusion_bytes
        buffers[-1].append(piece)
        room -= size_bytes
    return buffers


def layer_shares(sizes: list[int], order: str) -> list[float]:
    """Each variable's share of a gradient's time, shape (variables,); the forward pass before all of them has the rest.

    Args:
        order: after the forward pass each takes time in proportion to its number of `parameters`, or `uniform`; or all are ready
            at the `end`.
    """
    if order == "end":
        return [0.0] * len(sizes)
    weights = sizes if order == "parameters" else [1] * len(sizes)
    whole = sum(weights)  # once: a model may have 10^5 variables
    return [(1 - FORWARD_SHARE) * weight / whole for weight in weights]


def hops(hosts: Sequence[int]) -> list[bool]:
    """Of each hop of a binomial tree among ranks on these hosts, from the shortest on, whether any message of it is between hosts."""
    found, distance = [], 1
    while distance < len(hosts):
        found.append(any(hosts[to] != hosts[to - distance] for to in range(distance, len(hosts), 2 * distance)))
        distance *= 2
    return found
