"""Asynchronous parameter servers: each gradient is applied as it comes."""

from __future__ import annotations

from dataclasses import dataclass

from sim.protocols.base import Protocol
from sim.verbs import let_go, pull, push, take, training


@dataclass(frozen=True)
class AsynchronousServers(Protocol):
    """Asynchronous data parallelism with parameter servers, as tf.compat.v1.train.Server and an optimiser do it.

    Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012 (Downpour SGD, every step). A worker pulls what every
    server holds, and pushes its gradient to every server; nobody waits for anybody else, and gradients are stale.
    """

    name = "ps-async"

    def gradients_per_update(self, workers):
        return 1

    def updates_per_step(self, workers):
        return max(1, workers)

    def worker(self, me):
        while training(me):
            yield from me.sleep()
            yield from me.fetch()
            yield from pull(me, me.servers)
            yield from me.compute()
            yield from push(me, me.servers)

    def server(self, me):
        while letter := (yield from take(me, me.workers)):
            yield from me.add(letter)
            yield from me.update()
            yield from me.evaluate()
            yield from let_go(me, letter.sender)
