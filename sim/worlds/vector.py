"""The vector world: one generator stands for all workers and all replications; the event world's answers, much faster.

It runs protocols in which no rank looks at the order of arrival, on clusters in which no two ranks share a host. Anything
else it refuses; it never approximates.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import takewhile

import numpy as np

from sim.errors import RunFailed, WrongSetting
from sim.outcome import Outcome
from sim.protocols.base import Protocol
from sim.randomness import Stream
from sim.scenario import Scenario
from sim.worlds.event import CLOCK_S
from sim.worlds.lockstep import Lockstep
from sim.worlds.patience import Patience

MANY = 256  # waits, after which those are counted that can be


def refusal(scenario: Scenario) -> str | None:
    """Why this world cannot run the scenario; None if it can."""
    protocol, network = scenario.protocol, scenario.network
    reasons = {
        f"{protocol.name} looks at the order in which messages arrive": protocol.arrival_order_matters,
        "of sparse variables only the event world knows which rows travel": scenario.gathered_loads
        or (scenario.served and scenario.summed),
        "of collectives this world has the ring alone, and nothing beside it while ranks compute": not scenario.served
        and not _goes_round_a_ring(protocol),
        "ranks on one host share its cores and its port, and so do a runtime's other threads": scenario.cores_shared,
        "ranks nap while they wait, and see what has come at their next look": scenario.cluster.look_s,
        "its ports pass one message after another, each as it comes, whatever a port has sent before": network.fair
        or network.sustained_bytes_per_s
        or network.tcp
        or network.store_and_forward,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _goes_round_a_ring(protocol: Protocol) -> bool:
    return getattr(protocol, "algorithm", None) == "ring" and not protocol.overlaps


def run(scenario: Scenario, replications: int = 1, first: int = 0, within_s: float = math.inf) -> Outcome:
    """So many replications of the scenario, from the `first` on; the same that the event world gives one by one.

    Args:
        within_s: as in the event world, for all of them together.

    Raises:
        WrongSetting: the scenario needs the event world.
        RunFailed: the protocol's texts wait for one another for ever.
    """
    reason = refusal(scenario)
    if reason:
        raise WrongSetting("--world", "vector", f"event: {reason}")
    return VectorWorld(scenario, range(first, first + replications), within_s).run()


class VectorWorld:
    """The master, if there is one, and the group of workers of one scenario."""

    def __init__(self, scenario: Scenario, replications: range, within_s: float = math.inf):
        self.scenario, self.replications = scenario, replications
        self.patience = Patience(scenario, within_s)
        self.updates: list[
            tuple[np.ndarray, np.ndarray]
        ] = []  # end_s and samples of each update, shape (replications,)
        machines = scenario.cluster.machines()
        factors = np.array([scenario.error_factor(replication) for replication in replications])
        speeds = np.array([machines[m].speed for m in scenario.hosts]) / factors[:, None]
        first = scenario.servers
        self.master = Group(self, range(first), speeds[:, :first])
        self.workers = Group(self, range(first, scenario.ranks), speeds[:, first:])
        self.master.workers, self.workers.master = self.workers, self.master

    def run(self) -> Outcome:
        protocol = self.scenario.protocol
        if not self.scenario.served:
            texts = deque([protocol.worker(self.workers)])
        elif self.scenario.workers:
            texts = deque([protocol.master(self.master), protocol.worker(self.workers)])
        else:
            texts = deque([protocol.alone(self.master)])
        idle_turns = 0
        while texts and not self.patience.over:
            # A text yields only where its message is not there yet, or where time is over.
            text = texts.popleft()
            progress = self.progress()
            if next(text, "done") != "done":
                texts.append(text)
                idle_turns = idle_turns + 1 if self.progress() == progress else 0
                if idle_turns > len(texts):
                    raise RunFailed(f"deadlock in {protocol.name}: master and workers wait for one another for ever")
        return self._outcome()

    def progress(self) -> int:
        """A number that grows with every verb that did something."""
        return self.master.done + self.workers.done

    @property
    def clock_s(self) -> np.ndarray:
        """Where rank 0 is, shape (replications,)."""
        return (self.master if self.scenario.served else self.workers).now_s[:, 0]

    def end_s(self, steps: int) -> np.ndarray:
        """When so many steps had ended, shape (replications,)."""
        return self.updates[steps - 1][0] if steps else np.zeros(len(self.replications))

    def _outcome(self) -> Outcome:
        warmup = self.patience.warmup
        end_s = np.stack([self.end_s(steps) for steps in range(len(self.updates) + 1)], axis=1)
        samples = np.stack([samples for _, samples in self.updates], axis=1)
        groups = [self.master, self.workers] if self.scenario.workers else [self.master]
        idle_s = np.concatenate([group.idle_s(warmup) for group in groups], axis=1)
        ran_out = int(self.workers.ran_out + self.master.ran_out)
        window_s = end_s[:, -1:] - end_s[:, warmup : warmup + 1]
        return Outcome(np.diff(end_s, axis=1)[:, warmup:], samples[:, warmup:], idle_s / window_s, ran_out, warmup)


class Group(Lockstep):
    """`me` of the vector world: the verbs of sim.protocols.base on clocks of shape (replications, ranks)."""

    def __init__(self, world: VectorWorld, ranks, speeds: np.ndarray):
        self.world, self.ranks, self.speeds = world, ranks, speeds
        self.step, self.done, self.ran_out = 0, 0, 0
        shape = (len(world.replications), len(ranks))
        self.now_s, self._out_free_s, self._in_free_s = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.samples = np.zeros(shape, int)
        self.inbox: deque[tuple[np.ndarray, np.ndarray]] = deque()  # when messages reach the port, and their samples
        self._waits: list[tuple[np.ndarray, np.ndarray]] = []  # from, to
        # Of waits that are no longer there, by the number of steps that they come after.
        self._idle_s = {steps: np.zeros(shape) for steps in (world.patience.least_warmup, world.scenario.warmup)}
        self._room = MANY  # waits, until they are counted
        self._draw()

    def _draw(self) -> None:
        """Sleeps and noise, shape (rounds, replications, ranks), from the streams that the event world draws."""
        scenario, costs = self.world.scenario, self.world.scenario.costs
        rounds, replications = scenario.rounds, self.world.replications
        every = (rounds, len(replications), len(self.ranks))
        self._sleeps, self._factors, self._input_factors, self._update_factors = (np.empty(every) for _ in range(4))
        for row, replication in enumerate(replications):
            for index, rank in enumerate(self.ranks):
                number = scenario.worker_number(rank)
                luck = (scenario.seed, replication, number)
                run_factor = scenario.run_factor(replication, scenario.hosts[rank])
                self._sleeps[:, row, index] = scenario.sleeps(replication, number).first(rounds)
                self._factors[:, row, index] = run_factor * Stream(costs.noise, *luck, "noise").first(rounds)
                self._input_factors[:, row, index] = Stream(costs.input_noise, *luck, "input").first(rounds)
                self._update_factors[:, row, index] = Stream(costs.update_noise, *luck, "update").first(rounds)

    def steps(self):
        """Every round; sets `step`."""
        for step in range(self.world.scenario.rounds):
            self._fold()
            self.step = step
            yield step

    def sleep(self):
        """The induced straggler; one that sleeps at all oversleeps a little."""
        seconds = self._sleeps[self.step]
        self.now_s = self.now_s + seconds + (seconds > 0) * self.world.scenario.cluster.oversleep_s
        self._spend((seconds > 0) * self.world.scenario.costs.resume_s)
        yield from self._did()

    def compute(self):
        """The gradient of the whole minibatch."""
        batch, costs = self.world.scenario.batch, self.world.scenario.costs
        self._spend(self._input_factors[self.step] * costs.input(batch))
        self._spend(self._factors[self.step] * costs.compute(batch))
        self._spend(costs.pack(self.world.scenario.workload.message_bytes))
        self.samples = np.full(self.now_s.shape, batch)
        yield from self._did()

    def compute_until(self, deadline_s, partitions):
        """Partitions while there is time, at least one; the last overruns."""
        batch, costs = self.world.scenario.batch, self.world.scenario.costs
        self._spend(self._input_factors[self.step] * costs.input(batch))
        factor = self._factors[self.step] / self.speeds
        now_s, micro_batch = self.now_s + factor * costs.loop_s, batch // partitions
        done, partition_s = np.zeros(now_s.shape, int), factor * costs.partition(micro_batch)
        for _ in range(partitions):
            goes_on = (done == 0) | (deadline_s - now_s > CLOCK_S)
            if not goes_on.any():
                break
            now_s, done = np.where(goes_on, now_s + partition_s, now_s), done + goes_on
        self.ran_out += np.count_nonzero((done == partitions) & (deadline_s - now_s > CLOCK_S))
        self.now_s, self.samples = now_s, done * micro_batch
        self._spend(costs.pack(self.world.scenario.workload.message_bytes))
        yield from self._did()

    def send(self, peers):
        """One message to each rank of the group `peers`, through one port; or from each rank, each through its own."""
        link, size_bytes = self.world.scenario.network, self.world.scenario.workload.message_bytes
        occupancy_s = link.occupancy_s(size_bytes)
        if self is self.world.master:
            posted_s = self.now_s + link.overhead_s / self.speeds * np.arange(1, peers.now_s.shape[1] + 1)
            leave_s = _serve(posted_s, self._out_free_s, occupancy_s)
            self._out_free_s = self.now_s = leave_s[:, -1:]
        else:
            leave_s = np.maximum(self.now_s + link.overhead_s / self.speeds, self._out_free_s) + occupancy_s
            self._out_free_s = self.now_s = leave_s
        peers.inbox.append((leave_s - occupancy_s + link.latency_s, self.samples))
        yield from self._did()

    def receive(self, _):
        """Wait for the parameters, and take them up."""
        yield from self._until_message()
        reach_s, _samples = self.inbox.popleft()
        link, size_bytes = self.world.scenario.network, self.world.scenario.workload.message_bytes
        begin_s = np.maximum(reach_s, self._in_free_s)
        self._in_free_s = begin_s + link.occupancy_s(size_bytes)
        self._wait(self.now_s, begin_s)
        self.now_s = np.maximum(self.now_s, self._in_free_s)
        self._spend(link.overhead_s)
        self._spend(self.world.scenario.costs.take_up(size_bytes))
        yield from self._did()

    def gather(self, _):
        """Receive from every worker in order of arrival, and add up.

        Two queues in tandem, the port and then the master's core, each serving all messages in equal time; the clock after
        the j-th is the running maximum of when the queue before let go of the i-th plus (j - i + 1) services.
        """
        yield from self._until_message()
        reach_s, samples = self.inbox.popleft()
        link, size_bytes = self.world.scenario.network, self.world.scenario.workload.message_bytes
        occupancy_s = link.occupancy_s(size_bytes)
        service_s = (link.overhead_s + self.world.scenario.costs.reduce(size_bytes)) / self.speeds
        here_s = _serve(np.sort(reach_s, axis=1), self._in_free_s, occupancy_s)
        added_s = _serve(here_s, self.now_s, service_s)
        self._wait(np.concatenate([self.now_s, added_s[:, :-1]], axis=1), here_s - occupancy_s)
        self._in_free_s, self.now_s = here_s[:, -1:], added_s[:, -1:]
        self.samples = samples.sum(axis=1, keepdims=True)
        yield from self._did()

    def update(self):
        """Make new parameters of the sum; the first rank's update ends the step."""
        size_bytes = self.world.scenario.workload.message_bytes
        self._spend(self._update_factors[self.step] * self.world.scenario.costs.update(size_bytes))
        self.world.updates.append((self.now_s[:, 0], self.samples[:, 0]))
        yield from self._did()
        if self.world.patience.updated():
            yield

    def evaluate(self):
        """Loss and accuracy, where they are due, at rank 0."""
        if self.world.scenario.evaluates(self.step):
            self._spend(np.equal(self.ranks, 0) * self.world.scenario.costs.evaluate(self.world.scenario.test_size))
        yield from self._did()

    def idle_s(self, warmup: int) -> np.ndarray:
        """Seconds waited from the end of so many steps to the end of the last, shape (replications, ranks)."""
        return self._waited_s(self._idle_s[warmup], self._waits, warmup, self.world.end_s(len(self.world.updates)))

    def _waited_s(self, before_s: np.ndarray, waits, steps: int, to_s: np.ndarray) -> np.ndarray:
        """So many seconds, and those of `waits` after so many steps and before `to_s`."""
        waited_s, low_s, high_s = before_s.copy(), self.world.end_s(steps)[:, None], to_s[:, None]
        for start_s, end_s in waits:
            more_s = np.maximum(np.minimum(end_s, high_s) - np.maximum(start_s, low_s), 0)
            waited_s += more_s if more_s.shape == waited_s.shape else more_s.sum(axis=1, keepdims=True)
        return waited_s

    def _fold(self) -> None:
        """Count waits, of which a ring has many, that ended before rank 0's clock: its next update, maybe the last, will not cut them."""
        clock_s, ended = self.world.clock_s, len(self.world.updates)
        settled = list(takewhile(lambda wait: (wait[1] <= clock_s[:, None]).all(), self._waits))
        for steps in self._idle_s:
            if self.world.patience.warmup <= steps <= ended:
                self._idle_s[steps] = self._waited_s(self._idle_s[steps], settled, steps, clock_s)
        self._waits = self._waits[len(settled) :]
        self._room = len(self._waits) + MANY

    def _spend(self, seconds) -> None:
        self.now_s = self.now_s + seconds / self.speeds

    def _wait(self, start_s: np.ndarray, end_s: np.ndarray) -> None:
        self._waits.append((start_s, np.maximum(start_s, end_s)))
        if len(self._waits) >= self._room:
            self._fold()

    def _until_message(self):
        while not self.inbox:
            yield

    def _did(self):
        """A verb is over; nothing is yielded, for nothing is waited for."""
        self.done += 1
        return
        yield


def _serve(come_s: np.ndarray, free_s: np.ndarray, service_s) -> np.ndarray:
    """When a queue lets go of each message; come_s (replications, messages) in order, free_s when the queue is free first."""
    order = np.arange(come_s.shape[1])
    ready_s = np.maximum(come_s, free_s)
    return np.maximum.accumulate(ready_s - service_s * order, axis=1) + service_s * (order + 1)
