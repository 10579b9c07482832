"""The vector world: one generator stands for all workers and all replications; the event world's answers, much faster.

It runs protocols in which no rank looks at the order of arrival, on clusters in which no two ranks share a host. Anything
else it refuses, before the run or at the verb that it cannot do; it never approximates.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import fields
from itertools import takewhile

import numpy as np

from sim import verbs
from sim.errors import RunFailed, WrongSetting
from sim.outcome import Outcome
from sim.protocols import name_of
from sim.protocols.base import Protocol
from sim.protocols.texts import role_of, text_of
from sim.randomness import Stream
from sim.scenario import Scenario
from sim.time_budget import Patience
from sim.vector.hub import Hub
from sim.vector.overlap import Overlap
from sim.vector.ring import Lockstep
from sim.vector.served import Barrier
from sim.vector.together import Refused, Together
from sim.verbs.at_hand import AtHand
from sim.verbs.book import CLOCK_S
from sim.verbs.me import PRIMITIVES

DOES = frozenset(
    [
        "sleep",
        "compute",
        "compute_until",
        "send",
        "receive",
        "take_up",
        "update",
        "evaluate",
        "gather",
        "allreduce",
        "allgather",
        "beside",
        "compute_by_layer",
        "reduce_in_cycles",
        "fetch",
        "pull",
        "push",
        "training",
        "collect",
        "hand_in",
        "take_first",
        "hear",
        "let_go",
    ]
)  # primitives and verbs
ALL = slice(None)  # ranks of a group
MANY = 256  # waits, after which those are counted that can be


def refusal(scenario: Scenario) -> str | None:
    """Why this world cannot run the scenario, as far as that is known before; None if nothing speaks against it."""
    network, missing = scenario.network, sorted(verbs_of(scenario.protocol) - DOES, key=PRIMITIVES.__contains__)
    reasons = {
        f"the text uses {missing[0] if missing else ''}, in which ranks differ or messages overtake one another": missing,
        "of sparse variables only the event world knows which rows travel": scenario.gathered_variables
        or scenario.sends_rows
        or (scenario.served and scenario.summed),
        "ranks on one host share its cores and its port, and so do a runtime's other threads": scenario.cores_shared,
        "a host's cores are too few for what its rank does at once, or slow one another down": scenario.protocol.overlaps
        and not scenario.cores_suffice,
        "ranks poll while they wait, and see what has come at their next poll": scenario.cluster.look_s,
        "its ports pass one message after another, each as it comes, whatever a port has sent before": network.fair
        or network.sustained_bytes_per_s
        or network.tcp
        or network.store_and_forward,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def verbs_of(protocol: Protocol) -> frozenset[str]:
    """The primitives and verbs that its texts use; a setting is none, whatever its name."""
    return protocol.names & frozenset((*PRIMITIVES, *verbs.__all__)) - {setting.name for setting in fields(protocol)}


def run(scenario: Scenario, replications: int = 1, first: int = 0, within_s: float = math.inf) -> Outcome:
    """So many replications of the scenario, from the `first` on; the same that the event world gives one by one.

    Args:
        within_s: as in the event world, for all of them together.

    Raises:
        Refused: the scenario needs the event world.
        RunFailed: the protocol's texts wait for one another for ever, or do what no world can run.
    """
    reason = refusal(scenario)
    if reason:
        raise Refused(reason)
    return VectorWorld(scenario, range(first, first + replications), within_s).run()


class VectorWorld:
    """The master, if there is one, and the group of workers of one scenario."""

    def __init__(self, scenario: Scenario, replications: range, within_s: float = math.inf):
        self.scenario, self.replications = scenario, replications
        self.patience = Patience(scenario, within_s)
        self.updates: list[
            tuple[np.ndarray, np.ndarray]
        ] = []  # end_s and samples of each update, shape (replications,)
        machines = scenario.machines
        factors = np.array([scenario.error_factor(replication) for replication in replications])
        speeds = np.array([machines[m].speed for m in scenario.hosts]) / factors[:, None]
        first = scenario.servers
        self.master = Group(self, range(first), speeds[:, :first])
        self.workers = Group(self, range(first, scenario.ranks), speeds[:, first:])
        self.refused: Refused | None = None

    def run(self) -> Outcome:
        texts, idle_turns = deque(self._texts()), 0
        while texts and not self.patience.over:
            # A text yields only where its message is not there yet, or where time is over.
            text = texts.popleft()
            progress = self.progress()
            waits = next(text, "done") != "done"
            if self.refused:  # whatever the text has made of it
                raise self.refused
            if waits:
                texts.append(text)
                idle_turns = idle_turns + 1 if self.progress() == progress else 0
                if idle_turns > len(texts):
                    name = name_of(self.scenario.protocol)
                    raise RunFailed(f"deadlock in {name}: master and workers wait for one another for ever")
        if not self.patience.over:
            self.patience.check_complete()
        return self._outcome()

    def _texts(self) -> list:
        """Of each group that has ranks, one for all of them."""
        groups = [group for group in (self.master, self.workers) if group.ranks]
        return [text_of(self.scenario, role_of(self.scenario, group.ranks[0]), Together(group)) for group in groups]

    def refuse(self, reason: str) -> Refused:
        """The exception to raise where a text needs the event world; the run ends with it, even if the text catches it."""
        self.refused = self.refused or Refused(reason)
        return self.refused

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
        if not (window_s > 0).all():
            raise WrongSetting("costs", "steps that take no time", "costs above 0, or a network that is not free")
        return Outcome(np.diff(end_s, axis=1)[:, warmup:], samples[:, warmup:], idle_s / window_s, ran_out, warmup)


class Group(Hub, Lockstep, Overlap, Barrier):
    """The primitives of sim.verbs.me, of all workers or of the master, on clocks of shape (replications, ranks)."""

    def __init__(self, world: VectorWorld, ranks, speeds: np.ndarray):
        self.world, self.ranks, self.speeds, self.at_hand = world, ranks, speeds, AtHand()
        self.step, self.done, self.ran_out = 0, 0, 0
        self._fetched = self.over = False
        shape = (len(world.replications), len(ranks))
        self.now_s, self._out_free_s, self._in_free_s, self._warm_s = (np.zeros(shape) for _ in range(4))
        self.samples, self._slept = np.zeros(shape, int), np.zeros(shape, bool)
        self._last_reach_s, self._calls = (
            np.full((shape[0], 1), -math.inf),
            "",
        )  # the algorithm of the last collective call
        self.inbox: deque[tuple[np.ndarray, np.ndarray]] = deque()  # when messages reach the port, and their samples
        self._waits: list[tuple[np.ndarray | slice, np.ndarray, np.ndarray]] = []  # ranks, from, to
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
        seconds = self._of_step(self._sleeps)
        self.now_s = self.now_s + seconds + (seconds > 0) * self.world.scenario.cluster.oversleep_s
        self._slept = self._slept | (seconds > 0)
        yield from self._did()

    def compute(self, part=None):
        """The gradient of the whole minibatch."""
        if part is not None:
            raise self.world.refuse("the text computes a gradient in parts")
        batch = self.world.scenario.batch
        self.at_hand.begin_gradient()
        if not self._fetched:
            self._input(batch)
        self._fetched = False
        self.samples = np.full(self.now_s.shape, batch)
        if self.pulled:
            self.compute_later()
        else:
            self.now_s = self.computed_s(self.now_s)
            self.end_computing()
        yield from self._did()

    def computed_s(self, begun_s: np.ndarray) -> np.ndarray:
        """When gradients that are begun then are there, shape (replications, ranks)."""
        costs = self.world.scenario.costs
        cold_s = costs.compute.cold(begun_s - self._warm_s)
        self._computed_s = (
            begun_s + (self._of_step(self._factors) * costs.compute(self.world.scenario.batch) + cold_s) / self.speeds
        )
        return self._computed_s + costs.pack(self.world.scenario.packed_bytes) / self.speeds

    def end_computing(self) -> None:
        """Ranks are warm from where they had computed last."""
        self._warm_s = self._computed_s

    def compute_until(self, deadline_s, partitions):
        """Partitions while there is time, at least one; the last overruns."""
        batch, costs = self.world.scenario.batch, self.world.scenario.costs
        self.at_hand.begin_gradient()
        self._input(batch)
        factor = self._of_step(self._factors) / self.speeds
        cold_s = costs.partition.cold(self.now_s - self._warm_s)
        now_s, micro_batch = self.now_s + factor * costs.loop_s + cold_s / self.speeds, batch // partitions
        done, partition_s = np.zeros(now_s.shape, int), factor * costs.partition(micro_batch)
        for _ in range(partitions):
            goes_on = (done == 0) | (deadline_s - now_s > CLOCK_S)
            if not goes_on.any():
                break
            now_s, done = np.where(goes_on, now_s + partition_s, now_s), done + goes_on
        self.ran_out += np.count_nonzero((done == partitions) & (deadline_s - now_s > CLOCK_S))
        self.now_s = self._warm_s = now_s
        self.samples = done * micro_batch
        self._spend(costs.pack(self.world.scenario.packed_bytes))
        yield from self._did()

    def _input(self, samples: int) -> None:
        """Fetch a minibatch; the first work after a sleep."""
        costs = self.world.scenario.costs
        self._spend(self._slept * costs.resume_s)
        self._slept = np.zeros(self.now_s.shape, bool)
        self._spend(self._of_step(self._input_factors) * costs.input(samples))

    def _of_step(self, draws: np.ndarray) -> np.ndarray:
        """What has been drawn for this step, shape (replications, ranks)."""
        if self.step >= len(draws):
            raise self.world.refuse("the text goes beyond its rounds")
        return draws[self.step]

    def update(self, variables=None):
        """Make new parameters of the sum; the first rank's update ends the step."""
        if variables is not None:
            raise self.world.refuse("the text updates some variables alone")
        if self.world.scenario.served and self is self.world.workers:
            raise self.world.refuse("the text has workers update")
        if self.world.scenario.protocol.counts_updates:
            self.step = len(self.world.updates)
        self.at_hand.begin_update(self.samples, self.step, len(self.world.updates))
        size_bytes = np.array([sum(self.world.scenario.updated_bytes(rank)) for rank in self.ranks])
        update = self.world.scenario.costs.update
        cold_s = update.cold(self.now_s - self._warm_s)
        self._spend(self._of_step(self._update_factors) * update(size_bytes) + cold_s)
        self._warm_s = self.now_s
        self.world.updates.append((self.now_s[:, 0], self.samples[:, 0]))
        self.samples = np.zeros(self.now_s.shape, int)
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
        until_s = self.world.end_s(len(self.world.updates))
        return self._waited_s(self._idle_s[warmup], self._waits, warmup, until_s) + self._late.idle_s(
            warmup, self.world.end_s(warmup), until_s
        )

    def _waited_s(self, before_s: np.ndarray, waits, steps: int, to_s: np.ndarray) -> np.ndarray:
        """So many seconds, and those of `waits` after so many steps and before `to_s`."""
        waited_s, low_s, high_s = before_s.copy(), self.world.end_s(steps)[:, None], to_s[:, None]
        for ranks, start_s, end_s in waits:
            more_s = np.maximum(np.minimum(end_s, high_s) - np.maximum(start_s, low_s), 0)
            one_by_one = more_s.shape[1] != waited_s[:, ranks].shape[1]  # a master's, of every worker
            waited_s[:, ranks] += more_s.sum(axis=1, keepdims=True) if one_by_one else more_s
        return waited_s

    def _fold(self) -> None:
        """Count waits, of which a ring has many, that ended before rank 0's clock: its next update, maybe the last, will not cut them."""
        clock_s, ended = self.world.clock_s, len(self.world.updates)
        settled = list(takewhile(lambda wait: (wait[-1] <= clock_s[:, None]).all(), self._waits))
        for steps in self._idle_s:
            if self.world.patience.warmup <= steps <= ended:
                self._idle_s[steps] = self._waited_s(self._idle_s[steps], settled, steps, clock_s)
        self._waits = self._waits[len(settled) :]
        self._room = len(self._waits) + MANY

    def _spend(self, seconds) -> None:
        self.now_s = self.now_s + seconds / self.speeds

    def _wait(self, start_s: np.ndarray, end_s: np.ndarray, ranks: np.ndarray | slice = ALL) -> None:
        self._waits.append((ranks, start_s, np.maximum(start_s, end_s)))
        if len(self._waits) >= self._room:
            self._fold()

    def _did(self):
        """A verb is over; nothing is yielded, for nothing is waited for."""
        self.done += 1
        return
        yield
