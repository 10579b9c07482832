"""Collective calls of one rank, exchange by exchange, and what a library does around them."""

from __future__ import annotations

import math

from sim.base.errors import WrongText
from sim.collectives.base import DENSE, ROWS, Exchange
from sim.event.ranks.message import Message
from sim.model.sizes import ITEM_BYTES
from sim.recording.traces import NOBODY
from sim.verbs.book import TIE_S

OTHER_SIZE = "an exchange takes {} bytes from rank {}, whose next message has {}: messages of two ranks are matched in order alone"


class Calls:
    """Verbs of `me` by which all ranks sum.

    Args:
        rank: sim.event.ranks.rank.Rank.
    """

    def __init__(self, rank):
        self._rank, self._costs, self._world = rank, rank.costs, rank.world
        self._cycle_from_s = -math.inf

    def cycle(self, cycle_s: float):
        """Sleep until the first cycle that finds a gradient ready everywhere; empty cycles before it are taken to cost nothing."""
        rank, readiness = self._rank, self._world.readiness
        begin_s, asleep_s = max(rank.clock_s, self._cycle_from_s + cycle_s), rank.clock_s
        count = rank.book.reduced
        if count >= len(readiness.everywhere_s):
            readiness.wait(count, rank.rank, rank.thread.go)
            yield
        ready_s = max(asleep_s, readiness.everywhere_s[count])
        left_s = (
            ready_s - TIE_S - begin_s
        )  # what is ready at the moment of a cycle's begin goes with it, whatever the rounding
        if left_s > 0:
            begin_s = begin_s + math.ceil(left_s / cycle_s) * cycle_s if cycle_s else ready_s
        yield from rank.mechanics.rest(max(0.0, max(ready_s, begin_s) - rank.clock_s))
        self._cycle_from_s = rank.clock_s
        rank.waited(min(rank.clock_s, max(asleep_s, rank.idle_from_s)), rank.clock_s)

    def copy(self, piece: slice):
        """Copy items into the fusion buffer, or out of it."""
        rank, size_bytes = self._rank, ITEM_BYTES * (piece.stop - piece.start)
        yield from rank.work("pack", self._costs.pack(size_bytes), 0, size_bytes)

    def allreduce(self, algorithm: str = "auto", fused: bool = True):
        """The sum of all workers' gradients, after a library's agreement to begin."""
        rank = self._rank
        if rank.summed:
            rank.at_hand.begin_sum()
        for piece in self._world.pieces(fused):
            yield from self._agree()
            yield from self.reduce(algorithm, piece)

    def _agree(self):
        """Sleep until the library begins."""
        rank = self._rank
        start_s, agree_s = rank.clock_s, self._costs.agree_s
        if agree_s:
            yield from rank.mechanics.rest(agree_s)
            rank.waited(start_s, rank.clock_s)
        yield from rank.mechanics.come_together()
        yield from self._negotiated()

    def _negotiated(self):
        """Take the time of an agreement with others, besides its messages."""
        if len(self._rank.workers) > 1 and self._costs.negotiate_s:
            yield from self._rank.work("pack", self._costs.negotiate_s)

    def reduce(self, algorithm: str, piece: slice):
        """Make one call: its exchanges, and the library's work around them."""
        rank, size_bytes = self._rank, ITEM_BYTES * (piece.stop - piece.start)
        if call_s := self._costs.call(size_bytes):
            yield from rank.work("pack", call_s, 0, size_bytes)
        for exchange in self._world.exchanges(algorithm, rank.rank - rank.workers[0], piece):
            yield from self.exchange(exchange)
        yield from rank.mechanics.departed()

    def negotiate(self, by_name: bool = False):
        """As the verb, and what it costs."""
        rank, start_s, ready = self._rank, self._rank.clock_s, self._rank.ready
        if len(rank.workers) > 1:
            ready = yield from self._world.agreement.ask(rank, by_name)
            rank.waited(min(rank.clock_s, max(start_s, rank.idle_from_s)), rank.clock_s)
        agreed, rank.book.reduced = range(rank.book.reduced, ready), ready
        yield from self._negotiated()
        variables = len(rank.scenario.workload.variables)
        return [variables - 1 - count % variables for count in agreed]

    def exchange(self, exchange: Exchange, ready: int = 0):
        """Send a piece while receiving another one; then add it up."""
        rank, message = self._rank, None
        if exchange.to is not None:
            message = self.piece(exchange)
            message.ready = ready
        letter = yield from rank.mechanics.swap(message, exchange.to, exchange.source, exchange.ahead)
        dense = letter is not None and exchange.kind == DENSE
        if dense and not rank.scenario.network.fair and letter.size_bytes != exchange.taken_bytes:  # flows may overtake
            raise WrongText(OTHER_SIZE.format(exchange.taken_bytes, letter.sender, letter.size_bytes))
        if exchange.adds:
            seconds = self._exchanged_s(exchange, letter.size_bytes)
            peer = NOBODY if exchange.kind == ROWS else letter.sender
            yield from rank.work("reduce", seconds, 0, letter.size_bytes, peer)
        if exchange.kind == DENSE and letter is not None and self._brings_samples(exchange):
            rank.samples = letter.samples + rank.samples * exchange.adds
        return letter

    def piece(self, exchange: Exchange) -> Message:
        """The message of an exchange."""
        rank, size_bytes = self._rank, exchange.sent_bytes
        return Message(rank.rank, rank.version, rank.samples, (size_bytes,), size_bytes)

    def _exchanged_s(self, exchange: Exchange, size_bytes: int) -> float:
        costs = self._costs
        if exchange.kind == ROWS and costs.reduce_rows:
            return costs.reduce_rows(size_bytes)
        return self._rank.amounts.reduce_s[size_bytes]

    def _brings_samples(self, exchange: Exchange) -> bool:
        """Whether the number of samples, the last item of what is summed, is in what is taken."""
        return (
            exchange.taken.stop == self._rank.scenario.summed_items + 1 and exchange.taken.start < exchange.taken.stop
        )
