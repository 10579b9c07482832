"""The exchanges of ranks that share hosts, as levels of arrays. A rank goes on when a neighbour has copied what it handed over."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sim.collectives.base import Exchange

Pairs = tuple[np.ndarray, np.ndarray]  # ranks, and the message of each


class Side(NamedTuple):
    """Messages at ports of one direction.

    Args:
        hosts: of the ports, shape (ports,).
        messages: at each, those of lower senders first, shape (ports, most); filled with the number of all messages.
        alone: each port has one message at most.
        own: whether a port is one rank's alone, shape (ports,).
    """

    hosts: np.ndarray
    messages: np.ndarray
    alone: bool
    own: np.ndarray

    @classmethod
    def of(cls, hosts: np.ndarray, numbers: np.ndarray, senders: np.ndarray, owners: np.ndarray) -> Side:
        """The side of some messages, by the hosts whose ports they pass, and the ranks there that send or take them."""
        messages = len(senders)
        by_host: defaultdict[int, list[int]] = defaultdict(list)
        for number in numbers[np.argsort(senders[numbers], kind="stable")].tolist():
            by_host[int(hosts[number])].append(number)
        most = max(map(len, by_host.values()), default=0)
        filled = np.full((len(by_host), most), messages)
        for row, several in zip(filled, by_host.values(), strict=True):
            row[: len(several)] = several
        own = np.array([len(set(owners[numbers].tolist())) <= 1 for numbers in by_host.values()], bool)
        return cls(np.array(list(by_host), int), filled, most <= 1, own)


class Level(NamedTuple):
    """Each rank posts a message at most, then takes one at most, then waits until its own has left, then adds.

    Args:
        posts, takes, leaves, adds: ranks and messages.
        out, into: the posted messages that pass ports, by the hosts that they leave and those that they come to.
        works: ranks that then do the work between two parts, and the number of the part that they have ended.
    """

    posts: Pairs
    takes: Pairs
    leaves: Pairs
    adds: Pairs
    out: Side
    into: Side
    works: Pairs


class Plan(NamedTuple):
    """One call of all ranks, or several parts one after another.

    Args:
        levels: in an order in which every message is posted before it is taken.
        size_bytes: of each message; numbers, or bounds of a whole that is not known yet.
        local: which messages stay on a host, shape (messages,).
        part: the number of the part to which each belongs, likewise.
        senders, receivers: of each.
        ahead: ranks, and the messages that they wait for at the end of the last part.
        out, into: all messages that pass ports.
        in_turn: every port has messages of one sender alone.
    """

    levels: list[Level]
    size_bytes: list
    local: np.ndarray
    part: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    ahead: Pairs
    out: Side
    into: Side
    in_turn: bool


class Planner:
    """Lays out the exchanges of rank 0, 1, ...

    Args:
        exchanges: of each rank; one that neither hands over nor takes is the end of a part, and some work.
        hosts: of each rank.
    """

    def __init__(self, exchanges: Iterable[Iterable[Exchange]], hosts: Sequence[int]):
        self._lists, self._hosts = [list(own) for own in exchanges], hosts
        ranks = len(self._lists)
        self.size_bytes: list = []
        self.senders: list[int] = []
        self.receivers: list[int] = []
        self.part: list[int] = []
        self._ahead: list[list[int]] = [[] for _ in range(ranks)]  # that have not been waited for
        self._ended = [0] * ranks  # how many parts
        self.drafts: defaultdict[int, tuple[list, list, list, list, list]] = defaultdict(lambda: ([], [], [], [], []))
        self._sent: defaultdict[tuple[int, int], deque[tuple[int, int]]] = defaultdict(deque)
        self._at, self._free = [0] * ranks, [0] * ranks
        self._posted: list[int | None] = [None] * ranks  # of the exchange at hand
        self._taken: list[tuple[int, int] | None] = [None] * ranks  # likewise, with the level
        self._copied: dict[int, int] = {}  # the level at which a message was taken
        self._waiting: dict[object, int] = {}  # ranks, by what they wait for
        self._runnable = deque(range(ranks))
        while self._runnable:
            rank = self._runnable.popleft()
            while self._at[rank] < len(self._lists[rank]) and self._goes_on(rank):
                pass
        if any(done < len(own) for done, own in zip(self._at, self._lists, strict=True)):
            raise ValueError("a rank takes a message that nobody sends")

    @property
    def ahead(self) -> list[tuple[int, int]]:
        """Ranks, and the messages that they have not waited for."""
        return [(rank, number) for rank, own in enumerate(self._ahead) for number in own]

    def _goes_on(self, rank: int) -> bool:
        """Whether its next exchange is over."""
        exchange, level = self._lists[rank][self._at[rank]], self._free[rank]
        if exchange.to is None and exchange.source is None:
            return self._ends_part(rank, level)
        if exchange.to is not None and self._posted[rank] is None:
            self._post(rank, exchange, exchange.to)
        if exchange.source is not None and self._taken[rank] is None and not self._take(rank, exchange.source):
            return False
        posted, taken = self._posted[rank], self._taken[rank]
        if taken is not None:
            level = max(level, taken[1])
        if posted is not None and exchange.ahead:
            self._ahead[rank].append(posted)
        elif posted is not None:
            if self._hosts[self.receivers[posted]] == self._hosts[rank]:
                if posted not in self._copied:
                    self._waiting[posted] = rank
                    return False
                level = max(level, self._copied[posted])
            self.drafts[level][2].append((rank, posted))
        if exchange.adds and taken is not None:
            self.drafts[level][3].append((rank, taken[0]))
        self._at[rank], self._free[rank] = self._at[rank] + 1, level + 1
        self._posted[rank] = self._taken[rank] = None
        return True

    def _ends_part(self, rank: int, level: int) -> bool:
        """Whether all that it sent ahead has left; then it works."""
        for number in self._ahead[rank]:
            if self._hosts[self.receivers[number]] == self._hosts[rank]:
                if number not in self._copied:
                    self._waiting[number] = rank
                    return False
                level = max(level, self._copied[number])
        for number in self._ahead[rank]:
            self.drafts[level][2].append((rank, number))
            level += 1
        self.drafts[level][4].append((rank, self._ended[rank]))
        self._ahead[rank].clear()
        self._ended[rank] += 1
        self._at[rank], self._free[rank] = self._at[rank] + 1, level + 1
        return True

    def _post(self, rank: int, exchange: Exchange, to: int) -> None:
        number = self._posted[rank] = len(self.size_bytes)
        self.size_bytes.append(exchange.sent_bytes)
        self.senders.append(rank)
        self.receivers.append(to)
        self.part.append(self._ended[rank])
        self.drafts[self._free[rank]][0].append((rank, number))
        self._sent[rank, to].append((number, self._free[rank]))
        self._wake((rank, to))

    def _take(self, rank: int, source: int) -> bool:
        """Whether its message has been posted."""
        if not self._sent[source, rank]:
            self._waiting[source, rank] = rank
            return False
        number, posted_at = self._sent[source, rank].popleft()
        level = max(self._free[rank], posted_at)
        self.drafts[level][1].append((rank, number))
        self._taken[rank], self._copied[number] = (number, level), level
        self._wake(number)
        return True

    def _wake(self, event: object) -> None:
        if event in self._waiting:
            self._runnable.append(self._waiting.pop(event))


def plan(exchanges: Iterable[Iterable[Exchange]], hosts: Sequence[int]) -> Plan:
    """Levels of the exchanges of rank 0, 1, ... on their hosts, shape (ranks,).

    Raises:
        ValueError: some rank takes a message that nobody sends.
    """
    laid, of_rank = Planner(exchanges, hosts), np.array(hosts)
    senders, receivers = np.array(laid.senders, int), np.array(laid.receivers, int)
    leaves, comes = of_rank[senders], of_rank[receivers]
    local = leaves == comes

    def sides(numbers: np.ndarray) -> tuple[Side, Side]:
        passing = numbers[~local[numbers]]
        return Side.of(leaves, passing, senders, senders), Side.of(comes, passing, senders, receivers)

    levels = []
    for number in sorted(laid.drafts):
        posts, takes, left, adds, works = map(_pairs, laid.drafts[number])
        levels.append(Level(posts, takes, left, adds, *sides(posts[1]), works))
    out, into = sides(np.arange(len(senders)))
    own = np.append(senders, -1)
    in_turn = all(len({*own[row].tolist()} - {-1}) <= 1 for side in (out, into) for row in side.messages)
    part = np.array(laid.part, int)
    return Plan(levels, laid.size_bytes, local, part, senders, receivers, _pairs(laid.ahead), out, into, in_turn)


def _pairs(listed: list[tuple[int, int]]) -> Pairs:
    ranks, numbers = np.array(sorted(listed), int).reshape(-1, 2).T
    return ranks, numbers
