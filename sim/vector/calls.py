"""One collective call of all ranks, on vectors of several sizes at once: each replication has a size of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from sim import collectives
from sim.collectives.base import cut
from sim.collectives.schedule import Schedule, schedule, template
from sim.model.costs import Costs, Line
from sim.model.sizes import ITEM_BYTES
from sim.vector import compiled
from sim.vector.cycles.tails import CallTail, RingTail, Tail
from sim.vector.exchanges import SETTLED_S, Ports, Unsettled, play

KNOWN = 16  # messages of a ring before which it is known that a port was idle
MOST_EXCHANGES = 4_000_000  # of all ranks in one call; each takes some microseconds to lay out, and memory
MOST_LISTED = 2**21  # waits that a compiled ring keeps until they are told
Sums = tuple[
    np.ndarray, np.ndarray
]  # moments between which waits count, shape (2, replications); seconds, to be added to
Waited = Callable[[np.ndarray, np.ndarray, np.ndarray | slice], object]
ALL, NONE = slice(None), np.zeros(0, bool)


class TooMany(Exception):
    """A call has too many messages to lay them out."""


class Mark(NamedTuple):
    """Where a ring is before one of its rounds.

    Args:
        clocks: of ranks, ports out and ports in, shape (replications, ranks) each.
        reached_s: when the last message of the rounds before reached its port.
        early: messages of this round, and maybe of further ones, come before the last of the calls before.
    """

    clocks: tuple[np.ndarray, np.ndarray, np.ndarray]
    reached_s: float
    early: bool


class Calls:
    """Collective calls of the workers of one scenario.

    Args:
        hosts: of the workers, all different.
    """

    def __init__(self, scenario, hosts: list[int]):
        self._hosts, self._link, self._adding = tuple(hosts), scenario.network, adding(scenario.costs)
        self._laid_out = lru_cache(64)(self._lay_out)

    def named(self, algorithm: str, piece: slice) -> str:
        """The algorithm that sums a piece."""
        return collectives.named(algorithm, self._hosts, piece)

    def play(
        self,
        algorithm: str,
        pieces: list[slice],
        ports: Ports,
        speeds: np.ndarray,
        waited: Waited,
        after_ring: bool,
        idle_s: np.ndarray | None = None,
        sums: Sums | None = None,
    ) -> tuple[Ports, np.ndarray]:
        """The clocks after a call, and when ports were idle before the last messages reached them, shape (2, times, replications, ranks).

        Args:
            algorithm: as named.
            pieces: that are summed, in each replication.
            speeds: of each rank's core, shape (replications, ranks).
            waited: is told of each wait: from, to, and which ranks.
            after_ring: the call before was a ring's too, of whose messages none can come late.
            idle_s: when ports were idle before the last messages of earlier calls, as it is returned; None if nobody asks.
            sums: where waits may be added up, instead of being told one by one.

        Raises:
            Unsettled: which message passes a port first cannot be told.
            TooMany: there are too many messages.
        """
        if algorithm == "ring":
            if compiled.in_use() and len(self._hosts) > 1 and (sums or self._can_be_listed(len(ports.now_s))):
                with suppress(Unsettled):  # arrays say then whether it is so
                    return self._ring_compiled(pieces, ports, speeds, waited, after_ring, idle_s is not None, sums)
            return self._ring(pieces, ports, speeds, waited, after_ring, idle_s)
        plan = self.plan(algorithm, pieces)
        played = play(
            plan,
            ports,
            self._link,
            speeds,
            self._adding(algorithm)(plan.size_bytes),
            None if idle_s is None else _last(idle_s),
        )
        for ranks, from_s, to_s in played.waits:
            waited(from_s, to_s, ranks)
        return played.ports, played.idle_s

    def tail(self, algorithm: str, piece: slice, ports: Ports, speeds, copy_s, after_ring: bool, idle_s) -> Tail:
        """The end of a call, which may meet what ranks send after it.

        Args:
            copy_s: which each rank takes after it, shape (1, ranks).
            algorithm, piece, ports, speeds, after_ring, idle_s: see `play`, of one call.

        Raises:
            Unsettled: messages of the calls before may meet them too.
        """
        if algorithm != "ring":
            plan = self.plan(algorithm, [piece])
            windows = None if idle_s is None else _last(idle_s)
            return CallTail(plan, ports, self._link, speeds, self._adding(algorithm)(plan.size_bytes), windows, copy_s)
        rounds = _ring_rounds(len(self._hosts))
        marks: dict[int, Mark | None] = {
            max(0, len(rounds) - KNOWN * 2**turn): None for turn in range(len(rounds).bit_length())
        }
        after, _ = self._ring([piece], ports, speeds, lambda *_: None, after_ring, idle_s, marks)
        first_s = (after.now_s + copy_s + self._link.overhead_s / speeds).min() + self._link.latency_s
        first, mark = max((number, mark) for number, mark in marks.items() if mark and mark.reached_s < first_s)
        if mark.early:
            raise Unsettled
        pieces = self.ring_pieces(_bounds([piece]))
        return RingTail(mark.clocks, rounds[first:], pieces, self._link, speeds, copy_s)

    def _ring(
        self,
        pieces: list[slice],
        ports: Ports,
        speeds: np.ndarray,
        waited: Waited,
        after_ring: bool,
        before_s: np.ndarray | None,
        marks: dict[int, Mark | None] | None = None,
    ):
        """Each port serves one sender: no order of arrival is to be found. Each round is the event world's `exchange`.

        Args:
            marks: by the numbers of rounds; those that a round passes are set.
        """
        (now_s, out_free_s, in_free_s), last_s = (clock.copy() for clock in ports[:3]), ports.last_reach_s
        link, ranks, speeds = self._link, len(self._hosts), speeds[:1] if (speeds == speeds[:1]).all() else speeds
        overhead_s, reach_s, first, hindered = link.overhead_s / speeds, np.full_like(now_s, -np.inf), True, True
        port_s, add_s = self.ring_pieces(_bounds(pieces))
        alike = bool((speeds == speeds[:, :1]).all())
        if alike:
            add_s = add_s / speeds[:, :1]
        rounds, known_s = _ring_rounds(ranks), []
        checks, idle_s = not after_ring, (in_free_s, in_free_s) if before_s is None else _last(before_s)
        for number, (sent, taken, adds) in enumerate(rounds):
            marked = marks is not None and number in marks
            if marked:
                clocks, reached_s = (now_s.copy(), out_free_s.copy(), in_free_s.copy()), reach_s.max()
            now_s += overhead_s
            begin_s = np.maximum(now_s, out_free_s) if first else now_s  # it has left before the rank goes on
            np.add(begin_s[:, :-1], link.latency_s, out=reach_s[:, 1:])
            np.add(begin_s[:, -1:], link.latency_s, out=reach_s[:, :1])
            np.add(begin_s, port_s[:, sent : sent + ranks], out=out_free_s)
            early = reach_s <= last_s if checks else NONE
            checks = bool(early.any())
            if checks and before_s is None:
                raise Unsettled
            if marks is not None and marked:
                marks[number] = Mark(clocks, reached_s, checks)
            if first or checks:
                hindered = bool((reach_s < in_free_s).any())  # else none waits, for all are as far apart as they left
            first = False
            if number >= len(rounds) - KNOWN and before_s is not None:
                known_s.append((in_free_s.copy(), reach_s.copy()))
            pass_s = np.maximum(reach_s, in_free_s) if hindered else reach_s
            here_s = in_free_s
            if checks:
                pass_s = np.where(early, np.maximum(reach_s, idle_s[0]), pass_s)
                here_s = pass_s + port_s[:, taken : taken + ranks]
                if (early & (here_s > idle_s[1] - SETTLED_S)).any():
                    raise Unsettled
                idle_s = np.where(early, here_s, idle_s[0]), idle_s[1]
                np.maximum(in_free_s, here_s, out=in_free_s)
            else:
                np.add(pass_s, port_s[:, taken : taken + ranks], out=in_free_s)
            waited(now_s.copy(), pass_s, ALL)
            np.maximum(now_s, here_s, out=now_s)
            now_s += overhead_s
            np.maximum(now_s, out_free_s, out=now_s)
            if adds:
                add_here_s = add_s[:, taken : taken + ranks]
                now_s += add_here_s if alike else add_here_s / speeds
        last_s = last_s if first else np.maximum(last_s, reach_s)
        return Ports(now_s, out_free_s, in_free_s, last_s), np.array(known_s).reshape(-1, 2, *now_s.shape).swapaxes(
            0, 1
        )

    def _can_be_listed(self, replications: int) -> bool:
        return 2 * len(self._hosts) ** 2 * replications <= MOST_LISTED

    def _ring_compiled(
        self, pieces: list[slice], ports: Ports, speeds: np.ndarray, waited: Waited, after_ring, wants_idle, sums
    ):
        """The same, compiled."""
        from sim.vector.compiled.ring import play_rounds

        now_s, out_free_s, in_free_s = (np.array(clock) for clock in ports[:3])
        overhead_s, latency_s = self._link.overhead_s / speeds, self._link.latency_s
        begin_s = np.maximum(now_s + overhead_s, out_free_s)
        first_s = np.roll(begin_s + latency_s, 1, axis=1)
        if not after_ring and (first_s <= ports.last_reach_s).any():
            raise Unsettled
        rounds = _ring_rounds(len(self._hosts))
        port_s, add_s = self.ring_pieces(_bounds(pieces))
        listed_s = np.empty((2, 0 if sums else len(rounds), *now_s.shape))
        asked_s = np.empty((2, min(KNOWN, len(rounds)) if wants_idle else 0, *now_s.shape))
        moments_s, idle_s = sums or (np.zeros((2, len(now_s))), np.zeros_like(now_s))
        reach_s = np.empty_like(now_s)
        clocks, costs = (now_s, out_free_s, in_free_s), (overhead_s, latency_s, port_s, add_s, speeds)
        play_rounds(*clocks, np.array(rounds, int), *costs, moments_s, idle_s, listed_s, asked_s, reach_s)
        for from_s, to_s in zip(*listed_s, strict=True):
            waited(from_s, to_s, ALL)
        return Ports(now_s, out_free_s, in_free_s, np.maximum(ports.last_reach_s, reach_s)), asked_s

    @lru_cache(64)  # noqa: B019 there is one for each world
    def ring_pieces(self, pieces: tuple[tuple[int, int], ...]) -> tuple[np.ndarray, np.ndarray]:
        """For which each piece takes a port, and a core of speed 1 to be added, twice round; one row if all vectors are alike."""
        wholes = pieces if len(set(pieces)) > 1 else pieces[:1]
        cuts = [
            [ITEM_BYTES * (part.stop - part.start) for part in cut(slice(*whole), len(self._hosts))] for whole in wholes
        ]
        size_bytes = np.tile(np.array(cuts, float), 2)
        return self._link.occupancy_s(size_bytes), self._adding("ring")(size_bytes)

    def plan(self, algorithm: str, pieces: list[slice]) -> Schedule:
        """A call by an algorithm that is no ring, on the piece of each replication.

        Raises:
            TooMany: it has too many messages.
        """
        self._check(algorithm, pieces[0])
        alike, bounds = template(algorithm, self._hosts), _bounds(pieces)
        several = len(set(bounds)) > 1
        if alike is not None:
            return alike.sized(*np.array(bounds if several else bounds[:1]).T)
        if several:
            raise ValueError(f"{algorithm} of vectors of several sizes")
        return self._laid_out(algorithm, pieces[0].start, pieces[0].stop)

    @property
    def rounds(self) -> list[tuple[int, int, bool]]:
        """Of a ring: the numbers of the pieces that rank 0 hands over and takes, and whether it adds."""
        return _ring_rounds(len(self._hosts))

    def may_be_ring(self, algorithm: str) -> bool:
        """Whether some piece may be summed by a ring."""
        return self.named(algorithm, slice(0, 1)) == "ring" or algorithm == "auto"

    def alike(self, algorithm: str) -> bool:
        """Whether calls on vectors of different sizes can be played together."""
        return algorithm == "ring" or template(algorithm, self._hosts) is not None

    def _check(self, algorithm: str, whole: slice) -> None:
        if self._exchanges(algorithm, whole.start, whole.stop) * len(self._hosts) > MOST_EXCHANGES:
            raise TooMany(f"{algorithm} of {len(self._hosts)} ranks has too many messages to lay out")

    @lru_cache(64)  # noqa: B019 there is one for each world
    def _exchanges(self, algorithm: str, start: int, stop: int) -> int:
        """Of rank 0."""
        return sum(1 for _ in collectives.exchanges(algorithm, 0, self._hosts, slice(start, stop)))

    def _lay_out(self, algorithm: str, start: int, stop: int) -> Schedule:
        whole = slice(start, stop)
        return schedule(collectives.exchanges(algorithm, rank, self._hosts, whole) for rank in range(len(self._hosts)))


def adding(costs: Costs) -> Callable[[str], Line]:
    """The cost of adding up what is taken in a call, by its algorithm; amount in bytes."""
    return lambda algorithm: (costs.reduce_rows or costs.reduce) if algorithm == collectives.GATHERED else costs.reduce


def _bounds(pieces: list[slice]) -> tuple[tuple[int, int], ...]:
    if all(piece is pieces[0] for piece in pieces):
        return ((pieces[0].start, pieces[0].stop),)
    return tuple((piece.start, piece.stop) for piece in pieces)


def _last(idle_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The last of the times in which ports are known to have been idle, from and to; shape (replications, ranks)."""
    from_s, to_s = idle_s
    last = np.argmax(np.where(from_s < np.inf, to_s, -np.inf), axis=0)[None]
    return np.take_along_axis(from_s, last, 0)[0], np.take_along_axis(to_s, last, 0)[0]


@cache
def _ring_rounds(ranks: int) -> list[tuple[int, int, bool]]:
    """The numbers of the pieces that rank 0 hands over and takes in each round, and whether it adds; rank r has those r further on."""
    exchanges = collectives.allreduce("ring", 0, range(ranks), slice(0, ranks))
    return [(exchange.sent.start, exchange.taken.start, exchange.adds) for exchange in exchanges]
