"""The verbs of the vector world by which the master and all workers send to one another, in every replication at once."""

from __future__ import annotations

import math

import numpy as np

from sim.verbs.at_hand import SUM
from sim.verbs.me import GRADIENT, PARAMETERS


class Hub:
    """Verbs of the master, or of all workers; clocks have the shape (replications, ranks)."""

    def _others(self, verb: str, peers, does: bool = True) -> Hub:
        """The group at the other end, if `peers` are all of it, in order.

        Raises:
            Refused: they are not, or this group does not do that.
        """
        others = self.world.workers if self is self.world.master else self.world.master
        named = [peers] if isinstance(peers, int) else list(peers)
        does = does and not self.world.scenario.protocol.has_servers
        if not does or not named or named != list(others.ranks):
            said = "gather(me)" if verb == "gather" else f"me.{verb}"
            raise self.world.refuse(f"{said} of {named} is not between the master and all workers")
        return others

    def send(self, what, to, wait: bool = True):
        """One message to each rank of the other group, through one port; or from each rank, each through its own."""
        if not wait or what is not (PARAMETERS if self is self.world.master else GRADIENT):
            raise self.world.refuse(
                "the text sends what is no gradient to the master or parameters to all, or goes on at once"
            )
        others = self._others("send", to)
        link, size_bytes = self.world.scenario.network, self._message_bytes
        occupancy_s = link.occupancy_s(size_bytes)
        if self is self.world.master:
            posted_s = self.now_s + link.overhead_s / self.speeds * np.arange(1, len(others.ranks) + 1)
            leave_s = _serve(posted_s, self._out_free_s, occupancy_s)
            self._out_free_s = self.now_s = leave_s[:, -1:]
        else:
            leave_s = np.maximum(self.now_s + link.overhead_s / self.speeds, self._out_free_s) + occupancy_s
            self._out_free_s = self.now_s = leave_s
            self.at_hand.handed_on()
        others.comes(leave_s - occupancy_s + link.latency_s, self.samples, occupancy_s)
        yield from self._did()

    def comes(self, reach_s: np.ndarray, samples: np.ndarray, occupancy_s: float) -> None:
        """Messages will reach this group's ports, shape (replications, senders or receivers).

        Raises:
            Refused: some reach the master's port before others that were sent in the round before, and so pass it first.
        """
        first_s, last_s = reach_s.min(axis=1, keepdims=True), self._last_reach_s
        if self is self.world.master and ((first_s < last_s) | ((first_s == last_s) & (occupancy_s > 0))).any():
            raise self.world.refuse("workers overtake one another at the master's port")
        self._last_reach_s = np.maximum(last_s, reach_s.max(axis=1, keepdims=True))
        self.inbox.append((reach_s, samples))

    def receive(self, frm, until_s: float = math.inf, variable: int | None = None):
        """Wait for the parameters."""
        if until_s < math.inf or variable is not None:
            raise self.world.refuse("the text waits for a time or for one variable")
        self._others("receive", frm, does=self is self.world.workers)
        yield from self._until_message()
        reach_s, _samples = self.inbox.popleft()
        link = self.world.scenario.network
        begin_s = np.maximum(reach_s, self._in_free_s)
        self._in_free_s = begin_s + link.occupancy_s(self._message_bytes)
        self._wait(self.now_s, begin_s)
        self.now_s = np.maximum(self.now_s, self._in_free_s)
        self._spend(link.overhead_s)
        yield from self._did()
        return PARAMETERS

    def take_up(self, letter):
        """New parameters replace those at hand."""
        if letter is not PARAMETERS:
            raise self.world.refuse("the text takes up what is no message with parameters")
        self._spend(self.world.scenario.costs.take_up(self._message_bytes))
        yield from self._did()

    def gather(self, peers):
        """Receive from every worker in order of arrival, and add up.

        Two queues in tandem, the port and then the master's core, each serving all messages in equal time; the clock after
        the j-th is the running maximum of when the queue before let go of the i-th plus (j - i + 1) services.
        """
        self._others("gather", peers if isinstance(peers, int) else sorted(set(peers)), does=self is self.world.master)
        yield from self._until_message()
        reach_s, samples = self.inbox.popleft()
        link, size_bytes = self.world.scenario.network, self._message_bytes
        occupancy_s = link.occupancy_s(size_bytes)
        service_s = (link.overhead_s + self.world.scenario.costs.reduce(size_bytes)) / self.speeds
        here_s = _serve(np.sort(reach_s, axis=1), self._in_free_s, occupancy_s)
        added_s = _serve(here_s, self.now_s, service_s)
        self._wait(np.concatenate([self.now_s, added_s[:, :-1]], axis=1), here_s - occupancy_s)
        self._in_free_s, self.now_s = here_s[:, -1:], added_s[:, -1:]
        self.samples = self.samples + samples.sum(axis=1, keepdims=True)
        self.at_hand.what = SUM
        yield from self._did()

    @property
    def _message_bytes(self) -> int:
        """Of a message between master and workers: parameters, or a gradient."""
        return sum(load.answer_bytes for load in self.world.scenario.loads(0))

    def _until_message(self):
        while not self.inbox:
            yield


def _serve(come_s: np.ndarray, free_s: np.ndarray, service_s) -> np.ndarray:
    """When a queue lets go of each message; come_s (replications, messages) in order, free_s when the queue is free first."""
    order = np.arange(come_s.shape[1])
    ready_s = np.maximum(come_s, free_s)
    return np.maximum.accumulate(ready_s - service_s * order, axis=1) + service_s * (order + 1)
