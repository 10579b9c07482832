"""The ranks of a vector world: all workers, or the master, as arrays of clocks."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from copy import copy
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Self

import numpy as np

from sim.laws import Law
from sim.model.copies import copies_s
from sim.vector.cycles.overlap import Overlap
from sim.vector.draws import Listed, Rounds
from sim.vector.hub import Hub
from sim.vector.servers.served import Barrier
from sim.vector.waits import Waits
from sim.vector.working import MANY
from sim.verbs.at_hand import AtHand
from sim.verbs.book import CLOCK_S, Book

if TYPE_CHECKING:
    from sim.vector.world import VectorWorld

SHORTEST_S = 1e-100  # in place of a partition that takes no time
CLOCKS = 4  # moments that every group carries from a step to the next


class Group(Hub, Overlap, Barrier):
    """The primitives of sim.verbs.me, of all workers or of the master, on clocks of shape (replications, ranks)."""

    def __init__(self, world: VectorWorld, ranks: range, speeds: np.ndarray):
        self.world, self.ranks, self.speeds, self.at_hand = world, ranks, speeds, AtHand()
        self._speed = None if (speeds == 1).all() else speeds  # None spares a division
        self.step, self.done = 0, 0
        self.ran_out = np.zeros(len(world.replications), int)
        self._fetched, self.book = False, Book()
        shape = (len(world.replications), len(ranks))
        self.now_s, self._out_free_s, self._in_free_s, self._warm_s = (np.zeros(shape) for _ in range(4))
        self._no_samples, self._whole_batch = (
            np.broadcast_to(each, shape) for each in (0.0, float(world.scenario.batch))
        )
        self.samples = self._computed = self._no_samples
        self._slept = np.zeros(shape, bool)
        # The algorithm of the last collective call, and when its last message reached a port.
        self._last_reach_s, self._calls = np.full((shape[0], 1), -math.inf), ""
        self.inbox = deque()
        self.arrived = deque()
        self._waits = Waits(shape, {world.patience.least_warmup, world.scenario.warmup})
        self._room = MANY  # waits, until they are counted
        if ranks:
            self.draw()

    def draw(self) -> None:
        """Sleeps and noise of each round, of the streams that the event world draws."""
        scenario, replications = self.world.scenario, self.world.replications
        costs, first = scenario.costs, scenario.worker_number(self.ranks[0])
        self._to_device_s, self._to_host_s = copies_s(scenario)
        self._cools = any(line.cold_s for line in (costs.compute, costs.partition, costs.update))
        numbers = range(first, first + len(self.ranks))

        def rounds(law, purpose, of=replications, factor=1.0):
            return Rounds(law, scenario.seed, of, numbers, purpose, scenario.rounds, factor)

        self._resume_s = np.full((len(replications), 1), costs.resume_s) if costs.resume_s else None
        self._sleeps = [self._slept_s(numbers)]
        self._slept_in = -1, 0  # the step of the last sleep, and which of its sleeps that was
        self._factors = self._noise(numbers)
        self._input_factors = rounds(costs.input_noise, "input")
        self._update_factors = rounds(costs.update_noise, "update")

    def _slept_s(self, numbers: range, call: int = 0) -> Rounds | Listed:
        """Seconds that workers, by their numbers, sleep in each round, at one of its calls."""
        scenario, of = self.world.scenario, self.world.replications
        if isinstance(scenario.stragglers, Law):
            random = [one if scenario.sleeps_of is None else scenario.sleeps_of for one in of]
            return Rounds(scenario.stragglers, scenario.seed, random, numbers, "sleep", scenario.rounds, call=call)
        return Listed([[scenario.draws.sleeps(one, number, call) for number in numbers] for one in of], scenario.rounds)

    def _noise(self, numbers: range) -> Rounds | Listed:
        """Factors on the computing of workers, by their numbers, in each round."""
        scenario, of, factors = self.world.scenario, self.world.replications, self._run_factors()
        if not scenario.stragglers.slows_computing:
            return Rounds(scenario.costs.noise, scenario.seed, of, numbers, "noise", scenario.rounds, factors)
        return Listed(
            [[scenario.draws.noise(one, number) for number in numbers] for one in of], scenario.rounds, factors
        )

    def _run_factors(self) -> float | np.ndarray:
        """The factors of runs on their hosts, shape (replications, ranks); one number if all are alike."""
        scenario = self.world.scenario
        if scenario.costs.run.sole is not None:
            return scenario.costs.run.sole
        hosts = [scenario.hosts[rank] for rank in self.ranks]
        return np.array([[scenario.draws.run_factor(one, host) for host in hosts] for one in self.world.replications])

    def steps(self):
        """Every round; sets `step`."""
        for step in self.world.rounds:
            self._fold()
            self._waits.begin(self.world.lows_s, self.now_s)
            self.step = step
            yield step

    def sleep(self):
        """The induced straggler; one that sleeps at all oversleeps a little."""
        seconds, scenario = self._of_step(self._next_sleep()), self.world.scenario
        if isinstance(seconds, np.ndarray) or seconds:
            self.now_s = self.now_s + seconds
            if scenario.cluster.oversleep_s:
                self.now_s += np.greater(seconds, 0) * scenario.cluster.oversleep_s
            if self._resume_s is not None:
                self._slept = self._slept | np.greater(seconds, 0)
        yield from self._did()

    def _next_sleep(self) -> Rounds | Listed:
        """What was drawn for this sleep: the first of a step, or a further one."""
        if isinstance(self.step, np.ndarray):  # our own texts, which sleep once
            return self._sleeps[0]
        step, call = self._slept_in
        call = call + 1 if step == self.step else 0
        if call == len(self._sleeps):
            first = self.world.scenario.worker_number(self.ranks[0])
            self._sleeps.append(self._slept_s(range(first, first + len(self.ranks)), call))
        self._slept_in = self.step, call
        return self._sleeps[call]

    def compute(self, part=None):
        """The gradient of the whole minibatch."""
        if part is not None:
            raise self.world.refuse("the text computes a gradient in parts")
        batch = self.world.scenario.batch
        self.at_hand.begin_gradient()
        if not self._fetched:
            self._input(batch)
        self._fetched = False
        self.samples = self._whole_batch
        self._count_computed()
        if self.pulled:
            self.compute_later()
        else:
            self.now_s = self.computed_s(self.now_s)
            self.end_computing()
        yield from self._did()

    def compute_until(self, deadline_s, partitions):
        """Partitions while there is time, at least one; the last overruns."""
        batch, costs = self.world.scenario.batch, self.world.scenario.costs
        self.at_hand.begin_gradient()
        if not self._fetched:
            self._input(batch)
        self._fetched = False
        if self._to_device_s:
            self._spend(self._to_device_s)
        factor, micro_batch = self._of_step(self._factors), batch // partitions
        self._spend(factor * costs.loop_s + self._cold_s(costs.partition))
        partition_s = self._seconds(factor * costs.partition(micro_batch))
        left_s = deadline_s - self.now_s - CLOCK_S
        done = _partitions(left_s, partition_s, partitions)
        self.ran_out = self.ran_out + np.count_nonzero(left_s > partitions * partition_s, axis=1)
        self.samples = done * micro_batch
        self._count_computed()
        done *= partition_s
        done += self.now_s
        self.now_s = done
        self._packed()
        yield from self._did()

    def _packed(self) -> None:
        """The gradient is packed; until then the ranks are warm."""
        self._spend(self.world.scenario.costs.pack(self.world.scenario.traffic.packed_bytes) + self._to_host_s)
        self._warm_s = self.now_s

    def update(self, variables=None):
        """Make new parameters of the sum; the first rank's update ends the step."""
        if variables is not None:
            raise self.world.refuse("the text updates some variables alone")
        if self.world.scenario.served and self is self.world.workers:
            raise self.world.refuse("workers update parameters beside their servers")
        if self.world.scenario.protocol.counts_updates:
            self.step = len(self.world.updates)
        self.at_hand.begin_update(self.samples, self.step, len(self.world.updates))
        self.now_s = self._warm_s = self.now_s + self._seconds(self._update_s(self.now_s, self._warm_s))
        self._waits.updated(self.world.lows_s)
        if self.world.scenario.by_all_ranks:
            self.world.own_ends_s.append(self.now_s.copy())
            self.world.ended(self.now_s.max(axis=1), np.minimum(self.samples.sum(axis=1), self._computed.sum(axis=1)))
            self._computed = self._no_samples
        else:
            self.world.ended(self.now_s[:, 0].copy(), self.samples[:, 0].copy())
        self.samples = self._no_samples
        yield from self._did()
        if self.world.patience.updated():
            yield

    @cached_property
    def has_hosts(self) -> bool:
        """Whether each rank has a host, and so ports, of its own."""
        hosts = [self.world.scenario.hosts[rank] for rank in self.ranks]
        return len(set(hosts)) == len(hosts)

    def evaluate(self):
        """Loss and accuracy, where they are due, at rank 0."""
        self._spend(self._evaluate_s())
        yield from self._did()

    def idle_s(self, warmup: int, low_s: np.ndarray, high_s: np.ndarray) -> np.ndarray:
        """As the world's, of these ranks."""
        return self._waits.idle_s(warmup, low_s, high_s) + self.late.idle_s(warmup, low_s, high_s)

    def carried(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """All that is carried from one step to the next: moments, and other numbers; each of shape (replications, some).

        A port that is free before anything can come makes no difference, whenever that was.
        """
        begins_s = self.now_s if self.world.neighbours is None and self.has_hosts else self.world.first_s
        out_free_s = np.maximum(self._out_free_s, begins_s)
        in_free_s = np.maximum(self._in_free_s, self.world.first_s)
        moments, numbers = [self.now_s, out_free_s, in_free_s, self._last_reach_s], []
        if self._cools:
            moments.append(self._warm_s)
        if self._resume_s is not None:
            numbers.append(self._slept)
        if self.background is not None:
            further, more = self.background.carried()
            moments, numbers = [*moments, *further], [*numbers, *more]
        return moments, numbers

    def resumed(self, world: VectorWorld, rows: np.ndarray, draws: Callable, carried, waits, late) -> Self:
        """These ranks in another world, beginning where a step here ends.

        Args:
            rows: which replication here each replication there is.
            draws: finds what was drawn for each of them, in place of Rounds or Listed.
            carried: as `carried` has it.
            waits, late: count waits, and those of background threads.
        """
        found, moments, numbers = copy(self), iter(carried[0]), iter(carried[1])
        found.world, found.at_hand, found.book = world, AtHand(), Book()
        found.inbox, found.arrived = deque(), deque()
        found.step, found.done, found.ran_out = 0, 0, np.zeros(len(rows), int)
        found.speeds = self.speeds[rows]
        found._speed = None if self._speed is None else found.speeds
        found.now_s, found._out_free_s, found._in_free_s, found._last_reach_s = islice(moments, CLOCKS)
        if self._cools:
            found._warm_s = next(moments)
        if self._resume_s is not None:
            found._slept, found._resume_s = next(numbers).astype(bool), self._resume_s[rows]
        found._no_samples, found._whole_batch = (
            np.broadcast_to(each[:1, :1], found.now_s.shape) for each in (self._no_samples, self._whole_batch)
        )
        found.samples, found._waits, found.late = found._no_samples, waits, late
        found._sleeps, found._slept_in = [draws(one) for one in self._sleeps], (-1, 0)
        found._factors = draws(self._factors)
        found._input_factors, found._update_factors = draws(self._input_factors), draws(self._update_factors)
        if self.background is not None:
            found.background = self.background.resumed(found, rows, list(moments), list(numbers))
        return found


def _partitions(left_s: np.ndarray, partition_s: float | np.ndarray, most: int) -> np.ndarray:
    """How many partitions a rank computes: one at least, and as long as there is time left; the last overruns."""
    done = left_s / np.maximum(partition_s, SHORTEST_S)
    np.ceil(done, out=done)
    return np.minimum(np.maximum(done, 1, out=done), most, out=done)
