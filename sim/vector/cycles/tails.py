"""The end of a collective call, played again: requests of the next negotiation may hold up its last messages.

A rank that has ended a call asks at once, while others still wait for their last messages. Where its request comes to a port among
these, it and they pass in the order in which they come. What a message is held up may hold up others, at other ports.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from sim.collectives.schedule import Schedule
from sim.platform.cluster import Link
from sim.vector.cycles.negotiation import queued
from sim.vector.exchanges import SETTLED_S, Ports, Windows, play_among

NEVER_S = -np.inf


class Ended(NamedTuple):
    """A call is over, in some replications; moments from when its negotiation was over.

    Args:
        ports: clocks of ranks after it, shape (replications, ranks).
        free_s: when ports were free before all messages, likewise.
        come_s: when the messages of each port come there, shape (messages, replications, ranks); one that there is not comes never.
        port_s: for how long each takes it, shape (messages, replications or 1, ranks).
        senders: of each, shape (messages, ranks).
        waits_s: from when and until when ranks wait for them, shape (2, messages, replications, ranks).
        idle_s: when ports were idle before the last of them, as far as it is known; see sim.vector.exchanges.Played.
    """

    ports: Ports
    free_s: np.ndarray
    come_s: np.ndarray
    port_s: np.ndarray
    senders: np.ndarray
    waits_s: np.ndarray
    idle_s: np.ndarray


class Meeting:
    """Requests at ports where they come among messages of a call.

    Args:
        ended: the call.
        root_s: when its negotiation was over, shape (replications, 1).

    Attributes:
        floors_s: before which the call's messages do not pass, as its `come_s`; found by `passing_s`.
    """

    def __init__(self, ended: Ended, root_s: np.ndarray):
        self._ended, self._root_s = ended, root_s
        self.floors_s = np.full(ended.come_s.shape, NEVER_S)

    @property
    def in_free_s(self) -> np.ndarray:
        """When ports have passed all messages of the call, shape (replications, ranks)."""
        return self._root_s + self._ended.ports.in_free_s

    @property
    def last_reach_s(self) -> np.ndarray:
        """When the last of them reached them, likewise."""
        return self._root_s + self._ended.ports.last_reach_s

    def is_near(self, floors_s: np.ndarray) -> bool:
        """Whether `floors_s` are these."""
        with np.errstate(invalid="ignore"):  # between messages that wait for nobody
            return bool(((self.floors_s == floors_s) | (np.abs(self.floors_s - floors_s) <= SETTLED_S)).all())

    def passing_s(self, rows, ranks, reach_s, occupancy_s, senders, in_turn, latency_s: float) -> np.ndarray:
        """When requests begin to pass; shape (ports, requests).

        Args:
            rows, ranks: whose ports they are, shape (ports,).
            reach_s, occupancy_s, senders: of requests, shape (ports, requests).
            in_turn: see sim.vector.cycles.negotiation.Begun; shape (ports,).
            latency_s: of the link.

        Raises:
            Unsettled: which message passes a port first cannot be told.
        """
        ended, root_s = self._ended, self._root_s[rows]
        port_s = np.broadcast_to(ended.port_s, ended.come_s.shape)
        come_s = np.concatenate([root_s + ended.come_s[:, rows, ranks].T, reach_s], axis=1)
        takes_s = np.concatenate([port_s[:, rows, ranks].T, occupancy_s], axis=1)
        order = np.argsort(np.concatenate([ended.senders[:, ranks].T, senders], axis=1), axis=1, kind="stable")
        come_s, takes_s = (np.take_along_axis(one, order, 1)[:, None] for one in (come_s, takes_s))
        free_s = root_s + ended.free_s[rows, ranks][:, None]
        pass_s = np.empty(order.shape)
        np.put_along_axis(pass_s, order, queued(come_s, takes_s, free_s, in_turn, latency_s)[:, 0], 1)
        self.floors_s[:, rows, ranks] = (pass_s[:, : len(port_s)] - root_s).T
        return pass_s[:, len(port_s) :]


class Tail(Protocol):
    """The end of a call, of which all earlier messages have reached their ports before any request can."""

    def play(self, floors_s: np.ndarray | None, replications: int) -> Ended:
        """Play it.

        Args:
            floors_s: before which messages do not pass ports, as `Ended.come_s`; as if there were no requests if None.
            replications: how many.

        Raises:
            Unsettled: which message passes a port first cannot be told.
        """


class RingTail:
    """The last rounds of a ring.

    Args:
        clocks: of ranks, their ports out and in, when they begin; shape (1, ranks) each.
        rounds: the numbers of the pieces that rank 0 hands over and takes in each, and whether it adds; rank r has those r further on.
        pieces: for which each takes a port, and a core of speed 1 to be added, twice round; shape (1, 2 * ranks).
        link: between hosts.
        speeds: of each rank's core, shape (1, ranks).
        copy_s: which each rank takes after it, likewise.
    """

    def __init__(self, clocks, rounds, pieces, link: Link, speeds: np.ndarray, copy_s: np.ndarray):
        self._clocks, self._rounds, self._pieces, self._link = clocks, rounds, pieces, link
        self._speeds, self._copy_s = speeds, copy_s
        self._senders = np.roll(np.arange(speeds.shape[1]), 1)

    def play(self, floors_s: np.ndarray | None, replications: int) -> Ended:
        """As of Tail."""
        now_s, out_free_s, in_free_s = (np.repeat(clock, replications, axis=0) for clock in self._clocks)
        free_s, (port_s, add_s), ranks = in_free_s, self._pieces, now_s.shape[1]
        shape = len(self._rounds), *now_s.shape
        come_s, waits_s = np.empty(shape), np.empty((2, *shape))
        overhead_s = self._link.overhead_s / self._speeds
        takes_s = np.stack([port_s[:, taken : taken + ranks] for _, taken, _ in self._rounds])
        for number, (sent, taken, adds) in enumerate(self._rounds):
            now_s = now_s + overhead_s
            begin_s = np.maximum(now_s, out_free_s)
            out_free_s = begin_s + port_s[:, sent : sent + ranks]
            come_s[number] = np.roll(begin_s, 1, axis=1) + self._link.latency_s
            pass_s = np.maximum(come_s[number], in_free_s)
            if floors_s is not None:
                pass_s = np.maximum(pass_s, floors_s[number])
            waits_s[:, number] = now_s, pass_s
            in_free_s = pass_s + takes_s[number]
            now_s = np.maximum(np.maximum(now_s, in_free_s) + overhead_s, out_free_s)
            if adds:
                now_s = now_s + add_s[:, taken : taken + ranks] / self._speeds
        ports = Ports(now_s + self._copy_s, out_free_s, in_free_s, come_s[-1])
        senders, never_s = np.broadcast_to(self._senders, (shape[0], ranks)), np.full((2, 1, *now_s.shape), np.inf)
        return Ended(ports, free_s, come_s, takes_s, senders, waits_s, never_s)


class CallTail:
    """All of a call that is laid out in levels.

    Args:
        plan: of one call.
        ports: when it begins, shape (1, ranks).
        link: between hosts.
        speeds: of each rank's core, shape (1, ranks).
        add_s: for adding up each message.
        idle_s: of each port in the calls before, shape (1, ranks) each.
        copy_s: which each rank takes after it, shape (1, ranks).
    """

    def __init__(self, plan: Schedule, ports: Ports, link: Link, speeds, add_s, idle_s: Windows | None, copy_s):
        self._plan, self._ports, self._link, self._speeds = plan, ports, link, speeds
        self._add_s, self._idle_s, self._copy_s = add_s, idle_s, copy_s
        occupancy_s = np.append(np.ravel(link.occupancy_s(plan.size_bytes)), 0.0)  # and of none
        self._port_s = occupancy_s[plan.order.T][:, None]

    def play(self, floors_s: np.ndarray | None, replications: int) -> Ended:
        """As of Tail."""

        def each(one: np.ndarray) -> np.ndarray:
            return np.repeat(one, replications, axis=0)

        plan, ports = self._plan, Ports(*map(each, self._ports))
        idle_s = None if self._idle_s is None else (each(self._idle_s[0]), each(self._idle_s[1]))
        floors_s = None if floors_s is None else floors_s.transpose(0, 2, 1)
        played, arrivals = play_among(plan, ports, self._link, each(self._speeds), self._add_s, idle_s, floors_s)
        come_s = arrivals.reach_s.transpose(0, 2, 1)
        waits_s = np.zeros((2, *come_s.shape))
        ranks, slots = np.arange(come_s.shape[2]), iter(played.waits)
        for level, slot in zip(plan.levels, plan.slots, strict=True):
            if len(level.taken):
                _, from_s, to_s = next(slots)
                waits_s[:, slot, :, ranks[level.takers]] = np.stack([from_s.T, to_s.T], axis=1)
        after = played.ports._replace(now_s=played.ports.now_s + self._copy_s)
        return Ended(after, ports.in_free_s, come_s, self._port_s, plan.sources, waits_s, played.idle_s)
