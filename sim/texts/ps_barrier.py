"""Synchronous parameter servers with a barrier, and with backup workers or without."""

from dataclasses import dataclass

from sim.language.text import Text, require
from sim.language.verbs import let_go, pulled, report, work_with_servers


@dataclass(frozen=True)
class BarrierServers(Text):
    """Servers that take the first gradients of each step (Chen et al., "Revisiting Distributed Synchronous SGD", arXiv 1604.00981)."""

    servers: int = 1  # that have a share of the weights each
    backup: int = 0  # workers whose gradients an update does not wait for; late ones are dropped
    name = "ps-barrier"

    def check(self, job):
        require(self.backup < job.ranks - self.servers, "--set backup", self.backup, "fewer than the workers")

    def __call__(self, me):
        if me.rank in me.workers:
            return (yield from work_with_servers(me))
        weights, gradient = me.held(me.weights, me.rank), me.held(me.gradient, me.rank)
        needed = len(me.workers) - self.backup
        for step in me.steps():
            added, missing = [], needed
            while missing:
                message = yield from pulled(me, weights)
                if message.step == step and (self.backup == 0 or me.rank == 0):  # it is held until the update
                    added.append(message.sender)
                else:
                    yield from let_go(me, message.sender)
                if message.step == step:
                    yield from me.mix(gradient, message)
                    missing -= 1
            yield from me.update(weights, samples=needed * me.batch, share=me.held_share(me.rank, needed))
            yield from report(me, self.backup > 0)
            yield from me.evaluate()
            for worker in added:
                yield from let_go(me, worker)
