"""Asynchronous parameter servers: each gradient is applied as it comes."""

from __future__ import annotations

from dataclasses import dataclass

from sim.protocols.base import Protocol


@dataclass(frozen=True)
class AsynchronousServers(Protocol):
    """Asynchronous data parallelism with parameter servers, as tf.compat.v1.train.Server and an optimiser do it.

    Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012 (Downpour SGD, every step). A worker pulls what every
    server holds, and pushes its gradient to every server; nobody waits for anybody else, and gradients are stale.
    """

    name = "ps-async"
    arrival_order_matters = True
    uses_servers = True
    applies_each_gradient = True

    def worker(self, me):
        going_on = True
        while going_on:
            yield from me.sleep()
            yield from me.fetch()
            yield from me.pull(me.servers)
            yield from me.compute()
            going_on = yield from me.push(me.servers)

    def server(self, me):
        while worker := (yield from me.take(me.workers)):
            yield from me.add()
            yield from me.update()
            yield from me.evaluate()
            yield from me.let_go(worker)
