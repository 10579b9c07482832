"""Synchronous parameter servers, with backup workers or without."""

from dataclasses import dataclass

from sim.language.text import Text, require
from sim.language.verbs import compute, push, send


@dataclass(frozen=True)
class SynchronousServers(Text):
    """Servers that take the first gradients of each step (Chen et al., "Revisiting Distributed Synchronous SGD", arXiv 1604.00981)."""

    servers: int = 1  # that have a share of the weights each
    backup: int = 0  # workers whose gradients an update does not wait for; late ones are dropped

    name = "ps-sync"

    def check(self, job):
        workers = job.ranks - self.servers
        require(self.backup < workers, "--set backup", self.backup, f"an integer, less than the {workers} workers")

    def __call__(self, me):
        if me.rank in me.servers:
            weights, gradient = (one.part(me.rank, self.servers) for one in (me.weights, me.gradient))
            for step in me.steps():
                yield from send(me, weights, me.workers)
                missing = len(me.workers) - self.backup
                while missing:
                    message = yield from me.take(me.workers)
                    if message.step == step:
                        yield from me.mix(gradient, message)
                        missing -= 1
                yield from me.update(weights, samples=(len(me.workers) - self.backup) * me.batch)
        else:
            while (yield from me.follow(me.servers, me.weights)):
                yield from me.sleep()
                yield from compute(me)
                yield from push(me, me.servers)
