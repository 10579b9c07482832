"""Messages between a master and workers of whom some share hosts, with one another or with the master."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np

from sim.vector.exchanges import unclear
from sim.vector.servers.barrier_round import queue
from sim.vector.ties import in_order
from sim.verbs.at_hand import SUM
from sim.verbs.book import TIE_S


class Neighbours:
    """How the verbs of sim.vector.hub are done there. A rank copies a neighbour's message, and the neighbour goes on after that.

    Args:
        scenario: with one master.
        refuse: makes the exception that is raised where an order cannot be told.
    """

    def __init__(self, scenario, refuse):
        hosts = np.array(scenario.hosts)
        self._near = hosts[1:] == hosts[0]  # workers on the master's host
        self._far = ~self._near
        self._refuse, self._link, self._local = refuse, scenario.network, scenario.local
        size_bytes = sum(load.answer_bytes for load in scenario.traffic.loads(0))
        self._port_s = self._link.occupancy_s(size_bytes)
        copy_s = self._local.overhead_s + self._local.occupancy_s(size_bytes)
        self._take_s = np.where(self._near, copy_s, self._link.overhead_s)  # of a core, by the worker at the other end
        woken_s = self._take_s + self._far * self._port_s  # a rank is, before it comes to a port
        self._posted_before_s = float(woken_s.min())
        self._reduce_s = scenario.costs.reduce(size_bytes)
        by_host: defaultdict[int, list[int]] = defaultdict(list)
        for worker in np.flatnonzero(self._far).tolist():
            by_host[int(hosts[worker + 1])].append(worker)
        self._alike = [
            np.array([own for own in by_host.values() if len(own) == n]) for n in {*map(len, by_host.values())}
        ]
        self._copied_s: deque[np.ndarray] = deque()  # when each neighbour has copied the master's message
        self._taken_s: deque[np.ndarray] = deque()  # and the master each neighbour's

    def send_down(self, master, workers):
        """Parameters to all workers."""
        called_s = master.now_s + master._seconds(self._link.overhead_s) * np.cumsum(self._far)
        reach_s, left_s = called_s + self._local.latency_s, called_s[:, -1:]
        if self._far.any():
            come_s = called_s[:, None, self._far]
            begin_s = queue(come_s, master._out_free_s, np.broadcast_to(self._port_s, come_s.shape))[:, 0]
            master._out_free_s = begin_s[:, -1:] + self._port_s
            reach_s[:, self._far], left_s = begin_s + self._link.latency_s, np.maximum(left_s, master._out_free_s)
        master.now_s = left_s
        workers.inbox.append((reach_s, workers.samples))
        if self._near.any():
            while not self._copied_s:
                yield
            master.now_s = np.maximum(left_s, self._copied_s.popleft().max(axis=1, keepdims=True))

    def receive(self, workers):
        """A message of the master, at every worker."""
        reach_s, _samples = workers.inbox.popleft()
        begin_s = np.where(self._near, reach_s, np.maximum(reach_s, workers._in_free_s))
        here_s = begin_s + self._far * self._port_s
        workers._in_free_s = np.where(self._far, here_s, workers._in_free_s)
        workers._wait(workers.now_s, begin_s)
        workers.now_s = np.maximum(workers.now_s, here_s) + workers._seconds(self._take_s)
        if self._near.any():
            self._copied_s.append(workers.now_s[:, self._near])

    def send_up(self, workers, master):
        """A gradient of every worker; those of a host leave by its port in the order in which they come there.

        Raises:
            Refused: two come there within some picoseconds, or one before one that was sent earlier.
        """
        posted_s = workers.now_s + workers._seconds(self._far * self._link.overhead_s)
        reach_s, left_s = posted_s + self._local.latency_s, posted_s.copy()
        for own in self._alike:
            come_s = posted_s[:, own]
            order = in_order(come_s)
            in_turn_s, free_s = np.take_along_axis(come_s, order, 2), workers._out_free_s[:, own].max(axis=2)
            if own.shape[1] > 1 and self._port_s:
                too_near = unclear(np.diff(in_turn_s, axis=2), self._posted_before_s).any()
                if too_near or (in_turn_s[:, :, 0] <= free_s - self._port_s + 2 * TIE_S).any():
                    raise self._refuse("which message leaves a host first cannot be told")
            begin_s = np.empty_like(come_s)
            in_turn_s = queue(in_turn_s, free_s, np.broadcast_to(self._port_s, come_s.shape))
            np.put_along_axis(begin_s, order, in_turn_s, 2)
            reach_s[:, own], left_s[:, own] = begin_s + self._link.latency_s, begin_s + self._port_s
            workers._out_free_s = workers._out_free_s.copy()
            workers._out_free_s[:, own] = in_turn_s[:, :, -1:] + self._port_s
        workers.now_s = left_s
        master.inbox.append((reach_s, workers.samples))
        if self._near.any():
            while not self._taken_s:
                yield
            workers.now_s = left_s.copy()
            workers.now_s[:, self._near] = np.maximum(left_s[:, self._near], self._taken_s.popleft())

    def gather(self, master):
        """The gradients of all workers, in the order in which they come to the master.

        Raises:
            Refused: it cannot be told, or some come before one that was sent earlier.
        """
        reach_s, samples = master.inbox.popleft()
        order = in_order(reach_s)
        come_s, near = np.take_along_axis(reach_s, order, 1), self._near[order]
        self._check(come_s, near, master._last_reach_s)
        master._last_reach_s = come_s[:, -1:]
        port_s, passing_s = np.where(near, 0.0, self._port_s), np.where(near, -np.inf, come_s)
        begin_s = np.where(near, come_s, queue(passing_s[:, None], master._in_free_s, port_s[:, None])[:, 0])
        take_s = master._seconds(self._take_s[order])
        core_s = take_s + master._seconds(self._reduce_s)
        starts_s = queue((begin_s + port_s)[:, None], master.now_s, core_s[:, None])[:, 0]
        done_s = starts_s + core_s
        before_s = np.concatenate([master.now_s, done_s[:, :-1]], axis=1)
        master._waits.add_own(np.maximum(begin_s - before_s, 0).sum(axis=1, keepdims=True))
        taken_s = np.empty_like(done_s)
        np.put_along_axis(taken_s, order, starts_s + take_s, 1)
        if self._near.any():
            self._taken_s.append(taken_s[:, self._near])
        through_s = np.where(near, -np.inf, begin_s + port_s).max(axis=1, keepdims=True)
        master._in_free_s, master.now_s = np.maximum(master._in_free_s, through_s), done_s[:, -1:].copy()
        master.samples = master.samples + samples.sum(axis=1, keepdims=True)
        master.at_hand.what = SUM

    def _check(self, come_s: np.ndarray, near: np.ndarray, last_s: np.ndarray) -> None:
        """Gradients that come together do so in the order of workers; to a neighbour among these that matters."""
        some = near[:, 1:] | near[:, :-1]
        if (some & unclear(np.diff(come_s, axis=1), self._posted_before_s)).any() or (come_s[:, :1] <= last_s).any():
            raise self._refuse("which gradient comes to the master first cannot be told")
