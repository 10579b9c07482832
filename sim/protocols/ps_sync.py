"""Synchronous parameter servers, with backup workers or without: as TensorFlow does them, and as the textbook does."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from sim.errors import WrongSetting
from sim.protocols.base import Protocol


@dataclass(frozen=True)
class SynchronousServers(Protocol):
    """Synchronous data parallelism with parameter servers.

    As tf.compat.v1.train.SyncReplicasOptimizer does it, there is no barrier but a queue of tokens: a worker that has pushed
    its gradient takes a token and goes on, and each update makes a token for every worker. Nobody asks whose gradients an
    update is made of, so that a fast worker may take a slow one's token and push twice; a gradient of older parameters than
    the token's is dropped. Of several servers each has an accumulator of gradients, and the first alone has tokens: it makes
    them when all servers have made their update.

    Args:
        barrier: the textbook's barrier instead: an update of one gradient from each worker, and then all go on.
    """

    barrier: bool = False

    name = "ps-sync"
    arrival_order_matters = True
    uses_servers = True

    def gradients(self, workers: int) -> int:
        """How many gradients make an update."""
        return workers

    def apart(self, workers: int) -> bool:
        """Whether servers need not agree who goes on: an update takes a gradient from everybody, so nobody is late."""
        return self.barrier and self.gradients(workers) == workers

    def worker(self, me):
        going_on = True
        while going_on:
            yield from me.sleep()
            yield from me.fetch()
            yield from me.pull(me.servers)
            yield from me.compute()
            going_on = yield from me.push(me.servers, version=None if self.barrier else me.let_go_at)

    def server(self, me):
        if self.apart(len(me.workers)):
            yield from self.wait_for_all(me)
        elif me.rank != me.servers[0]:
            yield from self.accumulate(me)
        else:
            yield from (self.wait_for_first if self.barrier else self.hand_out_tokens)(me)

    def accumulate(self, me):
        """Any server but the first: it adds up the first gradients on its newest parameters, and tells of each update."""
        added = 0
        while worker := (yield from me.take(me.workers)):
            yield from me.let_go(worker)
            if not me.staleness:
                yield from me.add()
                added += 1
            if added == self.gradients(len(me.workers)):
                yield from me.update()
                yield from me.tell(me.servers[0])
                added = 0

    def wait_for_all(self, me):
        """The barrier."""
        added = []
        while worker := (yield from me.take(me.workers)):
            yield from me.add()
            added.append(worker)
            if len(added) == len(me.workers):
                yield from me.update()
                yield from me.evaluate()
                yield from me.let_go(added)
                added = []

    def wait_for_first(self, me):
        """The first gradients on the newest parameters make the update; a late one is dropped (Chen et al., 2016)."""
        added = []
        while worker := (yield from me.take(me.workers)):
            if me.staleness:
                yield from me.let_go(worker)
                continue
            yield from me.add()
            added.append(worker)
            if len(added) == self.gradients(len(me.workers)):
                yield from me.update()
                yield from me.hear(me.servers[1:])
                yield from me.evaluate()
                yield from me.let_go(added)
                added = []

    def hand_out_tokens(self, me):
        """sync_replicas_optimizer.py: as many tokens at the start as gradients make an update, then one for each worker."""
        needed, added, waiting = self.gradients(len(me.workers)), 0, deque()
        tokens = deque([me.version] * needed)
        while worker := (yield from me.take(me.workers)):
            waiting.append(worker)
            if not me.staleness:
                yield from me.add()
                added += 1
            if added == needed:
                yield from me.update()
                yield from me.hear(me.servers[1:])
                yield from me.evaluate()
                tokens.extend([me.version] * len(me.workers))
                added = 0
            while tokens and waiting:
                yield from me.let_go(waiting.popleft(), version=tokens.popleft())


@dataclass(frozen=True)
class BackupWorkers(SynchronousServers):
    """Synchronous parameter servers with backup workers: an update needs fewer gradients than there are workers.

    Chen, Pan, Monga, Bengio, Jozefowicz, "Revisiting Distributed Synchronous SGD", 2016 (arXiv 1604.00981), algorithm 4; in
    TensorFlow, replicas_to_aggregate below total_num_replicas.

    Args:
        backup: workers beyond those whose gradients an update needs.
    """

    backup: int = 1

    name = "ps-backup"

    def check(self, scenario):
        if not 0 <= self.backup < scenario.workers:
            allowed = f"0 to {scenario.workers - 1}: fewer than the {scenario.workers} workers"
            raise WrongSetting("--set backup", self.backup, allowed)

    def gradients(self, workers: int) -> int:
        return workers - self.backup
