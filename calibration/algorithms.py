"""The algorithm of a log that does not name it: candidates are weighed by their errors on several sizes of a cluster.

One number of ranks does not determine it: every algorithm is then a straight line of seconds over bytes, on a link of its own. A
profile therefore keeps each candidate's link beside its weight, and simulations of other numbers of ranks differ by that ignorance
(sim.answers.candidates).
"""

from __future__ import annotations

from collections import defaultdict, deque
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.language import library
from sim.language.moves import Move, moves
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

FLOOR = 0.02  # standard deviation of the logarithm of a time: no algorithm explains times better than its model is
MOST_RANKS = 512  # beyond which moves are not laid out
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


def prior(hosts: int, each: int) -> dict[str, float]:
    """How likely NCCL's candidates are, by name, on hosts with so many GPUs each, before any row; at MOST_RANKS at most."""
    found = library.prior(library.NCCL, np.inf, each == 1)
    return found if hosts * each <= MOST_RANKS else {"ring": 1.0}


def weights(off: Mapping[str, float], told: int, before: Mapping[str, float]) -> dict[str, float]:
    """The weights of candidates, which sum to 1: how likely each was before, times the likelihood of normal errors of unknown variance.

    Args:
        off: root mean square of the logarithm of predicted over measured, by candidate.
        told: independent numbers that were measured, less those that each candidate fits to them; at 0 or below they tell nothing.
        before: how likely each was before.
    """
    logs = {name: np.log(before[name]) - max(0, told) / 2 * np.log(error**2 + FLOOR**2) for name, error in off.items()}
    most = max(logs.values(), default=0.0)
    likely = {name: float(np.exp(log - most)) for name, log in logs.items()}
    return {name: value / sum(likely.values()) for name, value in likely.items()}


def note(found: Mapping[str, float], told: int) -> str:
    """The candidates as text."""
    if told < 1:
        return "too few sizes of a cluster to tell which algorithm sums: --set algorithm=unknown simulates all, each on its own link"
    listed = ", ".join(f"{name} {weight:.2f}" for name, weight in sorted(found.items(), key=lambda one: -one[1]))
    return f"algorithms weighed by how well they explain the times: {listed}; --set algorithm=unknown simulates their mixture"
