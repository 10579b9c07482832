"""The gradients of one rank: its sleeps, its minibatches, and computing."""

from __future__ import annotations

from sim.event.ranks.layers import Layers
from sim.verbs.at_hand import GRADIENT
from sim.verbs.book import CLOCK_S
from sim.verbs.me import Partition

DONE = ()  # the result of a verb that waits for nothing: `yield from` it goes on at once


class Computing:
    """Verbs of `me` that make gradients.

    Args:
        rank: sim.event.ranks.rank.Rank.
    """

    __slots__ = (
        "_amounts",
        "_factors",
        "_fetched",
        "_input_noise",
        "_resume_s",
        "_sleeps",
        "_slept_s",
        "_warm_s",
        "layers",
        "rank",
    )

    def __init__(self, rank, random, number: int, run_factor: float):
        costs = rank.costs
        self.rank, self._amounts = rank, rank.amounts
        self._sleeps = random.sleeps(number)
        self._factors, self._resume_s = random.factors(number, run_factor), random.resume_s
        self._input_noise = random.of(costs.input_noise, number, "input")
        self._fetched, self._slept_s = False, 0.0
        self._warm_s = 0.0  # when its last gradient or update ended
        self.layers = Layers(rank, self) if rank.layerwise else None

    # ---- time and data

    def sleep(self):
        """Sleep as an induced straggler; a rank that sleeps at all oversleeps a little."""
        seconds = 0.0 if self._sleeps.sole == 0 else self._sleeps.next(self.rank.step)
        if seconds <= 0:
            return DONE
        return self._sleep(seconds + self.rank.scenario.cluster.oversleep_s)

    def _sleep(self, seconds: float):
        rank = self.rank
        start_s = rank.clock_s
        yield from rank.mechanics.rest(seconds)
        self._slept_s = rank.clock_s - start_s
        rank.computed_s += self._slept_s
        rank.record("sleep", start_s)

    def fetch(self):
        """Fetch a minibatch before the parameters for it have come."""
        rank = self.rank
        self._fetched = True
        if rank.layerwise:
            rank.version = rank.step
        rank.mechanics.begin_step(self._slept_s)
        return rank.works((self.input(),))

    def fetched(self) -> bool:
        """Use the minibatch that was fetched ahead; whether there was one."""
        found, self._fetched = self._fetched, False
        return found

    def input(self):
        """The activity of fetching a minibatch, which may be the first work after a sleep."""
        amounts, slept_s, self._slept_s = self._amounts, self._slept_s, 0.0
        seconds = self._input_noise[self.rank.step] * amounts.input_s + (self._resume_s if slept_s else 0.0)
        return ("input", max(0.0, seconds), amounts.batch, 0)

    # ---- gradients

    def compute(self, part=None):
        """The gradient of the whole minibatch, or a part of it."""
        rank, amounts = self.rank, self._amounts
        if part is not None:
            return self._partition(part) if type(part) is Partition else self._layer(part)
        hand = rank.at_hand
        if hand.what:
            hand.begin_gradient()
        hand.what = GRADIENT
        rank.oldest, rank.samples, rank.minibatches = rank.version, amounts.batch, 1
        if rank.all_ranks is not None:
            rank.all_ranks.computed(rank, amounts.batch)
        gradient = ("compute", self._gradient_s(amounts.compute_s, amounts.costs.compute), amounts.batch, 0)
        if self.fetched():
            return rank.works((*amounts.staged, gradient, *amounts.packed))
        rank.mechanics.begin_step(self._slept_s)
        return rank.works((self.input(), *amounts.staged, gradient, *amounts.packed))

    def _partition(self, part: Partition):
        """Compute one partition, added to those before."""
        rank, costs, works = self.rank, self._amounts.costs, []
        micro_batch = self._amounts.batch // part.of
        rank.at_hand.begin_partition(part)
        if part.index == 0:
            rank.samples, rank.minibatches, rank.oldest = 0, 1, rank.version
            works += [] if self.fetched() else [self.input()]
        seconds = self._gradient_s(costs.compute(micro_batch), costs.compute)
        works += [*self._amounts.staged_part(micro_batch), ("compute", seconds, micro_batch, 0), *self._amounts.packed]
        rank.samples += micro_batch
        if rank.all_ranks is not None:
            rank.all_ranks.computed(rank, micro_batch)
        return rank.works(works)

    def compute_until(self, deadline_s: float, partitions: int):
        """Compute partitions while there is time, at least one. The last one overruns."""
        rank, costs, spend = self.rank, self._amounts.costs, self.rank.mechanics.spend
        rank.at_hand.begin_gradient()
        yield from rank.works((*(() if self.fetched() else (self.input(),)), *self._amounts.staged))
        start_s, factor, micro_batch = rank.clock_s, self.factor(), self._amounts.batch // partitions
        yield from spend(factor * costs.loop_s + self.cold_s(costs.partition), computing=True)
        done = yield from rank.mechanics.spend_until(factor * costs.partition(micro_batch), partitions, deadline_s)
        if done == partitions and deadline_s - rank.clock_s > CLOCK_S:
            rank.run_out()
        rank.samples, rank.minibatches = done * micro_batch, 1
        if rank.all_ranks is not None:
            rank.all_ranks.computed(rank, rank.samples)
        rank.record("compute", start_s, samples=rank.samples)
        self.warm()
        yield from rank.works(self._amounts.packed)

    def _layer(self, part):
        if self.layers is None:
            self.layers = Layers(self.rank, self)
        return self.layers.compute(part)

    # ---- how long it takes

    def _gradient_s(self, seconds: float, line):
        """Seconds of computing. Where caches go cold, they are known only when it begins."""
        seconds *= self.factor()
        return (lambda: seconds + self.cold_s(line)) if self._amounts.rests else seconds

    def factor(self) -> float:
        """The factor on this step's computing."""
        return self._factors[self.rank.step]

    def cold_s(self, line) -> float:
        """Additional seconds, where caches have gone cold."""
        return float(line.cold(self.rank.clock_s - self._warm_s)) if line.cold_s else 0.0

    def warm(self) -> None:
        """Take note that a gradient was just computed or packed, or an update made."""
        self._warm_s = self.rank.clock_s
