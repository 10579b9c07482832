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
    the token's is dropped.

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

    def check(self, scenario):
        if scenario.servers > 1 and not (self.barrier and self.gradients(scenario.workers) == scenario.workers):
            allowed = "1; several only with ps-sync --set barrier=true: servers that hand out tokens apart wait for one another"
            raise WrongSetting("--servers", scenario.servers, allowed)

    def worker(self, me):
        while (yield from me.receive(me.servers)):
            yield from me.sleep()
            yield from me.compute()
            yield from me.send(me.servers)

    def server(self, me):
        yield from (self.wait_for_workers if self.barrier else self.hand_out_tokens)(me)

    def wait_for_workers(self, me):
        """The first gradients on the newest parameters make the update; a late one is dropped (Chen et al., 2016)."""
        yield from me.answer(me.workers)
        added = []
        while worker := (yield from me.take(me.workers)):
            if me.staleness:
                yield from me.answer(worker)
                continue
            yield from me.add()
            added.append(worker)
            if len(added) == self.gradients(len(me.workers)):
                yield from me.update()
                yield from me.evaluate()
                yield from me.answer(added)
                added = []

    def hand_out_tokens(self, me):
        """sync_replicas_optimizer.py: as many tokens at the start as gradients make an update, then one for each worker."""
        yield from me.answer(me.workers)
        needed, added, waiting = self.gradients(len(me.workers)), 0, deque()
        tokens = deque([me.version] * needed)
        while worker := (yield from me.take(me.workers)):
            waiting.append(worker)
            if not me.staleness:
                yield from me.add()
                added += 1
            if added == needed:
                yield from me.update()
                yield from me.evaluate()
                tokens.extend([me.version] * len(me.workers))
                added = 0
            while tokens and waiting:
                yield from me.answer(waiting.popleft(), version=tokens.popleft())


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
        super().check(scenario)

    def gradients(self, workers: int) -> int:
        return workers - self.backup
