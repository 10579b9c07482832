"""A collective call of all ranks at once, in every replication: clocks and ports as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.collectives.schedule import NONE, Schedule
from sim.platform.cluster import Link

SETTLED_S = 1e-12  # orders of arrival have settled once no message reaches a port at a time that differs by more
MOST_ROUNDS = 100


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
    waits: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    idle_s: np.ndarray


def play(plan: Schedule, ports: Ports, link: Link, speeds: np.ndarray, add_s: np.ndarray) -> Played:
    """All exchanges of one call.

    A receiver's port serves messages in the order in which they reach it. First that is taken to be the order in which the rank
    takes them; where it is not, messages are served by when they reached the port in the round before, until nothing changes.

    Args:
        plan: its messages may be as large in all replications, or in each as large as they are there.
        speeds: of each rank's core, shape (replications, ranks).
        add_s: seconds of a core of speed 1 for adding up each message, shape (messages,) or (replications, messages).

    Raises:
        Unsettled: two messages reach a port at one instant, or before a message of an earlier call.
    """
    occupancy_s = link.occupancy_s(plan.size_bytes)
    call = _Call(plan, link, speeds, add_s, occupancy_s)
    played, reach_s = call.forward(ports)
    come_s = np.where(plan.order == NONE, np.inf, reach_s[:, plan.order])
    overtakes = (come_s[:, :, 1:] <= come_s[:, :, :-1]) & (plan.order[:, 1:] != NONE)
    rows = np.flatnonzero(overtakes.any(axis=(1, 2)))
    if rows.size:
        some = Ports(*(clock[rows] for clock in ports))
        again, again_s = _settle(call.of(rows), some)
        for whole, part in zip(played.ports, again.ports, strict=True):
            whole[rows] = part
        played.idle_s[0, :, rows] = np.inf
        for (_, from_s, to_s), (_, from_again_s, to_again_s) in zip(played.waits, again.waits, strict=True):
            from_s[rows], to_s[rows] = from_again_s, to_again_s
        come_s[rows] = np.sort(np.where(plan.order == NONE, np.inf, again_s[:, plan.order]), axis=2)
        if ((come_s[:, :, 1:] == come_s[:, :, :-1]) & (come_s[:, :, 1:] < np.inf)).any():
            raise Unsettled
    if (come_s.min(axis=2, initial=np.inf) <= ports.last_reach_s).any():
        raise Unsettled
    last_s = np.where(plan.order == NONE, -np.inf, come_s).max(axis=2, initial=-np.inf)
    last_s = np.maximum(ports.last_reach_s, last_s)
    played.idle_s[1, 0] = last_s
    return played._replace(ports=played.ports._replace(last_reach_s=last_s))


class _Call(NamedTuple):
    plan: Schedule
    link: Link
    speeds: np.ndarray
    add_s: np.ndarray
    occupancy_s: np.ndarray

    def of(self, rows: np.ndarray) -> _Call:
        """The call in some replications."""
        occupancy_s, add_s = (each if each.ndim == 1 else each[rows] for each in (self.occupancy_s, self.add_s))
        return self._replace(speeds=self.speeds[rows], occupancy_s=occupancy_s, add_s=add_s)

    def forward(
        self, ports: Ports, passes_s: np.ndarray | None = None, hindered: bool = True
    ) -> tuple[Played, np.ndarray]:
        """Level after level; and when each message reaches its receiver's port, shape (replications, messages).

        Args:
            passes_s: when each message begins to pass that port; in the order in which they are taken if None.
            hindered: whether it waits there for the one before, if `passes_s` is None.
        """
        link, occupancy_s, speeds = self.link, self.occupancy_s, self.speeds
        now_s, out_free_s, in_free_s, last_s = (clock.copy() for clock in ports)
        reach_s, leave_s = (np.empty((len(now_s), occupancy_s.shape[-1])) for _ in range(2))
        waits, idle_s = [], np.full((2, 1, *now_s.shape), np.inf)
        for senders, posted, leaving, left, takers, taken, own, adds in self.plan.levels:
            if senders.size:
                called_s = now_s[:, senders] + link.overhead_s / speeds[:, senders]
                now_s[:, senders] = called_s
                begin_s = np.maximum(called_s, out_free_s[:, senders])
                out_free_s[:, senders] = leave_s[:, posted] = begin_s + occupancy_s[..., posted]
                reach_s[:, posted] = begin_s + link.latency_s
            if leaving.size:
                now_s[:, leaving] = np.maximum(now_s[:, leaving], leave_s[:, left])
            if takers.size:
                from_s, free_s = now_s[:, takers], in_free_s[:, takers]
                pass_s = (reach_s if passes_s is None else passes_s)[:, taken]
                if passes_s is None and hindered:
                    pass_s = np.maximum(pass_s, free_s)
                here_s = pass_s + occupancy_s[..., taken]
                idle_s[0, 0, :, takers] = free_s.T
                in_free_s[:, takers] = np.maximum(free_s, here_s)
                waits.append((takers, from_s, pass_s))
                goes_s = np.maximum(from_s, here_s) + link.overhead_s / speeds[:, takers]
                goes_s = np.where(own == NONE, goes_s, np.maximum(goes_s, leave_s[:, own]))
                now_s[:, takers] = goes_s + adds * self.add_s[..., taken] / speeds[:, takers]
        ahead = self.plan.ahead
        now_s[:, ahead] = np.maximum(now_s[:, ahead], out_free_s[:, ahead])
        return Played(Ports(now_s, out_free_s, in_free_s, last_s), waits, idle_s), reach_s

    def passing_s(self, reach_s: np.ndarray, free_s: np.ndarray) -> np.ndarray:
        """When each message begins to pass its receiver's port, which serves the first to come first."""
        order = self.plan.order
        none = order == NONE
        come_s = np.where(none, np.inf, reach_s[:, order])
        turn = np.argsort(come_s, axis=2, kind="stable")
        come_s = np.take_along_axis(come_s, turn, axis=2)
        service_s = np.where(none, 0.0, self.occupancy_s[..., order])
        service_s = np.take_along_axis(np.broadcast_to(service_s, come_s.shape), turn, axis=2)
        before_s = np.cumsum(service_s, axis=2) - service_s
        ready_s = np.maximum(come_s, free_s[:, :, None]) - before_s
        begin_s = np.maximum.accumulate(ready_s, axis=2) + before_s
        numbers = np.take_along_axis(np.broadcast_to(order, come_s.shape), turn, axis=2)
        passes_s = np.empty_like(reach_s)
        rows = np.broadcast_to(np.arange(len(reach_s))[:, None, None], numbers.shape)
        real = numbers != NONE
        passes_s[rows[real], numbers[real]] = begin_s[real]
        return passes_s


def _settle(call: _Call, ports: Ports) -> tuple[Played, np.ndarray]:
    """The call where messages overtake one another, and when they reach the ports.

    Messages that overtake seldom meet at a port, so that the first round lets each pass as it comes.

    Raises:
        Unsettled: the order of arrival changes from round to round.
    """
    _, reach_s = call.forward(ports, hindered=False)
    for _ in range(MOST_ROUNDS):
        played, again_s = call.forward(ports, call.passing_s(reach_s, ports.in_free_s))
        if np.abs(again_s - reach_s).max() <= SETTLED_S:
            return played, again_s
        reach_s = again_s
    raise Unsettled
