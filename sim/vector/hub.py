"""The verbs of the vector world by which the master and all workers send to one another, in every replication at once."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sim.platform.cluster import Link
from sim.vector.working import Working
from sim.verbs.at_hand import SUM
from sim.verbs.me import GRADIENT, PARAMETERS

if TYPE_CHECKING:
    from sim.vector.shared import Neighbours


class Hub(Working):
    """Verbs of the master, or of all workers; clocks have the shape (replications, ranks)."""

    def _others(self, verb: str, peers, does: bool = True) -> Hub:
        """The group at the other end, if `peers` are all of it, in order.

        Raises:
            Refused: they are not, or this group does not do that.
        """
        others = self.world.workers if self is self.world.master else self.world.master
        named = [peers] if isinstance(peers, int) else peers
        alike = named == others.ranks or list(named) == list(others.ranks)  # of ranges that is seen at once
        does = does and not self.world.scenario.protocol.has_servers
        if not does or not others.ranks or not alike:
            said = "gather(me)" if verb == "gather" else f"me.{verb}"
            raise self.world.refuse(f"{said} of {list(named)} is not between the master and all workers")
        return others

    def send(self, what, to, wait: bool = True):
        """One message to each rank of the other group, through one port; or from each rank, each through its own."""
        others = self._receivers(what, to, wait)
        if self.world.neighbours is not None:
            yield from self._send_to(self.world.neighbours, others)
            return
        link, overhead_s = self._link, self._seconds(self._link.overhead_s)
        occupancy_s = link.occupancy_s(self.message_bytes)
        begin_s = np.maximum(self.now_s + overhead_s, self._out_free_s)
        if self is self.world.master:
            begin_s = _depart(begin_s, self.now_s + overhead_s, overhead_s, occupancy_s, len(others.ranks))
        self._out_free_s = self.now_s = begin_s[:, -len(self.ranks) :] + occupancy_s
        begin_s += link.latency_s
        others.comes(begin_s, self.samples, occupancy_s)
        yield from self._did()

    def _receivers(self, what, to, wait: bool) -> Hub:
        """The group to which a text sends, which hands the gradient on.

        Raises:
            Refused: it is something else, or not for all of that group.
        """
        if not wait or what is not (PARAMETERS if self is self.world.master else GRADIENT):
            raise self.world.refuse(
                "the text sends what is no gradient to the master or parameters to all, or goes on at once"
            )
        others = self._others("send", to)
        if self is not self.world.master:
            self.at_hand.handed_on()
        return others

    def _send_to(self, neighbours: Neighbours, others: Hub):
        if self is self.world.master:
            yield from neighbours.send_down(self, others)
        else:
            yield from neighbours.send_up(self, others)
        yield from self._did()

    def comes(self, reach_s: np.ndarray, samples: np.ndarray, occupancy_s: float) -> None:
        """Messages will reach this group's ports, shape (replications, senders or receivers). A master's are served in order of arrival.

        Raises:
            Refused: some reach the master's port before others that were sent in the round before, and so pass it first.
        """
        if self is self.world.master:
            reach_s.sort(axis=1)
            first_s, last_s = reach_s[:, :1], self._last_reach_s
            if (first_s <= last_s if occupancy_s else first_s < last_s).any():
                raise self.world.refuse("workers overtake one another at the master's port")
            self._last_reach_s = np.maximum(last_s, reach_s[:, -1:])
            samples = samples.sum(axis=1, keepdims=True)
        self.inbox.append((reach_s, samples))

    def receive(self, frm, until_s: float = math.inf, variable: int | None = None):
        """Wait for the parameters."""
        self._only_parameters(frm, until_s, variable)
        yield from self._until_message()
        if self.world.neighbours is not None:
            self.world.neighbours.receive(self)
            yield from self._did()
            return PARAMETERS
        reach_s, _samples = self.inbox.popleft()
        link = self._link
        begin_s = np.maximum(reach_s, self._in_free_s)
        self._in_free_s = begin_s + link.occupancy_s(self.message_bytes)
        self._wait(self.now_s, begin_s)
        self.now_s = np.maximum(self.now_s, self._in_free_s)
        self._spend(link.overhead_s)
        yield from self._did()
        return PARAMETERS

    def _only_parameters(self, frm, until_s: float, variable: int | None) -> None:
        if until_s < math.inf or variable is not None:
            raise self.world.refuse("the text waits for a time or for one variable")
        self._others("receive", frm, does=self is self.world.workers)

    def take_up(self, letter):
        """New parameters replace those at hand."""
        if letter is not PARAMETERS:
            raise self.world.refuse("the text takes up what is no message with parameters")
        self._spend(self.world.scenario.costs.take_up(self.message_bytes))
        yield from self._did()

    def gather(self, peers):
        """Receive from every worker in order of arrival, and add up.

        Two queues in tandem, the port and then the master's core, each serving all messages in equal time; the clock after
        the j-th is the running maximum of when the queue before let go of the i-th plus (j - i + 1) services.
        """
        self._only_workers(peers)
        yield from self._until_message()
        if self.world.neighbours is not None:
            self.world.neighbours.gather(self)
            yield from self._did()
            return
        reach_s, samples = self.inbox.popleft()
        occupancy_s = self._link.occupancy_s(self.message_bytes)
        adding_s = self._seconds(self._link.overhead_s + self.world.scenario.costs.reduce(self.message_bytes))
        here_s = _serve(reach_s, self._in_free_s, occupancy_s)
        added_s = _serve(here_s, self.now_s, adding_s)
        self._waits.add_own(_waited_s(here_s - occupancy_s, self.now_s, added_s))
        self._in_free_s, self.now_s = here_s[:, -1:].copy(), added_s[:, -1:].copy()
        self.samples = self.samples + samples
        self.at_hand.what = SUM
        yield from self._did()

    def _only_workers(self, peers) -> None:
        named = peers if isinstance(peers, int) or peers == self.world.workers.ranks else sorted(set(peers))
        self._others("gather", named, does=self is self.world.master)

    @cached_property
    def message_bytes(self) -> int:
        """Of a message between master and workers: parameters, or a gradient."""
        return sum(load.answer_bytes for load in self.world.scenario.traffic.loads(0))

    @cached_property
    def _link(self) -> Link:
        return self.world.scenario.network

    def _until_message(self):
        while not self.inbox:
            yield


def _depart(
    begin_s: np.ndarray, called_s: np.ndarray, overhead_s: float | np.ndarray, occupancy_s: float, messages: int
) -> np.ndarray:
    """When each of several messages begins to leave one port, shape (replications, messages).

    The core hands them over every `overhead_s`, the port takes `occupancy_s` each, and the slower of them decides.

    Args:
        begin_s: of the first, shape (replications, 1).
        called_s: when the core has handed the first over, likewise.
    """
    by_port_s = begin_s + _before_s(occupancy_s, messages)
    return np.maximum(by_port_s, called_s + _before_s(overhead_s, messages), out=by_port_s)


def _serve(come_s: np.ndarray, free_s: np.ndarray, service_s: float | np.ndarray) -> np.ndarray:
    """When a queue lets go of each message.

    Args:
        come_s: when they come, in order, shape (replications, messages).
        free_s: when the queue is free first, shape (replications, 1).
        service_s: of each message; a number, or shape (replications, 1).
    """
    if isinstance(service_s, float) and not service_s:
        return np.maximum(come_s, free_s)
    before_s = _before_s(service_s, come_s.shape[1])
    ready_s = come_s - before_s
    np.maximum(ready_s[:, :1], free_s, out=ready_s[:, :1])  # nobody comes before the first
    np.maximum.accumulate(ready_s, axis=1, out=ready_s)
    ready_s += before_s
    ready_s += service_s
    return ready_s


def _before_s(service_s: float | np.ndarray, messages: int) -> np.ndarray:
    """How long those before each message take; a number of seconds each, or shape (replications, 1)."""
    return _multiples(service_s, messages) if isinstance(service_s, float) else service_s * np.arange(messages)


@lru_cache(maxsize=64)
def _multiples(seconds: float, count: int) -> np.ndarray:
    found = seconds * np.arange(count)
    found.flags.writeable = False
    return found


def _waited_s(begin_s: np.ndarray, now_s: np.ndarray, done_s: np.ndarray) -> np.ndarray:
    """Seconds that one who serves messages waits for them to begin to come, shape (replications, 1).

    Args:
        begin_s: when each begins to come, shape (replications, messages); it is overwritten.
        now_s: when the first is waited for, shape (replications, 1).
        done_s: when each was served, shape (replications, messages).
    """
    begin_s[:, :1] -= now_s
    begin_s[:, 1:] -= done_s[:, :-1]
    return np.maximum(begin_s, 0, out=begin_s).sum(axis=1, keepdims=True)
