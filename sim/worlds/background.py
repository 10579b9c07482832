"""Verbs of a rank that communicates while it computes, as Horovod's background thread does; the event world only."""

from __future__ import annotations

import math

import simpy

from sim.collectives.base import hand, post, take
from sim.collectives.tree import tree
from sim.workload import ITEM_BYTES
from sim.worlds.collective import Collective
from sim.worlds.layers import FORWARD_SHARE

REQUEST = slice(0, 64)  # what a rank tells rank 0 in a negotiation, and is told: bits of a cache, in items of 4 bytes


class Readiness:
    """How many gradients each rank has had ready since the start, and who waits until more are so everywhere."""

    def __init__(self, env: simpy.Environment, ranks: int):
        self._env, self._counts, self._least, self._last = env, [0] * ranks, 0, ranks  # how many have the least
        self._waiting: list[tuple[int, simpy.Event]] = []

    def announce(self, rank: int) -> int:
        """One more of this rank is ready; how many are."""
        before, self._counts[rank] = self._counts[rank], self._counts[rank] + 1
        self._last -= before == self._least
        if not self._last:
            self._least = min(self._counts)
            self._last = self._counts.count(self._least)
            due = [event for count, event in self._waiting if count < self._least]
            self._waiting = [(count, event) for count, event in self._waiting if count >= self._least]
            for event in due:
                event.succeed()
        return self._counts[rank]

    def more_than(self, count: int) -> simpy.Event:
        """An event that fires when more than `count` are ready at every rank."""
        event = self._env.event()
        if self._least > count:
            event.succeed()
        else:
            self._waiting.append((count, event))
        return event


class Background(Collective):
    """Verbs of such a rank. The event world gives `world`, `swap`, `exchange` and what it costs."""

    # Gradients of this rank since the start: had, told to rank 0 by name, and summed over all ranks.
    ready = told = reduced = 0
    cycle_from_s = -math.inf

    def beside(self, computing, communicating):
        """Both texts at once, until both are at their end."""
        env = self.world.env
        self.idle_from_s = math.inf

        def compute():
            yield from computing
            self.idle_from_s = env.now

        yield simpy.AllOf(env, [env.process(compute()), env.process(communicating)])

    def compute_by_layer(self, order: str):
        """The gradient of the minibatch; those of the variables are ready one by one, the last variable's first.

        Args:
            order: after the forward pass, a third of the time, each takes time in proportion to its number of `parameters`,
                or `uniform`; or all are ready at the `end`.
        """
        self.begin_gradient()
        batch, costs = self.scenario.batch, self.world.costs
        yield from self._input(batch)
        start_s, work_s = self.now_s, self._factor() * costs.compute(batch) + self._cold_s(costs.compute)
        shares = layer_shares([variable.size for variable in self.scenario.workload.variables], order)
        yield from self._spend(work_s * (1 - sum(shares)), computing=True)
        self.samples = batch
        for share in reversed(shares):
            yield from self._spend(work_s * share, computing=True)
            self.ready = self.world.readiness.announce(self.rank)
            if self.world.timeline:
                self.world.timeline.ready(self.rank, self.ready, self.now_s)
        self._record("compute", start_s, samples=batch)
        self._warm_s = self.now_s

    def next_cycle(self, cycle_s: float):
        """Asleep until the first cycle that finds a gradient ready everywhere; the empty ones before it are taken to cost nothing."""
        start_s = max(self.now_s, self.cycle_from_s + cycle_s)
        asleep_s = self.now_s
        yield self.world.readiness.more_than(self.reduced)
        if self.now_s > start_s:
            start_s += math.ceil((self.now_s - start_s) / cycle_s) * cycle_s if cycle_s else self.now_s - start_s
        yield self.world.env.timeout(max(0.0, start_s - self.now_s))
        self.cycle_from_s = self.now_s
        if self._timeline:
            self._timeline.cycle(self.now_s)
        self._record("wait", min(self.now_s, max(asleep_s, self.idle_from_s)))

    def negotiate(self, by_name: bool = False):
        """Which variables are ready at all ranks and not yet reduced, in the order in which they became so.

        Args:
            by_name: each rank tells rank 0 in one message for each variable, and is told so; else along binomial trees.
        """
        least = yield from self._agree_by_name() if by_name else self._agree_by_bits()
        yield from self.negotiated()
        variables = len(self.scenario.workload.variables)
        agreed, self.reduced = range(self.reduced, least), least
        if self._timeline:
            self._timeline.agreed(agreed, self.now_s)
        return [variables - 1 - count % variables for count in agreed]

    def _agree_by_bits(self):
        least = self.ready
        for exchange in tree(self.rank, range(len(self.hosts)), REQUEST):
            taken = yield from self.swap(exchange, least)
            if taken is not None:
                least = min(least, taken.ready) if exchange.adds else taken.ready
        return least

    def _agree_by_name(self):
        """To rank 0 a message for each variable that has become ready, and back one for all; either way one more ends it."""
        least, others = self.ready, range(1, len(self.hosts))
        if self.rank == 0:
            for other in others:
                taken = yield from self.swap(take(other, REQUEST))
                least = min(least, taken.ready)
            for other in others:
                yield from self.swap(post(other, REQUEST), least, messages=2)
            yield from self.let_leave()
        else:
            yield from self.swap(hand(0, REQUEST), least, messages=least - self.told + 1)
            self.told = least
            least = (yield from self.swap(take(0, REQUEST))).ready
        return least

    def copy(self, piece: slice):
        """Into the fusion buffer, or out of it."""
        start_s, size_bytes = self.now_s, ITEM_BYTES * (piece.stop - piece.start)
        yield from self._work("pack", self.world.costs.pack(size_bytes), bytes=size_bytes)
        if self._timeline:
            self._timeline.copied(piece, start_s, self.now_s)

    def reduce_all(self, algorithm: str, whole: slice):
        """As any rank's; a timeline is told."""
        start_s = self.now_s
        yield from super().reduce_all(algorithm, whole)
        if self._timeline:
            self._timeline.moved(whole, start_s, self.now_s)

    @property
    def _timeline(self):
        """The timeline, at rank 0, of whose thread it is."""
        return self.world.timeline if self.rank == 0 else None


def layer_shares(sizes: list[int], order: str) -> list[float]:
    """Each variable's share of a gradient's time, shape (variables,); what is missing from 1 comes before all of them."""
    if order == "end":
        return [0.0] * len(sizes)
    weights = sizes if order == "parameters" else [1] * len(sizes)
    return [(1 - FORWARD_SHARE) * weight / sum(weights) for weight in weights]
