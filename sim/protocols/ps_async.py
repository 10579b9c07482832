"""Asynchronous parameter servers: each gradient is applied as it comes."""

from __future__ import annotations

from dataclasses import dataclass

from sim.protocols.base import Protocol


@dataclass(frozen=True)
class AsynchronousServers(Protocol):
    """Asynchronous data parallelism with parameter servers, as tf.compat.v1.train.Server and an optimiser do it.

    Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012 (Downpour SGD, every step). A worker pushes its gradient
    to every server and pulls what it holds; nobody waits for anybody else, and gradients are stale.
    """

    name = "ps-async"
    arrival_order_matters = True
    uses_servers = True
    applies_each_gradient = True

    def worker(self, me):
        while (yield from me.receive(me.servers)):
            yield from me.sleep()
            yield from me.compute()
            yield from me.send(me.servers)

    def server(self, me):
        yield from me.answer(me.workers)
        while worker := (yield from me.take(me.workers)):
            yield from me.add()
            yield from me.update()
            yield from me.evaluate()
            yield from me.answer(worker)
