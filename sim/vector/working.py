"""A group of ranks, and the work that each does by itself: computing, updates and waits. Verbs are made of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sim.model.costs import Line, side_by_side
from sim.vector.draws import Listed, Rounds
from sim.verbs.at_hand import AtHand
from sim.verbs.book import Book

if TYPE_CHECKING:
    from sim.vector.waits import Between, Waits
    from sim.vector.world import VectorWorld

ALL = slice(None)  # ranks of a group
MANY = 256  # waits, after which those are counted that can be


class Working:
    """What sim.vector.group.Group holds, on clocks of shape (replications, ranks); Group makes it, and verbs change it."""

    world: VectorWorld
    ranks: range
    speeds: np.ndarray
    _speed: np.ndarray | None  # None where all are 1, which spares a division
    at_hand: AtHand
    book: Book
    step: int  # the number of the round
    done: int  # verbs
    now_s: np.ndarray
    _out_free_s: np.ndarray  # when ports are free
    _in_free_s: np.ndarray
    _last_reach_s: np.ndarray  # when the last message of the last call, or the last one at the master, reached a port
    _warm_s: np.ndarray  # until when ranks were warm
    samples: np.ndarray
    _computed: np.ndarray  # samples, since the last update, where a step is that of all ranks
    _no_samples: np.ndarray
    _whole_batch: np.ndarray
    _slept: np.ndarray
    _resume_s: np.ndarray | None
    _fetched: bool
    inbox: deque[tuple[np.ndarray, np.ndarray]]  # when messages reach the port, and their samples
    _waits: Waits | Between
    _room: int  # waits, until they are counted
    _to_device_s: float
    _to_host_s: float
    _factors: Rounds | Listed
    _input_factors: Rounds | Listed
    _update_factors: Rounds | Listed
    _computed_s: np.ndarray  # when the last gradient was computed

    def computed_s(self, begun_s: np.ndarray) -> np.ndarray:
        """When gradients that are begun then are there and packed, shape (replications, ranks)."""
        costs, to_device_s = self.world.scenario.costs, self._to_device_s
        core_s = self._of_step(self._factors) * costs.compute(self.world.scenario.batch)
        if costs.compute.cold_s:
            core_s = core_s + costs.compute.cold(begun_s + self._seconds(to_device_s) - self._warm_s)
        beside_s = to_device_s + costs.pack(self.world.scenario.traffic.packed_bytes) + self._to_host_s
        self._computed_s = begun_s + self._seconds(core_s + beside_s)
        return self._computed_s

    def _count_computed(self) -> None:
        """Gradients have been computed, of the samples at hand."""
        if self.world.scenario.by_all_ranks:
            self._computed = self._computed + self.samples

    def end_computing(self) -> None:
        """Ranks are warm from where they had computed and packed last."""
        self._warm_s = self._computed_s

    def _input(self, samples: int) -> None:
        """Fetch a minibatch; the first work after a sleep."""
        costs = self.world.scenario.costs
        if self._resume_s is None:
            input_s = costs.input(samples)
            if input_s:
                self._spend(self._of_step(self._input_factors) * input_s)
            return
        seconds = self._of_step(self._input_factors) * costs.input(samples) + self._slept * self._resume_s
        self._spend(np.maximum(0.0, seconds))
        self._slept = np.zeros(self.now_s.shape, bool)

    def _cold_s(self, line: Line) -> float | np.ndarray:
        """Seconds of work more, after the ranks have been idle."""
        return line.cold(self.now_s - self._warm_s) if line.cold_s else 0.0

    def _of_step(self, drawn: Rounds | Listed) -> float | np.ndarray:
        """What has been drawn for this step, shape (replications, ranks), or a number of all."""
        if self.step >= self.world.scenario.rounds:
            raise self.world.refuse("the text goes beyond its rounds")
        return drawn[self.step]

    def _update_s(self, begun_s: np.ndarray, warm_s: np.ndarray) -> float | np.ndarray:
        """Seconds of an update that begins then, of ranks that were warm until `warm_s`."""
        update, factor = self.world.scenario.costs.update, self._of_step(self._update_factors)
        cold_s = update.cold(begun_s - warm_s) if update.cold_s else 0.0
        parts_s = [factor * part_s for part_s in self._updated_parts_s]
        parts_s[0] = parts_s[0] + cold_s
        if len(parts_s) == 1:
            return parts_s[0]
        return np.where(self._one_core, side_by_side(parts_s, 1), side_by_side(parts_s, len(parts_s)))

    @cached_property
    def _updated_parts_s(self) -> np.ndarray:
        """Seconds of each part of each rank's update, shape (parts, ranks); of workers, whose updates are alike, shape (parts, 1)."""
        several = self.ranks if self is self.world.master else self.ranks[:1]
        each = [self.world.scenario.traffic.updated_bytes(rank) for rank in several]
        found = np.zeros((max(map(len, each)), len(each)))  # of parts that a rank does not have too
        for number, parts in enumerate(each):
            found[: len(parts), number] = self.world.scenario.costs.update(np.array(parts, float))
        return found

    @cached_property
    def _one_core(self) -> np.ndarray:
        """Whether each rank's host has one core, shape (ranks,)."""
        of = self.world.scenario
        return np.array([of.machines[of.hosts[rank]].cores == 1 for rank in self.ranks])

    def _evaluate_s(self) -> float | np.ndarray:
        due = self.world.evaluates(self.step)
        if not np.any(due):
            return 0.0
        return due * np.equal(self.ranks, 0) * self.world.scenario.costs.evaluate(self.world.scenario.test_size)

    def _fold(self) -> None:
        """Count waits that have settled: a ring has many."""
        self._waits.settle(self.world.lows_s, self.world.clock_s)
        self._room = len(self._waits) + MANY

    def _seconds(self, core_s):
        """Seconds that the ranks take for so much work of a core of speed 1."""
        return core_s if self._speed is None else core_s / self._speed

    def _spend(self, core_s) -> None:
        if isinstance(core_s, np.ndarray) or core_s:
            self.now_s = self.now_s + self._seconds(core_s)

    def _wait(self, start_s: np.ndarray, end_s: np.ndarray, ranks: np.ndarray | slice = ALL) -> None:
        self._waits.add(start_s, end_s, ranks)
        if len(self._waits) >= self._room:
            self._fold()

    def _did(self) -> Generator:
        """A verb is over; nothing is yielded, for nothing is waited for."""
        self.done += 1
        return
        yield
