"""Verbs of the vector world by which workers and parameter servers meet behind a barrier (sim.verbs.servers)."""

from __future__ import annotations

from collections import deque

import numpy as np

from sim.vector.servers.barrier_round import Clocks, check_received, let_go, posted_of, receive, settle
from sim.vector.servers.serving import Serving
from sim.verbs.at_hand import SUM


class Barrier(Serving):
    """Verbs of all workers, or of all servers; clocks have the shape (replications, ranks)."""

    arrived: deque[Barrier]  # the workers whose gradients are on their way to these servers
    sent_samples: np.ndarray  # of the gradients that were sent to servers

    def fetch(self):
        """A minibatch, before the parameters for it."""
        self._input(self.world.scenario.batch)
        self._fetched = True
        yield from self._did()

    def pull(self, servers):
        """Ask all servers for parameters. When they are answered is not known before the round is over."""
        if not len(servers):
            return
        self._only(self is self.world.workers and list(servers) == list(self.world.master.ranks) and not self.pulled)
        self._ask()
        self.pulled, self._asked_s = True, self.now_s
        yield from self._did()

    def _ask(self) -> None:
        sizes = self._sizes
        posted_s = posted_of(sizes, self.now_s, self.speeds)
        before_s = np.cumsum(sizes.request_s) - sizes.request_s
        free_s = np.maximum(posted_s, self._out_free_s[:, :, None]) - before_s
        begin_s = np.maximum.accumulate(free_s, axis=2) + before_s
        self.now_s, self._out_free_s = posted_s[:, :, -1], begin_s[:, :, -1] + sizes.request_s[-1]
        self.requests_s = (begin_s + sizes.latency_s).swapaxes(1, 2)

    def compute_later(self) -> None:
        """A gradient on parameters that have been asked for."""
        self._only(not self._computes)
        self._computes = True

    def push(self, servers, version=None):
        """Send all servers the gradient, and wait until all have let this worker go."""
        self._only(version is None and self._has_computed(servers))
        self.at_hand.handed_on()
        self.sent_samples = self.samples
        self.world.master.arrived.append(self)
        yield from self._did()
        yield from self._until_notes()
        self._take_notes()
        self.step += 1
        self.pulled = self._computes = False
        self.book.over = self.world.training_is_over
        yield from self._did()

    def _take_notes(self) -> None:
        sizes, reach_s = self._sizes, self.notes.pop()
        self._settled(check_received, sizes, reach_s)
        core_s = np.broadcast_to(sizes.overhead_s / self.speeds[:, :, None], reach_s.swapaxes(1, 2).shape)
        clocks = Clocks(self.now_s, self._out_free_s, self._in_free_s)
        self.now_s, self._in_free_s, waits = receive(reach_s, clocks, sizes.note_s, core_s)
        self._wait_each(waits)

    def take_first(self, workers, count: int):
        """Add up a gradient of each worker, and answer requests meanwhile."""
        everyone = list(self.world.workers.ranks)
        self._only(self is self.world.master and list(workers) == everyone and count == len(everyone))
        if self.world.training_is_over:
            return []
        while not self.arrived:
            yield
        self._settle_round()
        others = self.world.workers
        others.end_computing()
        self.samples = np.broadcast_to(others.sent_samples.sum(axis=1, keepdims=True), self.now_s.shape)
        self.at_hand.what = SUM
        yield from self._did()
        return everyone

    def _settle_round(self) -> None:
        """All gradients are added, of ranks with a host each."""
        others = self.arrived.popleft()
        serving = Clocks(self.now_s, self._out_free_s, self._in_free_s), self.speeds
        working = Clocks(others.now_s, others._out_free_s, others._in_free_s), others.speeds
        served, pushed = self._settled(settle, self._sizes, serving, working, others.requests_s, others.computed_s)
        self.now_s, self._out_free_s, self._in_free_s = served.clocks
        others.now_s, others._out_free_s, others._in_free_s = pushed.clocks
        self._wait_each(served.waits)
        others._wait_each(pushed.waits)
        self._in_place = served.added

    def hear(self, peers):
        """No server tells another of its updates, where each has all gradients."""
        self._only(not list(peers))
        yield from self._did()

    def let_go(self, workers, version=None):
        """Servers let all workers go, in the order in which they added their gradients."""
        if not len(workers):
            return
        others = self.world.workers
        self._only(self is self.world.master and list(workers) == list(others.ranks) and version is None)
        clocks = Clocks(self.now_s, self._out_free_s, self._in_free_s)
        (self.now_s, self._out_free_s, _), reach_s = let_go(self._sizes, clocks, self.speeds, self._in_place)
        if self.world.training_is_over and self.world.served_in_rounds:
            # a server that is done before the first waits until the end
            self._wait(self.now_s, np.full_like(self.now_s, np.inf))
        others.notes.append(reach_s)
        yield from self._did()
