"""Verbs of the vector world by which workers and parameter servers meet behind a barrier (sim.verbs.servers)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from sim.vector.servers.barrier_round import Clocks, check_received, let_go, posted_of, receive, settle
from sim.vector.servers.handed_in import HandedIn
from sim.vector.shared.rounds import BarrierRounds, Ranks
from sim.verbs.at_hand import SUM

FIRST = slice(0, 1)  # of several servers
WHOSE = "the text asks whose gradients were added first"


class Some(Collection[int]):
    """Senders of so many gradients, others in each replication."""

    def __init__(self, count: int, refuse):
        self._count, self._refuse = count, refuse

    def __len__(self) -> int:
        return self._count

    def __iter__(self):
        raise self._refuse(WHOSE)

    def __contains__(self, _one):
        raise self._refuse(WHOSE)


class Barrier(HandedIn):
    """Verbs of all workers, or of all servers; clocks have the shape (replications, ranks)."""

    _added: Collection[int] | None = None  # the senders of the gradients that were added last

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
        if self.world.crowd is None:
            self._ask(servers)
        self.pulled, self._asked_s = True, self.now_s  # others ask where the round is settled
        yield from self._did()

    def _ask(self, servers) -> None:
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
        if self.world.barrier is None:
            self._take_notes()
            self.step += 1
        else:
            self.notes.pop()
            self.now_s = np.zeros_like(self.now_s)  # since the last note, which is not here yet
            self.step = self.world.barrier.steps
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
        mixed = self.world.mixed
        needed = self.world.scenario.protocol.gradients_per_update(len(everyone)) if mixed is None else mixed.senders
        self._only(self is self.world.master and list(workers) == everyone and count == needed)
        if self.world.training_is_over:
            if self.world.barrier is not None:
                self._wait_of_crowd(*self._settled(self.world.barrier.end, *self._ranks_of_crowd()))
            return []
        while not self.arrived or (mixed is not None and not mixed.is_ready(self.step == self.world.rounds[-1])):
            yield
        others = self.world.workers
        if mixed is not None:
            self._settle_mixed(mixed)
        elif self.world.barrier is not None:
            self._settle_crowd(self.world.barrier)
        else:
            (self._settle_hybrid if self.arrived[0].handed_in else self._settle_round)()
            others.end_computing()
        samples = others.sent_samples[:, : None if mixed else count].sum(axis=1, keepdims=True)  # all are alike
        self.samples = np.broadcast_to(samples, self.now_s.shape)
        self.at_hand.what = SUM
        yield from self._did()
        self._added = everyone if count == len(everyone) else Some(count, self.world.refuse)
        return self._added

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

    def _settle_crowd(self, barrier: BarrierRounds) -> None:
        """Enough gradients are added, of ranks of whom some share hosts or are late."""
        self.arrived.popleft()
        self.step = len(self.world.updates)
        self.now_s, *waits = self._settled(barrier.settle, *self._ranks_of_crowd())
        self._wait_of_crowd(*waits)

    def _ranks_of_crowd(self) -> tuple[Ranks, Ranks]:
        others = self.world.workers
        return Ranks(self.now_s, self.speeds, self.updated_s), Ranks(others.now_s, others.speeds, others.computing)

    def _wait_of_crowd(self, waits, of_workers) -> None:
        self._wait_each(waits)
        for several in of_workers:
            self.world.workers._wait_each(several)

    def hear(self, peers):
        """The first server waits for a note from each other one, where these do not wait for it."""
        others = list(peers)
        self._only(self is self.world.master and others == list(self.ranks[1:] if self.world.first_leads else []))
        if self.world.barrier is not None:
            heard_s, (from_s, to_s) = self.world.barrier.hear(self.now_s, self.speeds)
            for turn in range(from_s.shape[2]):
                self._wait(from_s[:, :, turn], to_s[:, :, turn], FIRST)
            self.now_s = np.concatenate([heard_s, self.now_s[:, 1:]], axis=1)
        yield from self._did()

    def let_go(self, workers, version=None):
        """Servers let all workers go, in the order in which they added their gradients; workers, those that wait for them."""
        mixed = self.world.mixed
        if not len(workers) or (mixed is not None and self is self.world.workers):
            return
        others = self.world.workers
        named = workers is self._added or list(workers) == list(others.ranks)
        self._only(self is self.world.master and named and version is None)
        if mixed is not None:
            self.now_s = self._settled(mixed.let_go, self.now_s)
            yield from self._did()
            return
        if self.world.barrier is None:
            clocks = Clocks(self.now_s, self._out_free_s, self._in_free_s)
            (self.now_s, self._out_free_s, _), reach_s = let_go(self._sizes, clocks, self.speeds, self._in_place)
            self._check_foreseen(reach_s)
            if self.world.training_is_over and self.world.served_in_rounds:
                # a server that is done before the first waits until the end
                self._wait(self.now_s, np.full_like(self.now_s, np.inf))
        else:
            self.now_s = reach_s = self._settled(self.world.barrier.let_go, self.now_s, self.speeds)
        others.notes.append(reach_s)
        yield from self._did()
