"""Synchronous parameter servers, with backup workers or without: as TensorFlow does them, and as the textbook does."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from sim.base.errors import WrongSetting
from sim.protocols.base import Protocol
from sim.verbs import hear, let_go, pull, push, take, take_first, tell, training


class BarrierServers(Protocol):
    """Parameter servers with the textbook's barrier: an update takes a gradient from each worker, and then all go on.

    Where it takes fewer, they are the first on the newest parameters, and a late one is dropped.
    """

    def worker(self, me):
        while training(me):
            yield from me.sleep()
            yield from me.fetch()
            yield from pull(me, me.servers)
            yield from me.compute()
            yield from push(me, me.servers, version=self.counts_as(me))

    def counts_as(self, me):
        """The version of the parameters that a gradient counts as made on; None is those that were pulled."""
        return

    def apart(self, workers: int) -> bool:
        """Whether servers need not agree which workers go on: an update takes a gradient from each, so none is late."""
        return self.gradients_per_update(workers) == workers

    def waits_for_all(self, workers: int) -> bool:
        return self.apart(workers)

    def server(self, me):
        if self.apart(len(me.workers)) or me.rank == me.servers[0]:
            yield from self.wait_for_first(me)
        else:
            yield from self.accumulate(me)

    def wait_for_first(self, me):
        """Each server where servers are apart, or the first."""
        needed = self.gradients_per_update(len(me.workers))
        while added := (yield from take_first(me, me.workers, needed)):
            yield from me.update()
            if not self.apart(len(me.workers)):
                yield from hear(me, me.servers[1:])
            yield from me.evaluate()
            yield from let_go(me, added)

    def accumulate(self, me):
        """Any server but the first: it adds up the first gradients on its newest parameters, and tells of each update."""
        added = 0
        while letter := (yield from take(me, me.workers)):
            yield from let_go(me, letter.sender)
            if letter.version == me.version:
                yield from me.add(letter)
                added += 1
            if added == self.gradients_per_update(len(me.workers)):
                yield from me.update()
                yield from tell(me, me.servers[0])
                added = 0


@dataclass(frozen=True)
class SynchronousServers(BarrierServers):
    """Synchronous data parallelism with parameter servers.

    As in tf.compat.v1.train.SyncReplicasOptimizer, there is no barrier but a queue of tokens. A worker that has pushed its gradient
    takes a token and goes on, and each update makes a token for every worker. An update does not ask whose gradients it has: a fast
    worker may take a slow one's token and push twice. A gradient of older parameters than the token's is dropped. Each of several
    servers has an accumulator of gradients. The first server alone has tokens, and makes them when all servers have made their
    update.

    Args:
        barrier: the textbook's barrier instead.
    """

    barrier: bool = False

    name = "ps-sync"

    def counts_as(self, me):
        return None if self.barrier else me.book.token

    def apart(self, workers: int) -> bool:
        return self.barrier and super().apart(workers)

    def server(self, me):
        if self.apart(len(me.workers)) or me.rank == me.servers[0]:
            yield from (self.wait_for_first if self.barrier else self.hand_out_tokens)(me)
        else:
            yield from self.accumulate(me)

    def hand_out_tokens(self, me):
        """sync_replicas_optimizer.py: as many tokens at the start as gradients make an update, then one for each worker."""
        needed, added = self.gradients_per_update(len(me.workers)), 0
        waiting: deque[int] = deque()
        tokens = deque([me.version] * needed)
        while letter := (yield from take(me, me.workers)):
            waiting.append(letter.sender)
            if letter.version == me.version:
                yield from me.add(letter)
                added += 1
            if added == needed:
                yield from me.update()
                yield from hear(me, me.servers[1:])
                yield from me.evaluate()
                tokens.extend([me.version] * len(me.workers))
                added = 0
            while tokens and waiting:
                yield from let_go(me, waiting.popleft(), version=tokens.popleft())


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

    def gradients_per_update(self, workers: int) -> int:
        return workers - self.backup
