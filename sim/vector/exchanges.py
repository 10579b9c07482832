"""A collective call of all ranks at once, in every replication: clocks and ports as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from sim.collectives.schedule import NONE, Schedule
from sim.platform.cluster import Link
from sim.vector import compiled
from sim.verbs.book import TIE_S

SETTLED_S = 1e-12  # orders of arrival have settled once no message reaches a port at a time that differs by more
MOST_ROUNDS = 100


def unclear(apart_s: np.ndarray, latency_s: float | np.ndarray) -> np.ndarray:
    """Whether messages come to a port so near to one another that rounding may decide which is first.

    Those that come together pass in the order of their senders (sim.event.machines.free), if all are on their way before they come.
    """
    surely = (np.asarray(latency_s) > 2 * TIE_S) & (np.abs(apart_s) <= TIE_S / 2)
    return ~surely & (np.abs(apart_s) <= 2 * TIE_S)


def nearness(latency_s: float) -> tuple[float, float]:
    """Messages that are further apart than the first and not further than the second, as above."""
    return TIE_S / 2 if latency_s > 2 * TIE_S else -1.0, 2 * TIE_S


class Unsettled(Exception):
    """Which message passes a port first cannot be told."""


class Ports(NamedTuple):
    """Clocks of the ranks, each on a host of its own; shape (replications, ranks).

    Args:
        now_s: where each rank is.
        out_free_s, in_free_s: when its ports are free.
        last_reach_s: when the last message of the calls before reached its port.
    """

    now_s: np.ndarray
    out_free_s: np.ndarray
    in_free_s: np.ndarray
    last_reach_s: np.ndarray


class Played(NamedTuple):
    """What a call comes to: the clocks after it, and the seconds from which and until which ranks waited, one wait after another.

    Args:
        waits: ranks, from, to; shape (takers,), (replications, takers), (replications, takers).
        idle_s: from when until when each port was idle before the last message reached it, shape (2, 1, replications, ranks); never,
            from infinity on, where that is not known.
    """

    ports: Ports
    waits: Sequence[tuple[np.ndarray | slice, np.ndarray, np.ndarray]]
    idle_s: np.ndarray


Windows = tuple[
    np.ndarray, np.ndarray
]  # from when until when each port was idle before its last message; shape (replications, ranks)


def play(
    plan: Schedule, ports: Ports, link: Link, speeds: np.ndarray, add_s: np.ndarray, idle_s: Windows | None = None
) -> Played:
    """All exchanges of one call.

    A receiver's port serves messages in the order in which they reach it. In the order of levels each is served after those that
    reached the port before it, as far as these are known; where one of a later level overtakes, all is reckoned again with what is
    known by then, until nothing changes.

    Args:
        plan: its messages may be as large in all replications, or in each as large as they are there.
        speeds: of each rank's core, shape (replications, ranks).
        add_s: seconds of a core of speed 1 for adding up each message, shape (messages,) or (replications, messages).
        idle_s: of each port in the calls before, if that is known; a message may pass it then.

    Raises:
        Unsettled: two messages reach a port at one instant, or one holds up another of an earlier call.
    """
    if compiled.in_use() and idle_s is None:
        with suppress(Unsettled):  # arrays say then whether it is so
            return _played(plan, ports, link, speeds, add_s)
    return play_among(plan, ports, link, speeds, add_s, idle_s)[0]


def play_among(
    plan: Schedule,
    ports: Ports,
    link: Link,
    speeds: np.ndarray,
    add_s: np.ndarray,
    idle_s: Windows | None = None,
    floors_s: np.ndarray | None = None,
) -> tuple[Played, Arrivals]:
    """All exchanges of one call among messages that are none of its own, as `play`; and when its own reach their ports.

    Args:
        floors_s: before which messages do not pass ports, shape (most, ranks, replications); as if there were no others if None.
    """
    call = _Call.of(plan, ports, link, speeds, add_s, idle_s, floors_s)
    played, arrivals = call.reckon(Arrivals.unknown(plan, len(speeds)))
    rows = np.flatnonzero(arrivals.overtake())
    if rows.size:
        _settle(call, rows, played, arrivals)
        come_s = np.sort(arrivals.reach_s[:, :, rows], axis=0)
        with np.errstate(invalid="ignore"):  # between messages that there are not
            if unclear(np.diff(come_s, axis=0), link.latency_s).any():
                raise Unsettled
    reach_s = arrivals.reach_s
    if arrivals.held_up.any() or (
        idle_s is None and (ports.last_reach_s >= reach_s.min(axis=0, initial=np.inf).T).any()
    ):
        raise Unsettled
    last_s = np.where(reach_s < np.inf, reach_s, -np.inf).max(axis=0, initial=-np.inf).T
    last_s = np.maximum(ports.last_reach_s, last_s)
    played.idle_s[1, 0] = last_s
    return played._replace(ports=played.ports._replace(last_reach_s=last_s)), arrivals


def limits_of(link: Link) -> tuple[float, tuple[float, float], float, int]:
    """As sim.vector.compiled.exchanges.play has them."""
    return link.latency_s, nearness(link.latency_s), SETTLED_S, MOST_ROUNDS


def _played(plan: Schedule, ports: Ports, link: Link, speeds: np.ndarray, add_s: np.ndarray) -> Played:
    """The same, compiled."""
    from sim.vector.compiled.exchanges import play_all

    operations, ends = plan.operations(), np.cumsum([len(level.taken) for level in plan.levels])
    clocks, by_rank = np.array(ports[:3]), np.stack([link.overhead_s / speeds, speeds])
    occupancy_s, add_s = np.broadcast_arrays(*map(np.atleast_2d, (link.occupancy_s(plan.size_bytes), add_s)))
    shape, takes = clocks.shape[1:], ends[-1] if len(ends) else 0
    waits_s, idle_from_s, last_s = np.empty((shape[0], 2, takes)), np.empty(shape), np.empty(shape)
    limits, sources = limits_of(link), np.ascontiguousarray(plan.sources)
    before_s, costs = (
        np.array(ports.last_reach_s, order="C"),
        np.stack([occupancy_s, add_s]),
    )  # of one kind, for one is compiled
    found = waits_s, idle_from_s, last_s
    if not play_all(operations, sources, plan.ahead, clocks, before_s, costs, by_rank, limits, *found):
        raise Unsettled
    each = (
        zip(*(np.split(times_s, ends[:-1], axis=1) for times_s in waits_s.swapaxes(0, 1)), strict=True) if takes else ()
    )
    waits = [(level.takers, *both) for level, both in zip(plan.levels, each, strict=True) if len(level.taken)]
    now_s, out_free_s, in_free_s = clocks
    return Played(Ports(now_s, out_free_s, in_free_s, last_s), waits, np.stack([idle_from_s, last_s])[:, None])


class Arrivals(NamedTuple):
    """Of the messages at each port, in the order in which its rank takes them: when they reach it, and when they have passed.

    Both have the shape (most, ranks, replications); a message that there is not, or not yet, reaches it at infinity. `sources` are their
    senders, shape (most, ranks). `held_up` says in which replications one holds up another of an earlier call, shape (replications,).
    """

    reach_s: np.ndarray
    passed_s: np.ndarray
    sources: np.ndarray
    held_up: np.ndarray

    @classmethod
    def unknown(cls, plan: Schedule, replications: int) -> Arrivals:
        """Before any is known."""
        shape = *plan.order.T.shape, replications
        return cls(np.full(shape, np.inf), np.full(shape, -np.inf), plan.sources, np.zeros(replications, bool))

    def later_s(self) -> np.ndarray | None:
        """When the first of the messages reaches its port that are taken after each one; None if no message is known."""
        if not len(self.reach_s) or (self.reach_s[0] == np.inf).all():
            return None
        later_s = np.full(self.reach_s.shape, np.inf)
        np.minimum.accumulate(self.reach_s[:0:-1], axis=0, out=later_s[-2::-1])
        return later_s

    def among_others_s(self, slot: np.ndarray | int, ports: np.ndarray, reach_s: np.ndarray) -> np.ndarray:
        """When all have passed that are known to come before some messages; shape (messages,).

        Args:
            slot: which of the messages of its port each is.
            ports: of which rank in which replication, as numbers of all.
            reach_s: when they come.
        """
        come_s, passed_s = (
            times_s.reshape(len(times_s), -1).take(ports, axis=1) for times_s in (self.reach_s, self.passed_s)
        )
        before, until = come_s < reach_s - TIE_S, come_s <= reach_s + TIE_S
        if (
            np.count_nonzero(until) > np.count_nonzero(before) + reach_s.size
        ):  # some come together, not just each with itself
            ranks = ports // self.reach_s.shape[2]
            before = np.where(self.sources[:, ranks] < self.sources[slot, ranks], until, before)
        return np.where(before, passed_s, -np.inf).max(axis=0)

    def of(self, rows: np.ndarray) -> Arrivals:
        """In some replications; a copy."""
        reach_s, passed_s = self.reach_s.take(rows, axis=2), self.passed_s.take(rows, axis=2)
        return self._replace(reach_s=reach_s, passed_s=passed_s, held_up=self.held_up[rows])

    def overtake(self) -> np.ndarray:
        """Whether a message overtakes another anywhere, shape (replications,)."""
        before_s, after_s = self.reach_s[:-1], self.reach_s[1:]
        return np.any((after_s <= before_s + 2 * TIE_S) & (after_s < np.inf), axis=(0, 1))


class _Call(NamedTuple):
    """A call; all arrays have the replications last."""

    plan: Schedule
    ports: Ports
    latency_s: float
    overhead_s: np.ndarray
    occupancy_s: np.ndarray
    add_s: np.ndarray
    speeds: np.ndarray
    idle_s: Windows | None
    floors_s: np.ndarray | None

    @classmethod
    def of(cls, plan: Schedule, ports: Ports, link: Link, speeds, add_s, idle_s, floors_s) -> _Call:
        """Of arrays that have them first."""
        occupancy_s = link.occupancy_s(plan.size_bytes)
        port_s, core_s = (np.ascontiguousarray(np.atleast_2d(one).T) for one in (occupancy_s, add_s))
        clocks = Ports(*(np.ascontiguousarray(clock.T) for clock in ports))
        by_rank = np.ascontiguousarray(speeds.T)
        idle_s = None if idle_s is None else tuple(np.ascontiguousarray(one.T) for one in idle_s)
        overhead_s = link.overhead_s / by_rank
        return cls(plan, clocks, link.latency_s, overhead_s, port_s, core_s, by_rank, idle_s, floors_s)

    def in_rows(self, rows: np.ndarray) -> _Call:
        """The call in some replications."""
        clocks = Ports(*(clock.take(rows, axis=1) for clock in self.ports))
        port_s, core_s = (
            one if one.shape[1] == 1 else one.take(rows, axis=1) for one in (self.occupancy_s, self.add_s)
        )
        return _Call(
            self.plan,
            clocks,
            self.latency_s,
            self.overhead_s.take(rows, axis=1),
            port_s,
            core_s,
            self.speeds.take(rows, axis=1),
            None if self.idle_s is None else (self.idle_s[0].take(rows, axis=1), self.idle_s[1].take(rows, axis=1)),
            None if self.floors_s is None else self.floors_s.take(rows, axis=2),
        )

    def reckon(self, arrivals: Arrivals) -> tuple[Played, Arrivals]:
        """Level after level.

        Args:
            arrivals: what is known; it is overwritten by what is found.
        """
        occupancy_s, overhead_s, first_free_s = self.occupancy_s, self.overhead_s, self.ports.in_free_s
        now_s, out_free_s, in_free_s, last_s = (clock.copy() for clock in self.ports)
        come_s, later_s = np.full(now_s.shape, -np.inf), arrivals.later_s()
        numbers = np.arange(now_s.size).reshape(now_s.shape)
        reach_s, leave_s = (np.empty((len(occupancy_s), now_s.shape[1])) for _ in range(2))
        waits: list[tuple[np.ndarray | slice, np.ndarray, np.ndarray]] = []
        before_last_s = None if self.idle_s is None else self.idle_s[0].copy()  # when ports were idle, before `last_s`
        idle_from_s = np.full(now_s.shape, np.inf) if before_last_s is None else before_last_s.copy()
        arrivals.held_up[:] = False
        for (senders, posted, leaving, left, takers, taken, own, adds), slot in zip(
            self.plan.levels, self.plan.slots, strict=True
        ):
            if posted.size:
                called_s = now_s[senders] + overhead_s[senders]
                now_s[senders] = called_s
                begin_s = np.maximum(called_s, out_free_s[senders])
                reach_s[posted] = begin_s + self.latency_s
                begin_s += occupancy_s[posted]
                out_free_s[senders] = leave_s[posted] = begin_s
            if left.size:
                now_s[leaving] = np.maximum(now_s[leaving], leave_s[left])
            if taken.size:
                from_s, free_s = now_s[takers].copy(), in_free_s[takers].copy()
                comes_s, before_s = reach_s[taken], come_s[takers]
                arrivals.reach_s[slot, takers] = comes_s
                pass_s, odd = np.maximum(comes_s, free_s), comes_s <= before_s + TIE_S
                if later_s is not None:
                    odd |= later_s[slot, takers] <= comes_s + TIE_S
                if odd.any():
                    ports, own_s = numbers[takers][odd], comes_s[odd]
                    least_s = np.maximum(own_s, first_free_s.ravel().take(ports))
                    which = slot if isinstance(slot, int) else np.broadcast_to(slot[:, None], odd.shape)[odd]
                    pass_s[odd] = np.maximum(least_s, arrivals.among_others_s(which, ports, own_s))
                if before_last_s is not None and (comes_s <= last_s[takers]).any():
                    pass_s, free_s = self._pass_before(
                        takers, taken, comes_s, (pass_s, free_s, odd), before_last_s, arrivals
                    )
                if self.floors_s is not None:
                    pass_s = np.maximum(pass_s, self.floors_s[slot, takers])
                come_s[takers] = np.maximum(before_s, comes_s)
                here_s = pass_s + occupancy_s[taken]
                arrivals.passed_s[slot, takers] = here_s
                idle_from_s[takers] = free_s
                in_free_s[takers] = np.maximum(in_free_s[takers], here_s)
                waits.append((takers, from_s.T, pass_s.T))
                goes_s = np.maximum(from_s, here_s) + overhead_s[takers]
                if (own != NONE).any():
                    np.maximum(goes_s, np.where((own == NONE)[:, None], -np.inf, leave_s[own]), out=goes_s)
                if adds.any():
                    goes_s += adds[:, None] * self.add_s[taken] / self.speeds[takers]
                now_s[takers] = goes_s
        ahead = self.plan.ahead
        now_s[ahead] = np.maximum(now_s[ahead], out_free_s[ahead])
        idle_s = np.stack([idle_from_s.T, np.full(now_s.T.shape, np.inf)])[:, None]
        return Played(Ports(*(clock.T for clock in (now_s, out_free_s, in_free_s, last_s))), waits, idle_s), arrivals

    def _pass_before(self, takers, taken, comes_s: np.ndarray, found, idle_s: np.ndarray, arrivals: Arrivals):
        """When messages begin to pass ports, and from when these are idle, if some come before the last of an earlier call.

        Args:
            found: both for those that come later, and those of which the order is odd.
            idle_s: from when ports are idle before that last one; it is updated.
        """
        assert self.idle_s is not None  # or else nothing may come before
        (pass_s, free_s, odd), early = found, comes_s <= self.ports.last_reach_s[takers]
        begin_s = np.maximum(comes_s, idle_s[takers])
        here_s = begin_s + self.occupancy_s[taken]
        arrivals.held_up[:] |= (early & (odd | (here_s > self.idle_s[1][takers] - SETTLED_S))).any(axis=0)
        idle_s[takers] = np.where(early, here_s, idle_s[takers])
        return np.where(early, begin_s, pass_s), np.where(early, here_s, free_s)


def _settle(call: _Call, rows: np.ndarray, played: Played, arrivals: Arrivals) -> None:
    """Reckon the call again in some replications, where messages overtake one another.

    Args:
        played, arrivals: as they are found where none does, of all replications; they are made right.

    Raises:
        Unsettled: the order of arrival changes from round to round.
    """
    call, found = call.in_rows(rows), arrivals.of(rows)
    played.idle_s[0, :, rows] = np.inf
    for _ in range(MOST_ROUNDS):
        before_s = found.passed_s.copy()
        again, _ = call.reckon(found)
        with np.errstate(invalid="ignore"):  # between messages that there are not
            settled = ~(np.abs(found.passed_s - before_s) > SETTLED_S).any(axis=(0, 1))
        if settled.any():
            there, here = rows[settled], np.flatnonzero(settled)
            arrivals.reach_s[:, :, there] = found.reach_s.take(here, axis=2)
            arrivals.held_up[there] = found.held_up[here]
            _copy(again, here, played, there)
            left = np.flatnonzero(~settled)
            if not left.size:
                return
            rows, call, found = rows[left], call.in_rows(left), found.of(left)
    raise Unsettled


def _copy(found: Played, some: np.ndarray, played: Played, rows: np.ndarray) -> None:
    """Clocks and waits of some replications, to others."""
    for whole, part in zip(played.ports, found.ports, strict=True):
        whole[rows] = part[some]
    for (_, *times_s), (_, *again_s) in zip(played.waits, found.waits, strict=True):
        for of_all_s, of_some_s in zip(times_s, again_s, strict=True):
            of_all_s[rows] = of_some_s[some]
