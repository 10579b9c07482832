"""The exchanges of all ranks as levels of arrays: what a collective does, for a world that has no ranks one by one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sim import collectives
from sim.collectives.base import Exchange
from sim.collectives.bounds import Bound, Bounds

NONE = -1
POST, LEAVE, TAKE = 0, 1, 2  # kinds of operation: hand over a message, wait until it has left, take one


class Level(NamedTuple):
    """A level of a call, which ranks do at once: each of `senders` posts a message, then each of `takers` takes one.

    Args:
        senders, posted: ranks, and the number of each one's message, shape (posts,). All ranks in order are a slice.
        leaving, left: of those senders that take nothing, the ranks that go on once their message has left, and its number.
        takers, taken: ranks, and the number of the message that each takes, likewise, shape (takes,).
        own: the message that each taker's exchange has posted and that must have left before it goes on; NONE if there is none.
        adds: which of the takers add up what they take.
    """

    senders: np.ndarray | slice
    posted: np.ndarray
    leaving: np.ndarray
    left: np.ndarray
    takers: np.ndarray | slice
    taken: np.ndarray
    own: np.ndarray
    adds: np.ndarray


class Schedule(NamedTuple):
    """One collective call of all ranks.

    Args:
        levels: in an order in which every message is posted before it is taken.
        size_bytes: of each message, shape (messages,); or (calls, messages), of several calls alike.
        order: the messages that each rank takes, in the order in which it does, shape (ranks, most); NONE where a rank takes fewer.
        ahead: ranks that go on before a message has left, and wait for it at the end of the call.
        slots: of each level, where the message that each taker takes is in its row of `order`, shape (takes,) or one for all.
        sources: the sender of each message of `order`, shape (most, ranks); NONE likewise.
        listed: `operations`, once they have been asked for.
    """

    levels: list[Level]
    size_bytes: np.ndarray
    order: np.ndarray
    ahead: np.ndarray
    slots: list[np.ndarray | int]
    sources: np.ndarray
    listed: list[np.ndarray]

    def operations(self) -> np.ndarray:
        """What ranks do, one operation after another, level by level; shape (operations, 6).

        Each has its kind, POST, LEAVE or TAKE, and rank, message, slot, own and whether it adds, as above.
        """
        if not self.listed:
            ranks, none = np.arange(len(self.order)), np.empty((0, 6), int)  # of one rank, that does nothing
            each = (_operations(*both, ranks) for both in zip(self.levels, self.slots, strict=True))
            self.listed.append(np.concatenate([none, *each]))
        return self.listed[0]


def _operations(level: Level, slot: np.ndarray | int, ranks: np.ndarray) -> np.ndarray:
    parts = (
        (POST, ranks[level.senders], level.posted, NONE, NONE, 0),
        (LEAVE, level.leaving, level.left, NONE, NONE, 0),
        (TAKE, ranks[level.takers], level.taken, slot, level.own, level.adds),
    )
    return np.concatenate([np.stack(np.broadcast_arrays(*part), axis=-1) for part in parts])


Drafts = defaultdict[int, tuple[list, list, list, list]]


def schedule(exchanges: Iterable[Iterable[Exchange]]) -> Schedule:
    """Levels of the exchanges of rank 0, 1, ...

    A rank's next exchange is at a level after that of its last. A message is taken at the level at which it was posted, or later.

    Raises:
        ValueError: some rank takes a message that nobody sends.
    """
    lists = [list(own) for own in exchanges]
    ranks, takes = len(lists), [list[int]() for _ in lists]
    size_bytes: list[int] = []
    drafts: Drafts = defaultdict(lambda: ([], [], [], []))  # by level: senders, posted; ranks that leave; takers
    # messages on their way from one rank to another: number and level
    sent: defaultdict[tuple[int, int], deque[tuple[int, int]]] = defaultdict(deque)
    at, free = [0] * ranks, [0] * ranks  # the next exchange of each rank, and the level from which it may begin
    open_post: list[int | None] = [None] * ranks  # of an exchange that has posted and has not taken yet
    waiting: dict[tuple[int, int], int] = {}  # the receiver that waits for a message from one rank to another
    runnable = deque(range(ranks))
    while runnable:
        rank = runnable.popleft()
        while at[rank] < len(lists[rank]):
            exchange = lists[rank][at[rank]]
            if exchange.to is not None and open_post[rank] is None:
                number = open_post[rank] = len(size_bytes)
                size_bytes.append(exchange.sent_bytes)
                draft = drafts[free[rank]]
                draft[0].append(rank)
                draft[1].append(number)
                sent[rank, exchange.to].append((number, free[rank]))
                if waiting.pop((rank, exchange.to), None) is not None:
                    runnable.append(exchange.to)
                if exchange.source is None and not exchange.ahead:
                    draft[2].append((rank, number))
            level = free[rank]
            if exchange.source is not None:
                if not sent[exchange.source, rank]:
                    waiting[exchange.source, rank] = rank
                    break
                number, posted_at = sent[exchange.source, rank].popleft()
                level = max(level, posted_at)
                posted = open_post[rank]
                own = NONE if posted is None or exchange.ahead else posted
                drafts[level][3].append((rank, number, own, exchange.adds))
                takes[rank].append(number)
            at[rank], free[rank], open_post[rank] = at[rank] + 1, level + 1, None
    if any(done < len(own) for done, own in zip(at, lists, strict=True)):
        raise ValueError("a rank takes a message that nobody sends")
    order = np.full((ranks, max(map(len, takes), default=0)), NONE)
    for rank, numbers in enumerate(takes):
        order[rank, : len(numbers)] = numbers
    ahead = [rank for rank, own in enumerate(lists) if any(exchange.ahead for exchange in own)]
    levels = [_level(ranks, *drafts[number]) for number in sorted(drafts)]
    places = np.empty(len(size_bytes), int)  # of each message among those that its receiver takes
    for numbers in takes:
        places[numbers] = np.arange(len(numbers))
    slots = [_sole(places[done.taken]) for done in levels]
    senders = np.full(len(size_bytes) + 1, NONE)  # and of none, the last
    for done in levels:
        senders[done.posted] = np.arange(ranks)[done.senders]
    sizes = np.array(size_bytes, None if _symbolic(size_bytes) else float)
    return Schedule(levels, sizes, order, np.array(ahead, int), slots, senders[order].T, [])


def _symbolic(size_bytes: list) -> bool:
    """Whether sizes follow from those of a whole that is not known yet."""
    return any(isinstance(size, Bound) for size in size_bytes)


class Template(NamedTuple):
    """The calls of an algorithm whose exchanges are the same whatever the size of the vector.

    Args:
        plan: whose messages have no sizes.
        bounds: what sizes follow from.
        numbers: of the bound that is each message's size, shape (messages,).
    """

    plan: Schedule
    bounds: Bounds
    numbers: np.ndarray

    def sized(self, starts: np.ndarray, stops: np.ndarray) -> Schedule:
        """Several calls alike, on vectors with these bounds."""
        return self.plan._replace(size_bytes=self.bounds.values(starts, stops)[self.numbers].T.astype(float))


@lru_cache(maxsize=8)
def template(algorithm: str, hosts: tuple[int, ...]) -> Template | None:
    """The template of an algorithm by its name (not auto); None where the number of exchanges depends on the size."""
    bounds = Bounds()
    try:
        plan = schedule(collectives.exchanges(algorithm, rank, hosts, bounds.whole) for rank in range(len(hosts)))
    except TypeError:  # it counts chunks
        return None
    numbers = np.array([size.number for size in plan.size_bytes], int)
    return Template(plan._replace(size_bytes=np.empty(0)), bounds, numbers)


def _level(ranks: int, senders, posted, leaving, taking) -> Level:
    posts = np.array(sorted(zip(senders, posted, strict=True)), int).reshape(-1, 2).T
    leaves, takes = np.array(leaving, int).reshape(-1, 2).T, np.array(sorted(taking), int).reshape(-1, 4).T
    (sender, post), (leave, left), (take, taken, own, adds) = posts, leaves, takes
    return Level(_all_of(ranks, sender), post, leave, left, _all_of(ranks, take), taken, own, adds.astype(bool))


def _all_of(count: int, ranks: np.ndarray) -> np.ndarray | slice:
    return slice(None) if len(ranks) == count else ranks


def _sole(places: np.ndarray) -> np.ndarray | int:
    return int(places[0]) if len(places) and (places == places[0]).all() else places
