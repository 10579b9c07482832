"""One rank's work on gradients and parameters that arrive: it adds, takes up, updates and evaluates."""

from __future__ import annotations

from typing import Any

from sim.base.errors import WrongText
from sim.model.sparse_rows import Load
from sim.recording.traces import NOBODY
from sim.verbs.at_hand import SUM

NOTHING_TO_UPDATE = "me.update is for ranks that hold parameters: the master, servers, or workers that sum them"
NO_PARAMETERS_COME = (
    "me.take_up takes up parameters: a master has gather(me, ...), or take(me, ...) and me.add, for gradients"
)
DONE = ()


class Summing:
    """Verbs of `me` that make sums and parameters.

    Args:
        rank: sim.event.ranks.rank.Rank.
    """

    __slots__ = (
        "_amounts",
        "_loads",
        "_reduce_s",
        "_scenario",
        "_take_up_s",
        "_update_noise",
        "_updated",
        "rank",
    )

    def __init__(self, rank, random, number: int, loads):
        self.rank, self._amounts, self._scenario, self._loads = rank, rank.amounts, rank.scenario, loads
        self._reduce_s, self._take_up_s = rank.amounts.reduce_s, rank.amounts.take_up_s
        self._update_noise = random.of(rank.costs.update_noise, number, "update")
        self._updated: Any = None  # sizes of what it updates, bytes, once known

    def add(self, letter):
        """Add the gradient of a letter to what is at hand."""
        rank = self.rank
        hand = rank.at_hand
        if letter is None or letter.note or letter is hand.added:
            hand.begin_add(letter)
        if not (rank.serves or hand.what):  # what was handed on is not added to
            rank.samples = rank.minibatches = 0
        hand.what, hand.added = SUM, letter
        if rank.layerwise and letter.variable != rank.held[0]:
            letter.samples = 0  # one variable of each server counts the samples
        rank.samples += letter.samples
        rank.minibatches += letter.minibatches
        if rank.counts_updates and rank.rank == 0:
            rank.world.meter.missed.append(rank.version - letter.version)
        about = (letter.samples, letter.size_bytes, letter.sender, letter.version)
        if len(letter.sizes_bytes) == 1 and not self._scenario.traffic.sends_rows:
            return rank.mechanics.work_on([self._reduce_s[letter.size_bytes]], "reduce", *about)
        loads = [rank.amounts.variable_loads[letter.variable]] if rank.layerwise else self._loads(letter.sender)
        parts_s = map(self._sum_s, letter.sizes_bytes, loads)
        return rank.mechanics.work_on(list(parts_s), "reduce", *about)

    def _sum_s(self, size_bytes: int, load: Load) -> float:
        costs = self._amounts.costs
        return (costs.reduce_rows if load.rows and costs.reduce_rows else costs.reduce)(size_bytes)

    def take_up(self, letter):
        """New parameters replace those at hand."""
        rank = self.rank
        if rank.serves:
            raise WrongText(NO_PARAMETERS_COME)
        if letter.sender == 0:
            rank.version = letter.version
        return rank.work("update", self._take_up_s[letter.size_bytes], 0, letter.size_bytes)

    def update(self, variables=None):
        """Make new parameters of the sum."""
        rank = self.rank
        if variables is not None:
            return self._update_some(variables)
        if self._updated is None:
            self._updated = self._scenario.traffic.updated_bytes(rank.rank)
        if not self._updated:
            raise WrongText(NOTHING_TO_UPDATE)
        rank.at_hand.begin_update(rank.samples, rank.step, None if rank.counts_updates or rank.rank else rank.version)
        if rank.counts_updates:
            rank.step = rank.version
        return self._update()

    def _update(self):
        rank, update = self.rank, self._amounts.costs.update
        rank.version += 1
        samples, noise = rank.samples, self._update_noise[rank.step]
        parts_s = [noise * update(size) for size in self._updated]
        if rank.layerwise:
            parts_s = [update.base_s]  # what each variable takes has been charged
        parts_s[0] += rank.computing.cold_s(update)
        yield from rank.mechanics.work_on(parts_s, "update", samples, sum(self._updated), NOBODY, rank.version)
        rank.computing.warm()
        rank.samples, rank.minibatches = 0, 0
        if rank.rank == 0 or rank.all_ranks:
            yield from rank.world.updated(rank, samples)

    def _update_some(self, variables):
        """The optimiser makes new parameters of some variables' sums."""
        for number in variables:
            size_bytes = self._amounts.variable_bytes[number]
            yield from self.rank.work("reduce", self._amounts.costs.update.slope_s * size_bytes, 0, size_bytes)

    def evaluate(self):
        """Loss and accuracy, where they are due."""
        rank = self.rank
        if rank.rank or not self._amounts.evaluates or not self._scenario.evaluates(rank.step):
            return DONE
        test_size = self._scenario.test_size
        return rank.work("evaluate", self._amounts.costs.evaluate(test_size), test_size)
