"""The exchanges of all ranks as levels, which ranks do at once: how a collective's messages follow one another."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import NamedTuple

from sim.collectives.base import Exchange


class Level(NamedTuple):
    """A level of a call: each of some ranks posts a message, then each of some takes one.

    Args:
        posted, taken: ranks, each with the number of its message.
    """

    posted: list[tuple[int, int]]
    taken: list[tuple[int, int]]


class Schedule(NamedTuple):
    """One collective call of all ranks.

    Args:
        levels: in an order in which every message is posted before it is taken.
        size_bytes: of each message.
    """

    levels: list[Level]
    size_bytes: list[int]


def schedule(exchanges: Iterable[Iterable[Exchange]]) -> Schedule:
    """Levels of the exchanges of rank 0, 1, ...

    A rank's next exchange is at a level after that of its last. A message is taken at the level at which it was posted, or later.

    Raises:
        ValueError: some rank takes a message that nobody sends.
    """
    lists = [list(own) for own in exchanges]
    ranks, size_bytes = len(lists), list[int]()
    levels: defaultdict[int, Level] = defaultdict(lambda: Level([], []))
    # messages on their way from one rank to another: number and level
    sent: defaultdict[tuple[int, int], deque[tuple[int, int]]] = defaultdict(deque)
    at, free = [0] * ranks, [0] * ranks  # the next exchange of each rank, and the level from which it may begin
    has_posted = [False] * ranks  # in an exchange that has not taken yet
    waiting: set[tuple[int, int]] = set()  # senders and receivers that wait for them
    runnable = deque(range(ranks))
    while runnable:
        rank = runnable.popleft()
        while at[rank] < len(lists[rank]):
            exchange, level = lists[rank][at[rank]], free[rank]
            if exchange.to is not None and not has_posted[rank]:
                has_posted[rank] = True
                levels[level].posted.append((rank, len(size_bytes)))
                sent[rank, exchange.to].append((len(size_bytes), level))
                size_bytes.append(exchange.sent_bytes)
                if (rank, exchange.to) in waiting:
                    waiting.remove((rank, exchange.to))
                    runnable.append(exchange.to)
            if exchange.source is not None:
                if not sent[exchange.source, rank]:
                    waiting.add((exchange.source, rank))
                    break
                number, posted_at = sent[exchange.source, rank].popleft()
                level = max(level, posted_at)
                levels[level].taken.append((rank, number))
            at[rank], free[rank], has_posted[rank] = at[rank] + 1, level + 1, False
    if any(done < len(own) for done, own in zip(at, lists, strict=True)):
        raise ValueError("a rank takes a message that nobody sends")
    return Schedule([levels[number] for number in sorted(levels)], size_bytes)
