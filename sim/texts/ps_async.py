"""Asynchronous parameter servers: each gradient is applied as it comes."""

from dataclasses import dataclass

from sim.language.text import Text
from sim.language.verbs import let_go, pulled, work_with_servers


@dataclass(frozen=True)
class AsynchronousServers(Text):
    """Asynchronous data parallelism (Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012: Downpour SGD, every step).

    Each server updates its share of the weights with every gradient that comes, as tf.compat.v1.train.Server does. A step is as many
    updates as there are workers.

    Args:
        servers: how many share the weights.
    """

    servers: int = 1

    name, each = "ps-async", True

    def __call__(self, me):
        if me.rank in me.servers:
            weights, gradient = me.held(me.weights, me.rank), me.held(me.gradient, me.rank)
            for _ in me.steps():
                for _ in me.workers:
                    message = yield from pulled(me, weights)
                    yield from me.mix(gradient, message)
                    yield from me.update(weights, samples=message.samples, share=me.held_share(me.rank))
                    yield from let_go(me, message.sender)
                yield from me.evaluate()
        else:
            yield from work_with_servers(me)
