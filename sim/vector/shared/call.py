"""One collective call of ranks that share hosts, in every replication: a rank copies what its neighbours hand over.

The ranks of a host have one port in each direction, which passes messages in the order in which they come to it. First they are taken
to come in the order of levels. Where one overtakes another, all is reckoned again with the order of the last time, until it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sim.platform.cluster import Link
from sim.vector.exchanges import MOST_ROUNDS, SETTLED_S, Unsettled, unclear
from sim.vector.servers.barrier_round import queue
from sim.vector.shared.plan import Plan, Side
from sim.vector.ties import in_order

Wait = tuple[np.ndarray, np.ndarray, np.ndarray]  # ranks, from, to
Work = Callable[
    [np.ndarray, np.ndarray], np.ndarray
]  # of some ranks, from when they begin, shape (replications, ranks): until when


class Clocks(NamedTuple):
    """Where ranks are, shape (replications, ranks), and when hosts' ports are free, shape (replications, hosts)."""

    now_s: np.ndarray
    out_free_s: np.ndarray
    in_free_s: np.ndarray


class Seconds(NamedTuple):
    """What messages take, shape (replications or 1, messages).

    Args:
        local_latency_s, latency_s: see sim.platform.cluster.Link.
        overhead_s: of a core of speed 1, at either end of a message between hosts.
        port_s: of a port.
        copy_s, add_s: of a core of speed 1, for copying it within a host, and for adding it up.
    """

    local_latency_s: float
    latency_s: float
    overhead_s: np.ndarray
    port_s: np.ndarray
    copy_s: np.ndarray
    add_s: np.ndarray

    @classmethod
    def of(cls, size_bytes: np.ndarray, link: Link, local: Link, reduce, counts: np.ndarray | int = 1) -> Seconds:
        """Of messages of so many bytes, each of which stands for so many that travel together."""
        sizes = np.atleast_2d(size_bytes)
        port_s, here_s = (one.gap_s + sizes / one.bandwidth_bytes_per_s for one in (link, local))
        add_s = reduce(sizes)
        overhead_s, copy_s = (counts * one.overhead_s + np.zeros_like(sizes) for one in (link, local))
        return cls(local.latency_s, link.latency_s, overhead_s, port_s, copy_s + here_s, add_s)


class Call:
    """A call.

    Args:
        plan: of its messages.
        seconds: that they take.
        speeds: of each rank's core, shape (replications, ranks).
        clocks: when it begins.
        works: between the parts of the plan.

    Attributes:
        come_s, pass_s: when each message comes to the port of its sender's host and to its receiver's (or to its receiver, if that is on
            the same host), and when it begins to pass them; shape (2, replications, messages + 1). The last is none.
    """

    def __init__(self, plan: Plan, seconds: Seconds, speeds: np.ndarray, clocks: Clocks, works: Sequence[Work] = ()):
        self._works = works
        self._plan, self._seconds, self._speeds, self._begin = plan, seconds, speeds, clocks
        shape = 2, len(clocks.now_s), len(plan.local) + 1
        self.come_s, self.pass_s = np.full(shape, np.inf), np.full(shape, np.inf)
        port_s = np.broadcast_to(seconds.port_s, (shape[1], shape[2] - 1))
        self._port_s = np.pad(port_s, ((0, 0), (0, 1)))
        self._waits: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []  # and for which messages

    def waits(self, part: int = 0) -> list[Wait]:
        """Of ranks for messages of a part, in the order in which each takes them."""
        found = []
        for ranks, numbers, from_s, to_s in self._waits:
            some = self._plan.part[numbers] == part
            if some.all():
                found.append((ranks, from_s, to_s))
            elif some.any():
                found.append((ranks[some], from_s[:, some], to_s[:, some]))
        return found

    def play(self) -> Clocks:
        """The clocks after it.

        Raises:
            Unsettled: which message passes a port first cannot be told.
        """
        clocks = self.reckon(None)
        if self._plan.in_turn:
            return clocks
        for _ in range(MOST_ROUNDS):
            floors_s = self._floors()
            with np.errstate(invalid="ignore"):  # of none
                off_s = np.abs(np.maximum(self.come_s, floors_s) - self.pass_s)[:, :, :-1]
            if off_s.max(initial=0.0, where=~self._plan.local) <= SETTLED_S:
                self._check_apart()
                return clocks
            clocks = self.reckon(floors_s)
        raise Unsettled

    def reckon(self, floors_s: np.ndarray | None) -> Clocks:
        """Level after level.

        Args:
            floors_s: when ports are free for each message, as `pass_s`; in the order of levels if None.
        """
        seconds, speeds, local = self._seconds, self._speeds, self._plan.local
        now_s, out_free_s, in_free_s = (clock.copy() for clock in self._begin)
        (post_s, reach_s), (begin_s, pass_s) = self.come_s, self.pass_s
        leave_s, self._waits = np.empty(post_s.shape), []
        shape = len(now_s), len(local)
        copy_s, add_s, overhead_s = (
            np.broadcast_to(one, shape) for one in (seconds.copy_s, seconds.add_s, seconds.overhead_s)
        )
        for posts, takes, leaves, adds, out, into, works in self._plan.levels:
            if posts[1].size:
                ranks, numbers = posts
                away = ~local[numbers]
                now_s[:, ranks] += away * overhead_s[:, numbers] / speeds[:, ranks]
                post_s[:, numbers] = now_s[:, ranks]
                here = numbers[~away]
                reach_s[:, here] = pass_s[:, here] = post_s[:, here] + seconds.local_latency_s
            if out.messages.size:
                numbers = posts[1][~local[posts[1]]]
                self._through(out, post_s, begin_s, out_free_s, None if floors_s is None else floors_s[0])
                leave_s[:, numbers] = begin_s[:, numbers] + self._port_s[:, numbers]
                reach_s[:, numbers] = begin_s[:, numbers] + seconds.latency_s
                self._through(into, reach_s, pass_s, in_free_s, None if floors_s is None else floors_s[1])
            if takes[1].size:
                ranks, numbers = takes
                here, from_s, begun_s = local[numbers], now_s[:, ranks], pass_s[:, numbers]
                self._waits.append((ranks, numbers, from_s, begun_s))
                core_s = np.where(here, copy_s[:, numbers], overhead_s[:, numbers]) / speeds[:, ranks]
                port_s = np.where(here, 0.0, self._port_s[:, numbers])
                now_s[:, ranks] = goes_s = np.maximum(from_s, begun_s + port_s) + core_s
                leave_s[:, numbers[here]] = goes_s[:, here]
            if leaves[1].size:
                ranks, numbers = leaves
                now_s[:, ranks] = np.maximum(now_s[:, ranks], leave_s[:, numbers])
            if adds[1].size:
                ranks, numbers = adds
                now_s[:, ranks] += add_s[:, numbers] / speeds[:, ranks]
            for number, work in enumerate(self._works):
                ranks = works[0][works[1] == number]
                if ranks.size:
                    now_s[:, ranks] = work(ranks, now_s[:, ranks])
        for rank, number in zip(*self._plan.ahead, strict=True):
            now_s[:, rank] = np.maximum(now_s[:, rank], leave_s[:, number])
        return Clocks(now_s, out_free_s, in_free_s)

    def _through(self, side: Side, come_s, begin_s, free_s, floors_s) -> None:
        """Messages pass ports: when each begins, in `begin_s`, and when the ports are free, in `free_s`."""
        numbers = side.messages
        if floors_s is not None:
            begin_s[:, numbers] = np.maximum(come_s[:, numbers], floors_s[:, numbers])
            over_s = np.where(numbers < len(self._plan.local), begin_s[:, numbers] + self._port_s[:, numbers], -np.inf)
            free_s[:, side.hosts] = np.maximum(free_s[:, side.hosts], over_s.max(axis=2, initial=-np.inf))
        elif side.alone:
            first = numbers[:, 0]
            begin_s[:, first] = np.maximum(come_s[:, first], free_s[:, side.hosts])
            free_s[:, side.hosts] = begin_s[:, first] + self._port_s[:, first]
        else:
            turn, found_s, over_s = self._served(side, come_s, free_s)
            np.put_along_axis(begin_s, turn.reshape(len(turn), -1), found_s.reshape(len(turn), -1), 1)
            free_s[:, side.hosts] = over_s

    def _served(self, side: Side, come_s: np.ndarray, free_s: np.ndarray):
        """Messages of each port in the order in which they come, when each begins to pass, and when the last is over."""
        come_s = come_s[:, side.messages]
        order = in_order(come_s)
        turn = np.take_along_axis(np.broadcast_to(side.messages, come_s.shape), order, 2)
        port_s = np.take_along_axis(self._port_s, turn.reshape(len(turn), -1), 1).reshape(turn.shape)
        begin_s = queue(np.take_along_axis(come_s, order, 2), free_s[:, side.hosts], port_s)
        over_s = np.where(turn < len(self._plan.local), begin_s + port_s, -np.inf).max(axis=2, initial=-np.inf)
        return turn, begin_s, over_s

    def _floors(self) -> np.ndarray:
        """When ports are free for each message, if all come when they came the last time; as `pass_s`."""
        found_s = np.full(self.pass_s.shape, -np.inf)
        sides = (self._plan.out, self._begin.out_free_s), (self._plan.into, self._begin.in_free_s)
        for (side, free_s), come_s, floors_s in zip(sides, self.come_s, found_s, strict=True):
            turn, begin_s, _ = self._served(side, come_s, free_s)
            port_s = np.take_along_axis(self._port_s, turn.reshape(len(turn), -1), 1).reshape(turn.shape)
            over_s = np.concatenate([free_s[:, side.hosts, None], (begin_s + port_s)[:, :, :-1]], axis=2)
            np.put_along_axis(floors_s, turn.reshape(len(turn), -1), over_s.reshape(len(turn), -1), 1)
        return found_s

    def _check_apart(self) -> None:
        """Messages that come together pass in the order of senders (sim.event.machines.in_turn), if all are on their way before."""
        of = self._seconds
        # A rank is, before it comes to a port: a message wakes it, or a gradient, which wakes all that wait for it at once.
        woken_s = min(of.port_s.min(initial=np.inf), of.copy_s.min(initial=np.inf))
        for side, come_s, on_way_s in (
            (self._plan.out, self.come_s[0], of.overhead_s.min(initial=np.inf) + woken_s),
            (self._plan.into, self.come_s[1], of.latency_s),
        ):
            comes_s = np.sort(come_s[:, side.messages], axis=2)
            with np.errstate(invalid="ignore"):  # between none and none
                if unclear(np.diff(comes_s, axis=2), on_way_s).any():
                    raise Unsettled
