"""The messages of an allreduce by its algorithm: their rounds, and the bytes that pass the busiest link."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from sim.language.moves import Move, moves
from sim.model.sizes import ITEM_BYTES

ITEMS = 2**12  # of a rank's share


class Travel(NamedTuple):
    """The messages of an allreduce on a link, one after another.

    Args:
        rounds, between: messages between hosts, and the bytes that pass the busiest port, a share of those that are summed.
        inner, within: messages within a host, while none passes between hosts, and their bytes likewise.
    """

    rounds: float
    between: float
    inner: float
    within: float


@lru_cache(maxsize=256)
def travel(algorithm: str, hosts: int, each: int) -> Travel:
    """The messages of an algorithm among the ranks of so many hosts, each with so many ranks, in order."""
    ranks = hosts * each
    if algorithm == "ring":  # Patarasuk and Yuan (2009)
        rounds, share = 2.0 * (ranks - 1), 2 * (ranks - 1) / ranks
        return Travel(rounds, share, 0.0, 0.0) if hosts > 1 else Travel(0.0, 0.0, rounds, share)
    host, found = [rank // each for rank in range(ranks)], np.zeros(4)
    for level in _levels(algorithm, host):
        ports, inner = defaultdict[tuple[str, int], float](float), 0.0
        for rank, to, size in level:
            if host[rank] == host[to]:
                inner = max(inner, size)
            else:
                ports["leaves", host[rank]] += size
                ports["comes", host[to]] += size
        passed = max(ports.values(), default=0.0)
        found += (1, passed, 0, 0) if ports else (0, 0, inner > 0, inner)
    found[[1, 3]] /= ITEM_BYTES * ITEMS * ranks
    return Travel(*found.tolist())


def _levels(algorithm: str, host: list[int]) -> list[list[tuple[int, int, int]]]:
    """The messages (sender, receiver, bytes) that are on the way at once: a rank's next ones are behind what it has taken or waited for."""
    todo = {rank: moves(algorithm, rank, host, ITEMS * len(host)) for rank in range(len(host))}
    at, left, held = [0 for _ in host], [0 for _ in host], dict[int, Move]()
    sent = defaultdict[tuple[int, int | None], deque[int]](deque)  # levels of messages from one rank to another
    found = defaultdict[int, list[tuple[int, int, int]]](list)
    while todo:
        for rank, text in list(todo.items()):
            for move in chain([held.pop(rank)] if rank in held else [], text):
                if move.to is not None:
                    found[at[rank]].append((rank, move.to, move.bytes))
                    sent[rank, move.to].append(at[rank])
                    left[rank] = at[rank] + 1
                elif move.frm is None:
                    at[rank] = max(at[rank], left[rank])
                elif before := sent[move.frm, rank]:
                    at[rank] = 1 + max(at[rank], before.popleft())
                else:
                    held[rank] = move
                    break
            else:
                del todo[rank]
    return [found[level] for level in sorted(found)]


@lru_cache(maxsize=256)
def added(algorithm: str, hosts: int, each: int) -> float:
    """The bytes that the busiest rank adds in an allreduce, a share of those that are summed."""
    ranks = hosts * each
    if algorithm == "ring":
        return (ranks - 1) / ranks
    host = [rank // each for rank in range(ranks)]
    each_adds = (
        sum(move.bytes for move in moves(algorithm, rank, host, ITEMS * ranks) if move.adds) for rank in range(ranks)
    )
    return max(each_adds) / ITEM_BYTES / ITEMS / ranks
