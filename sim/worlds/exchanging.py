"""The verbs of the event world for collectives: what ranks that sum together do around their exchanges, and in each."""

from __future__ import annotations

from functools import partial

import simpy

from sim.collectives import Exchange
from sim.network import Message
from sim.workload import ITEM_BYTES
from sim.worlds.collective import Collective


class Exchanging(Collective):
    """Verbs of a rank that sums with others; mixed into the event world's Rank, before its other verbs."""

    _ahead: tuple[simpy.Event, ...] = ()  # departures that it has gone on before

    def agree(self):
        """Asleep until the library begins."""
        start_s, agree_s = self.now_s, self.world.costs.agree_s
        if agree_s:
            yield self.world.env.timeout(agree_s)
            self._record("wait", start_s)
        if self.naps and self.scenario.protocol.in_library:
            yield from self.come_together()
        yield from self.negotiated()

    def negotiated(self):
        """What it takes to agree with others, besides the messages."""
        if len(self.workers) > 1 and self.world.costs.negotiate_s:
            yield from self._work("pack", self.world.costs.negotiate_s)

    def reduce_all(self, algorithm: str, whole: slice):
        """One call: what a library does around its exchanges, and these."""
        size_bytes = ITEM_BYTES * (whole.stop - whole.start)
        call_s = self.world.costs.call(size_bytes)
        if call_s:
            yield from self._work("pack", call_s, bytes=size_bytes)
        yield from super().reduce_all(algorithm, whole)

    def exchange(self, exchange: Exchange):
        """Hand a piece to one rank while taking one from another; then add it up."""
        taken = yield from self.swap(exchange)
        if exchange.adds:
            seconds = self.world.costs.reduce(taken.size_bytes)
            yield from self._work("reduce", seconds, bytes=taken.size_bytes, peer=taken.sender)
        if self.brings_samples(exchange):
            self.samples = taken.samples + self.samples * exchange.adds

    def swap(self, exchange: Exchange, ready: int = 0, messages: int = 1):
        """Hand a piece over, if any, while taking another, if any, whose message is returned; `ready` goes with it.

        Args:
            messages: in how many, which travel together; each has the piece's size.
        """
        departure = None
        if exchange.to is not None:
            parts = (exchange.sent_bytes,) * messages
            message = Message(self.rank, self.version, self.samples, sum(parts), ready=ready, parts=parts)
            start_s = self.now_s
            departure = yield from self._post(exchange.to, message)
            departure.callbacks.append(partial(self._left, start_s, self.step, message, exchange.to))
        taken = None if exchange.source is None else (yield from self.arrival({exchange.source}))
        if departure is not None and exchange.ahead:
            self._ahead += (departure,)
        elif departure is not None:
            yield from self.until(departure)
        return taken

    def let_leave(self):
        """Until all that was handed over ahead has left."""
        leaving, self._ahead = [departure for departure in self._ahead if not departure.processed], ()
        if leaving:
            yield from self.until(simpy.AllOf(self.world.env, leaving))

    def add_rows(self, size_bytes: int):
        """Add rows that came to those at hand."""
        costs = self.world.costs
        yield from self._work("reduce", (costs.reduce_rows or costs.reduce)(size_bytes), bytes=size_bytes)
