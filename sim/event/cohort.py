"""Workers that are alike, as one: their text runs once, and each of its verbs moves an array of clocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sim.event.ranks.message import Message
from sim.event.shortcut import ShortCutFailed
from sim.job.scenario import Scenario
from sim.laws import Law
from sim.model.costs import WARMING, Line
from sim.vector.draws import Listed, Rounds
from sim.verbs.at_hand import AtHand
from sim.verbs.book import CLOCK_S
from sim.verbs.me import GRADIENT

DONE = ()


class Cohort:
    """`me` of all workers, whose clocks and samples are arrays, shape (workers,).

    A verb that it does not have fails as a short cut, and the run is repeated rank by rank.

    Args:
        world: sim.event.world.EventWorld.
        leading: sim.event.machines.leading.Leading, of the master.
    """

    def __init__(self, world, leading):
        scenario, link, replication = world.scenario, world.link, world.replication
        workers, first = scenario.workers, scenario.servers
        self._scenario, self._amounts, self._recorder, self._leading = scenario, world.amounts, world.recorder, leading
        self._speed = world.speeds[first:]
        self._overhead_s, self._latency_s = link.overhead_s / self._speed, link.latency_s
        self._numbers = np.arange(first, scenario.ranks, dtype=float)
        self._in_free_s, self._out_free_s = np.zeros(workers), np.zeros(workers)
        self._draw(replication, world.random.resume_s)
        self._sizes = tuple(load.gradient_bytes for load in scenario.traffic.loads(0))
        self._occupancy_s = link.gap_s + sum(self._sizes) * (1 / link.bandwidth_bytes_per_s)
        self._slept: Any = 0.0  # which workers have slept since they last computed
        self._hand, self._samples = AtHand(), np.zeros(workers, int)
        self._wake: Any = None  # goes on with the next message
        self.thread: Any = None
        self.clock_s = self._warm_s = np.zeros(workers)  # and when each last ended a gradient
        self.master = self.step = self.version = 0

    def _draw(self, replication: int, resume_s: float) -> None:
        """Draws for each step and worker, from the streams from which single ranks draw."""
        scenario, costs, law = self._scenario, self._scenario.costs, self._scenario.stragglers
        numbers, rounds = range(1, scenario.workers + 1), scenario.rounds
        run = _run_factors(scenario, replication)

        def drawn(law: Law, purpose: str, of: int = replication, factor: Any = 1.0) -> Rounds:
            return Rounds(law, scenario.seed, [of], numbers, purpose, rounds, factor)

        self._sleeps: Any
        self._factors: Any
        if isinstance(law, Law):
            self._sleeps = drawn(law, "sleep", replication if scenario.sleeps_of is None else scenario.sleeps_of)
        else:
            self._sleeps = Listed([[scenario.draws.sleeps(replication, number) for number in numbers]], rounds)
        if law.slows_computing:
            self._factors = Listed([[scenario.draws.noise(replication, number) for number in numbers]], rounds, run)
        else:
            self._factors = drawn(costs.noise, "noise", factor=run)
        self._input_noise, self._resume_s = drawn(costs.input_noise, "input"), resume_s

    def __getattr__(self, name: str):
        """Refuse a verb that each rank has to do alone."""
        raise ShortCutFailed

    def fall_apart(self) -> None:
        """Drop all references to others, so that memory is free at once."""
        self.thread = self._leading = self._wake = None

    # ---- messages

    def comes(self, reach_s: np.ndarray, message: Message) -> None:
        """A message is on its way to each worker.

        Args:
            reach_s: when it reaches its port, shape (workers,).
        """
        if self._wake is None:
            raise ShortCutFailed
        wake, self._wake = self._wake, None
        wake((reach_s, message))

    def receive(self, frm, until_s: float = math.inf, variable=None):
        """The master's next message."""
        if frm != self.master or until_s < math.inf:
            raise ShortCutFailed
        self._wake = self.thread.go
        reach_s, message = yield
        start_s, begin_s = self.clock_s, np.maximum(reach_s, self._in_free_s)
        self._in_free_s = end_s = begin_s + message.occupancy_s
        waits = np.column_stack((self._numbers, start_s, begin_s))
        self._recorder.waited(waits if (begin_s > start_s).all() else waits[begin_s > start_s])
        self.clock_s = np.maximum(start_s, end_s) + len(message.sizes_bytes) * self._overhead_s
        return message

    def send(self, what, to, wait: bool = True):
        """The gradients of all workers."""
        if what is not GRADIENT or to != self.master or not wait:
            raise ShortCutFailed
        self._hand.handed_on()
        begin_s = np.maximum(self.clock_s + len(self._sizes) * self._overhead_s, self._out_free_s)
        self.clock_s = self._out_free_s = begin_s + self._occupancy_s
        self._leading.come(begin_s + self._latency_s, self._sizes, self._occupancy_s, int(self._samples.sum()))
        return DONE

    # ---- work

    @property
    def now_s(self) -> np.ndarray:
        """Simulated seconds since the start."""
        return self.clock_s

    def steps(self):
        """Yield the number of each step, and set `step`."""
        for step in range(self._scenario.rounds):
            self.step = step
            yield step

    def take_up(self, letter):
        """New parameters replace those at hand."""
        self.version = letter.version
        self._work(self._amounts.take_up_s[letter.size_bytes])
        return DONE

    def sleep(self):
        """The induced stragglers."""
        seconds = _row(self._sleeps[self.step])
        self._slept = np.greater(seconds, 0)
        if self._slept.any():
            self.clock_s = self.clock_s + np.where(self._slept, seconds + self._scenario.cluster.oversleep_s, 0.0)
        return DONE

    def compute(self, part=None):
        """The gradients of whole minibatches."""
        if part is not None:
            raise ShortCutFailed
        self._hand.begin_gradient()
        amounts = self._amounts
        self._work(self._input_s())
        self._work(amounts.to_device_s)
        self._work(amounts.compute_s * _row(self._factors[self.step]) + self._cold_s(amounts.costs.compute), "compute")
        self._work(amounts.pack_s, "pack")
        self._work(amounts.to_host_s)
        self._samples.fill(amounts.batch)
        return DONE

    def compute_until(self, deadline_s: np.ndarray, partitions: int):
        """Compute partitions while there is time, at least one. The last one overruns."""
        self._hand.begin_gradient()
        amounts, factor = self._amounts, _row(self._factors[self.step])
        micro_batch = amounts.batch // partitions
        partition_s = factor * amounts.costs.partition(micro_batch) / self._speed
        self._work(self._input_s())
        self._work(amounts.to_device_s)
        self._work(factor * amounts.costs.loop_s + self._cold_s(amounts.costs.partition))
        clock_s, done, going = self.clock_s, np.zeros(len(partition_s), int), np.ones(len(partition_s), bool)
        while going.any():
            clock_s = np.where(going, clock_s + partition_s, clock_s)
            done += going
            going = (done < partitions) & (deadline_s - clock_s > CLOCK_S)
        self._recorder.ran_out += int(((done == partitions) & (deadline_s - clock_s > CLOCK_S)).sum())
        self._samples = done * micro_batch
        self.clock_s = self._warm_s = clock_s
        self._work(amounts.pack_s, "pack")
        self._work(amounts.to_host_s)
        return DONE

    def _work(self, seconds, activity: str = "") -> None:
        """Some seconds of each worker's core, shape (workers,); one number if all are alike."""
        self.clock_s = self.clock_s + seconds / self._speed
        if activity in WARMING:
            self._warm_s = self.clock_s

    def _cold_s(self, line: Line):
        """Additional seconds, where caches have gone cold."""
        return line.cold(self.clock_s - self._warm_s) if line.cold_s else 0.0

    def _input_s(self):
        """Seconds of fetching minibatches; one number if all are alike."""
        slept, self._slept = self._slept, 0.0
        return np.maximum(0.0, _row(self._input_noise[self.step]) * self._amounts.input_s + self._resume_s * slept)


def _run_factors(scenario: Scenario, replication: int) -> float | np.ndarray:
    """The factors of one run on the workers' hosts, shape (1, workers); one number if all are alike."""
    if scenario.costs.run.sole is not None:
        return scenario.costs.run.sole
    hosts = scenario.hosts[scenario.servers :]
    return np.array([[scenario.draws.run_factor(replication, host) for host in hosts]])


def _row(values):
    """The values of the one replication."""
    return values[0] if np.ndim(values) else values
