"""Synchronous parameter servers, with backup workers or without."""

from dataclasses import dataclass

from sim.base.errors import WrongSetting
from sim.language.text import Text
from sim.language.verbs import clear, compute, send


@dataclass(frozen=True)
class SynchronousServers(Text):
    """Synchronous data parallelism with servers that have a share of the weights each.

    Chen et al., "Revisiting Distributed Synchronous SGD", 2016 (arXiv 1604.00981): an update takes the first gradients of its step.

    Args:
        servers: how many share the weights.
        backup: workers whose gradients an update does not wait for; theirs are dropped.
    """

    servers: int = 1
    backup: int = 0

    name = "ps-sync"

    def check(self, job):
        if not 0 <= self.backup < job.ranks - self.servers:
            raise WrongSetting(
                "backup", self.backup, f"an integer from 0, and less than the {job.ranks - self.servers} workers"
            )

    def __call__(self, me):
        if me.rank in me.servers:
            needed = len(me.workers) - self.backup
            weights, gradient = (one.part(me.rank, self.servers) for one in (me.weights, me.gradient))
            for step in me.steps():
                yield from send(me, weights, me.workers)
                added = 0
                while added < needed:
                    message = yield from me.take(me.workers)
                    if message.step == step:
                        yield from me.mix(gradient, message)
                        added += 1
                yield from me.update(weights, samples=needed * me.batch)
        else:
            while (yield from me.follow(me.servers, me.weights)):
                yield from me.sleep()
                yield from compute(me)
                for server in me.servers:
                    yield from me.post(me.gradient.part(server, self.servers), server)
                yield from clear(me, me.gradient)
