"""The ports of hosts on which servers and workers sit together: when each of many messages between them leaves and comes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from sim.vector.exchanges import MOST_ROUNDS, SETTLED_S, Unsettled
from sim.vector.servers.barrier_round import queue
from sim.vector.ties import check_apart, in_order

Found = TypeVar("Found")


class Passed(NamedTuple):
    """When messages pass ports, shape (replications, messages): infinity for those that there are not, or not yet.

    Args:
        leave_s: their last byte leaves the sender's host.
        reach_s: they come to the receiver's host; those within a host to their receiver.
        pass_s: they begin to pass its port; those within a host come to their receiver.
        here_s: their last byte has passed it, likewise.
    """

    leave_s: np.ndarray
    reach_s: np.ndarray
    pass_s: np.ndarray
    here_s: np.ndarray


class Wires:
    """Messages between ranks on hosts, each of which has one port a direction.

    Args:
        senders, receivers: of each message, by rank; shape (messages,).
        hosts: of each rank, shape (ranks,).
        port_s: for which each message takes a port, shape (messages,).
        latency_s, local_latency_s: on its way, between hosts and within one.
    """

    def __init__(
        self,
        senders: np.ndarray,
        receivers: np.ndarray,
        hosts: np.ndarray,
        port_s: np.ndarray,
        latency_s: float,
        local_latency_s: float,
    ):
        self._senders, self.local = senders, hosts[senders] == hosts[receivers]
        self._port_s = np.where(self.local, 0.0, port_s)
        self._latency_s, self._local_latency_s = latency_s, local_latency_s
        self._out, self._into = (self._by_host(hosts[ranks]) for ranks in (senders, receivers))

    def _by_host(self, hosts: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Hosts with equally many messages that pass their ports, and these messages, by sender; shape (hosts,), (hosts, messages)."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for message in np.argsort(self._senders, kind="stable").tolist():
            if not self.local[message]:
                found[int(hosts[message])].append(message)
        sizes = {*map(len, found.values())}
        alike = ([host for host, own in found.items() if len(own) == size] for size in sizes)
        return [(np.array(several), np.array([found[host] for host in several])) for several in alike]

    def carry(
        self,
        called_s: np.ndarray,
        place: np.ndarray,
        free_s: tuple[np.ndarray, np.ndarray],
        known_s: np.ndarray,
        begun_s: Sequence[np.ndarray] | None = None,
    ) -> Passed:
        """When messages pass ports that come to them at `called_s`, shape (replications, messages).

        Args:
            place: in which order one rank sends its own, likewise.
            free_s: when hosts' ports are free, out and in, shape (replications, hosts).
            known_s: when messages come that have left before, likewise; infinity for all others.
            begun_s: when messages have begun to pass ports, out and in, likewise, if that is known; -infinity for all others.
        """
        out_s, in_s = (None, None) if begun_s is None else begun_s
        leave_s, begin_s = self._through(self._out, called_s, free_s[0], place, out_s)
        reach_s = np.where(self.local, called_s + self._local_latency_s, begin_s + self._latency_s)
        np.minimum(reach_s, known_s, out=reach_s)
        here_s, pass_s = self._through(self._into, reach_s, free_s[1], place, in_s)
        return Passed(leave_s, reach_s, pass_s, here_s)

    def _through(self, ports, come_s: np.ndarray, free_s: np.ndarray, place: np.ndarray, begun_s: np.ndarray | None):
        """When messages have passed ports, and when they began to."""
        begin_s = come_s.copy()
        for hosts, messages in ports:
            comes_s = come_s[:, messages]
            order = in_order(comes_s, partial(self._among, messages, place))
            served_s = np.take_along_axis(np.broadcast_to(self._port_s[messages], comes_s.shape), order, 2)
            comes_s = comes_s if begun_s is None else np.maximum(comes_s, begun_s[:, messages])
            found_s = queue(np.take_along_axis(comes_s, order, 2), free_s[:, hosts], served_s)
            turn = np.take_along_axis(np.broadcast_to(messages, comes_s.shape), order, 2)
            np.put_along_axis(begin_s, turn.reshape(len(turn), -1), found_s.reshape(len(turn), -1), 1)
        return begin_s + self._port_s, begin_s

    def begun_s(self, passed: Passed) -> np.ndarray:
        """When messages begin to pass ports, out and in, shape (2, ...)."""
        leave_s = passed.leave_s - self._port_s.reshape(-1, passed.leave_s.shape[-1])
        return np.stack([leave_s, passed.pass_s])

    def _among(self, messages: np.ndarray, place: np.ndarray) -> np.ndarray:
        """By what those go that come together: their senders, and one sender's as it sends them."""
        return self._senders[messages] * float(place.shape[1]) + place[:, messages]

    def check_apart(self, called_s: np.ndarray, reach_s: np.ndarray, leads_s: tuple[float, float]) -> None:
        """Of messages of several ranks that come together the order is known, if they are on their way for so many seconds before.

        Args:
            called_s, reach_s: when they come to ports, shape (replications, ...).

        Raises:
            Unsettled: rounding may decide it.
        """
        each = (self._out, flat(called_s), leads_s[0]), (self._into, flat(reach_s), leads_s[1])
        for ports, come_s, lead_s in each:
            for _hosts, messages in ports:
                check_apart(come_s[:, messages], self._senders[messages], lead_s)

    def free_s(self, passed: Passed, gone: tuple[np.ndarray, np.ndarray], free_s):
        """When ports are free of messages that are gone, out and in, shape (replications, ...); as `free_s` of `carry`."""
        found = []
        each = zip((self._out, self._into), gone, (passed.leave_s, passed.here_s), free_s, strict=True)
        for ports, which, over_s, before_s in each:
            own_s, gone_s = before_s.copy(), flat(np.where(which, over_s, -np.inf))
            for hosts, messages in ports:
                own_s[:, hosts] = np.maximum(own_s[:, hosts], gone_s[:, messages].max(axis=2))
            found.append(own_s)
        return found[0], found[1]


def settle(
    wires: Wires,
    called_s: np.ndarray,
    place: np.ndarray,
    free_s: tuple[np.ndarray, np.ndarray],
    known_s: np.ndarray,
    go_on: Callable[[Passed, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, Found]],
    begun_s: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, Passed, Found]:
    """Messages and what ranks do with them, reckoned anew with when messages came, until that stays.

    What is reckoned at a moment depends on what came before it alone, so that each time more of it is right.

    Args:
        called_s, place: when messages come to ports, as far as is known, and in which order one rank sends its own; both of shape
            (replications, ...).
        free_s, known_s, begun_s: as of `Wires.carry`, the latter of that shape.
        go_on: go_on(passed, called_s, place) gives both anew, and what else it has found; `passed` has that shape too.

    Returns:
        Both as they stay, when messages pass ports then, and what was found.

    Raises:
        Unsettled: they do not stay.
    """
    begun = None if begun_s is None else [flat(one) for one in begun_s]
    for _ in range(MOST_ROUNDS):
        each = wires.carry(flat(called_s), flat(place), free_s, flat(known_s), begun)
        passed = Passed(*(one.reshape(called_s.shape) for one in each))
        found_s, in_place, found = go_on(passed, called_s, place)
        if same(found_s, called_s) and np.array_equal(in_place, place):
            return called_s, place, passed, found
        called_s, place = found_s, in_place
    raise Unsettled


def flat(by_kind: np.ndarray) -> np.ndarray:
    """Of shape (replications, messages)."""
    return by_kind.reshape(len(by_kind), -1)


def same(found_s: np.ndarray, before_s: np.ndarray) -> bool:
    """Whether times have settled."""
    if np.array_equal(found_s, before_s):
        return True
    with np.errstate(invalid="ignore"):  # between what never comes
        return bool(((found_s == before_s) | (np.abs(found_s - before_s) <= SETTLED_S)).all())
