"""Collective calls of ranks that share hosts, one after another (as sim.vector.calls has them of ranks with a host each)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sim import collectives
from sim.collectives.base import Exchange
from sim.collectives.bounds import Bound, Bounds
from sim.vector.calls import MOST_EXCHANGES, Sums, TooMany, adding
from sim.vector.exchanges import Ports, Unsettled
from sim.vector.shared.call import Call, Clocks, Seconds, Wait, Work
from sim.vector.shared.plan import Plan, plan
from sim.verbs.book import TIE_S

Waited = Callable[[np.ndarray, np.ndarray, np.ndarray], object]
NEVER_S = -np.inf
ANSWER, CALL, ASK = "answer", "call", "ask"  # parts, of which some follow one another


class Talk(NamedTuple):
    """How ranks agree on what to sum.

    Args:
        asks, answers: exchanges of each rank, until rank 0 knows, and until all do.
        answer_messages: that one of the answers stands for.
    """

    asks: list[list[Exchange]]
    answers: list[list[Exchange]]
    answer_messages: int


class Last(NamedTuple):
    """The last call of a decision.

    Args:
        algorithm, piece: of it.
        ports: when ranks begin it, shape (1, ranks); None if it is the only one, which follows on the answer.
        speeds: of each rank's core, likewise.
        work_s: that each rank does between the answer and it, and `copy_s` after it, likewise.
    """

    algorithm: str
    piece: slice
    ports: Ports | None
    speeds: np.ndarray
    work_s: np.ndarray
    copy_s: np.ndarray


class SharedCalls:
    """Collective calls of the workers of one scenario.

    Args:
        hosts: of the workers.
        talk: before calls and after them, if there is any.
    """

    def __init__(self, scenario, hosts: list[int], talk: Talk | None = None):
        self._talk = talk
        kinds, numbers = np.unique(hosts, return_inverse=True)
        self._hosts, self._host_of, self._count = tuple(hosts), numbers, len(kinds)
        self._link, self._local, self._adding = scenario.network, scenario.local, adding(scenario.costs)
        self._template = lru_cache(16)(self._templated)
        self._laid_out = lru_cache(64)(self._lay_out)

    def named(self, algorithm: str, piece: slice) -> str:
        """The algorithm that sums a piece."""
        return collectives.named(algorithm, self._hosts, piece)

    def may_be_ring(self, _algorithm: str) -> bool:
        """Whether it is known for many messages when a port was idle."""
        return False

    def alike(self, algorithm: str) -> bool:
        """Whether calls on vectors of different sizes can be played together."""
        return self._template((CALL,), algorithm) is not None

    def play(
        self,
        algorithm: str,
        pieces: list[slice],
        ports: Ports,
        speeds: np.ndarray,
        waited: Waited,
        after_alike: bool,
        _idle_s: np.ndarray | None = None,
        _sums: Sums | None = None,
    ) -> tuple[Ports, np.ndarray]:
        """As of Calls, but ports are those of a rank's host, and waits are told one by one.

        Args:
            after_alike: the call before had the same algorithm.

        Raises:
            Unsettled: which message passes a port first cannot be told.
            TooMany: there are too many messages.
        """
        clocks, last_s = self._clocks(ports)
        laid, call = self._begun((CALL,), algorithm, pieces, speeds, clocks)
        after = call.play()
        self._check_after(laid, call, clocks, last_s, after_alike)
        for ranks, from_s, to_s in call.waits():
            waited(from_s, to_s, ranks)
        found = self._ports(after, np.maximum(last_s, self._last_s(laid, call)))
        return found, np.full((2, 1, *found.now_s.shape), np.inf)

    def answer_and_play(
        self,
        algorithm: str,
        pieces: list[slice],
        speeds: np.ndarray,
        work_s: np.ndarray,
        waited: Waited,
    ) -> tuple[Ports, np.ndarray]:
        """The clocks after rank 0 has answered all from time 0 on, each has done some work, and all have summed.

        Args:
            work_s: shape (replications, ranks).

        Returns:
            The clocks; and when the answer begins to come to each rank, shape (replications, ranks).

        Raises:
            Unsettled, TooMany: as of `play`.
        """
        laid, call = self._begun((ANSWER, CALL), algorithm, pieces, speeds, self._told(speeds), [_takes(work_s)])
        after, told_s = call.play(), np.full(speeds.shape, NEVER_S)
        answers = np.flatnonzero(laid.part == 0)
        told_s[:, laid.receivers[answers]] = call.pass_s[1][:, answers]
        for ranks, from_s, to_s in call.waits(1):
            waited(from_s, to_s, ranks)
        return self._ports(after, self._last_s(laid, call)), told_s

    def ask(self, ports: Ports, speeds: np.ndarray, messages: np.ndarray) -> tuple[Clocks, list[Wait]]:
        """The clocks when all have asked, and waits until then.

        Args:
            ports: when each rank begins, and what the calls before have left.
            messages: for which each rank's request stands, shape (replications, ranks).

        Raises:
            Unsettled: as of `play`; or a request may come to a port before the last message of a call.
        """
        clocks, last_s = self._clocks(ports)
        laid, call = self._begun((ASK,), "", [], speeds, clocks, messages=messages)
        after = call.play()
        self._check_after(laid, call, clocks, last_s, False)
        return after, call.waits()

    def play_and_ask(self, last: Last, ask: Work, messages: np.ndarray | None) -> tuple[Clocks, list[Wait], list[Wait]]:
        """The clocks when all have summed and asked, in each replication; waits in the call, and those of requests.

        Args:
            last: the call.
            ask: when ranks ask who have ended it.
            messages: see `ask`; nobody asks if None.

        Raises:
            Unsettled, TooMany: as of `play`.
        """
        count = 1 if messages is None else len(messages)
        speeds, copy_s = (np.repeat(one, count, axis=0) for one in (last.speeds, last.copy_s))
        first = last.ports is None
        parts = (*[ANSWER] * first, CALL, *[ASK] * (messages is not None))
        works = [lambda ranks, now_s: ask(ranks, now_s + copy_s[:, ranks])]
        if last.ports is None:
            works, clocks = [_takes(np.repeat(last.work_s, count, axis=0)), *works], self._told(speeds)
        else:
            clocks = self._clocks(Ports(*(np.repeat(clock, count, axis=0) for clock in last.ports)))[0]
        _, call = self._begun(parts, last.algorithm, [last.piece], speeds, clocks, works, messages)
        return call.play(), call.waits(first), call.waits(first + 1)

    def _begun(
        self,
        parts: tuple[str, ...],
        algorithm: str,
        pieces: list[slice],
        speeds: np.ndarray,
        clocks: Clocks,
        works: Sequence[Work] = (),
        messages: np.ndarray | None = None,
    ) -> tuple[Plan, Call]:
        """Parts one after another, with works in between."""
        laid, size_bytes = self._sized(parts, algorithm, pieces)
        counts = np.ones((1, len(laid.part)))
        for number, part in enumerate(parts):
            own = np.flatnonzero(laid.part == number)
            if part == ANSWER and self._talk is not None:
                counts[:, own] = self._talk.answer_messages
            elif part == ASK and messages is not None:
                counts = np.repeat(counts, len(messages), axis=0)
                counts[:, own] = messages[:, laid.senders[own]]
        seconds = Seconds.of(size_bytes * counts, self._link, self._local, self._adding(algorithm), counts)
        return laid, Call(laid, seconds, speeds, clocks, works)

    def _told(self, speeds: np.ndarray) -> Clocks:
        """Rank 0 knows at time 0 what the others are told."""
        now_s, never_s = np.full(speeds.shape, NEVER_S), np.full((len(speeds), self._count), NEVER_S)
        now_s[:, 0] = 0.0
        return Clocks(now_s, never_s, never_s)

    def _clocks(self, ports: Ports) -> tuple[Clocks, np.ndarray]:
        """By hosts; and when the last message came to each."""
        out_free_s, in_free_s, last_s = (self._of_hosts(np.broadcast_to(one, ports.now_s.shape)) for one in ports[1:])
        return Clocks(ports.now_s, out_free_s, in_free_s), last_s

    def _ports(self, after: Clocks, last_s: np.ndarray) -> Ports:
        """By ranks."""
        return Ports(after.now_s, *(one[:, self._host_of] for one in (after.out_free_s, after.in_free_s, last_s)))

    def _check_after(self, laid: Plan, call: Call, clocks: Clocks, last_s: np.ndarray, after_alike: bool) -> None:
        """Check that all messages come after those of earlier calls.

        Raises:
            Unsettled: one leaves a host, or comes to it, before one of an earlier call.
        """
        if laid.in_turn and after_alike:
            return
        for side, come_s, before_s in (
            (laid.out, call.come_s[0], clocks.out_free_s),
            (laid.into, call.come_s[1], last_s),
        ):
            first_s = come_s[:, side.messages].min(axis=2, initial=np.inf)
            if (first_s <= before_s[:, side.hosts] + 2 * TIE_S).any():
                raise Unsettled

    def _last_s(self, laid: Plan, call: Call) -> np.ndarray:
        """When the last message came to each host, shape (replications, hosts)."""
        comes_s = call.come_s[1][:, laid.into.messages]
        found_s = np.full((len(comes_s), self._count), NEVER_S)
        found_s[:, laid.into.hosts] = np.where(comes_s < np.inf, comes_s, NEVER_S).max(axis=2, initial=NEVER_S)
        return found_s

    def _of_hosts(self, by_rank_s: np.ndarray) -> np.ndarray:
        """The latest of the ranks of each host, shape (replications, hosts)."""
        found_s = np.full((len(by_rank_s), self._count), -np.inf)
        for rank, host in enumerate(self._host_of):
            found_s[:, host] = np.maximum(found_s[:, host], by_rank_s[:, rank])
        return found_s

    def _sized(self, parts: tuple[str, ...], algorithm: str, pieces: list[slice]) -> tuple[Plan, np.ndarray]:
        """The plan of some parts, and the bytes of their messages in each replication; in one row if all are alike."""
        if not pieces:
            laid = self._laid_out(parts, algorithm, 0, 0)
            return laid, np.array(laid.size_bytes, float)
        check_size(algorithm, self._hosts, pieces[0])
        wholes = {(piece.start, piece.stop) for piece in pieces}
        pieces = pieces if len(wholes) > 1 else pieces[:1]
        found = self._template(parts, algorithm)
        if found is not None:
            laid, bounds, numbers = found
            starts, stops = (np.array([getattr(piece, end) for piece in pieces]) for end in ("start", "stop"))
            return laid, bounds.values(starts, stops)[numbers].T.astype(float)
        if len(wholes) > 1:
            raise ValueError(f"{algorithm} of vectors of several sizes")
        laid = self._laid_out(parts, algorithm, pieces[0].start, pieces[0].stop)
        return laid, np.array(laid.size_bytes, float)

    def _templated(self, parts: tuple[str, ...], algorithm: str):
        bounds = Bounds()
        try:
            laid = self._lay_out(parts, algorithm, bounds.whole.start, bounds.whole.stop)
        except TypeError:  # it counts chunks
            return None
        sizes = [size if isinstance(size, Bound) else bounds.fixed(size) for size in laid.size_bytes]
        return laid, bounds, np.array([size.number for size in sizes], int)

    def _lay_out(self, parts: tuple[str, ...], algorithm: str, start, stop) -> Plan:
        def exchanges(part: str, rank: int) -> Iterable[Exchange]:
            if part == CALL or self._talk is None:
                return collectives.exchanges(algorithm, rank, self._hosts, slice(start, stop))
            return (self._talk.asks if part == ASK else self._talk.answers)[rank]

        def in_turn(rank: int) -> Iterator[Exchange]:
            for number, part in enumerate(parts):
                if number:
                    yield Exchange()
                yield from exchanges(part, rank)

        return plan(map(in_turn, range(len(self._hosts))), self._hosts)


def check_size(algorithm: str, hosts: Sequence[int], whole: slice) -> None:
    """A call of ranks on these hosts can be laid out.

    Raises:
        TooMany: it has too many messages.
    """
    most = max(sum(1 for _ in collectives.exchanges(algorithm, rank, hosts, whole)) for rank in {0, len(hosts) - 1})
    if most * len(hosts) > MOST_EXCHANGES:
        raise TooMany(f"{algorithm} of {len(hosts)} ranks has too many messages to lay out")


def _takes(work_s: np.ndarray) -> Work:
    """Work of so many seconds, shape (replications, ranks)."""
    return lambda ranks, now_s: now_s + work_s[:, ranks]
