"""Asynchronous parameter servers: each gradient is applied as it comes."""

from dataclasses import dataclass

from sim.language.text import Text
from sim.language.verbs import compute, push, send


@dataclass(frozen=True)
class AsynchronousServers(Text):
    """Asynchronous data parallelism (Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012: Downpour SGD, every step).

    Each server updates its share of the weights with every gradient that comes and answers its sender with the newest weights. A
    step is as many updates as there are workers.

    Args:
        servers: how many share the weights.
    """

    servers: int = 1

    name, each = "ps-async", True

    def __call__(self, me):
        if me.rank in me.servers:
            weights, gradient = (one.part(me.rank, self.servers) for one in (me.weights, me.gradient))
            yield from send(me, weights, me.workers)
            for _ in me.steps():
                for _ in me.workers:
                    message = yield from me.take(me.workers, gradient, adds=True)
                    yield from me.update(weights, samples=message.samples)
                    yield from me.post(weights, message.sender)
        else:
            while (yield from me.follow(me.servers, me.weights)):
                yield from me.sleep()
                yield from compute(me)
                yield from push(me, me.servers)
