"""The vector world: one generator stands for all workers and all replications; the event world's answers, much faster.

It runs protocols in which no rank looks at the order of arrival, on clusters in which no two ranks share a core. Anything
else it refuses, before the run or at the verb that it cannot do; it never approximates.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from copy import copy
from dataclasses import fields
from functools import cached_property
from itertools import islice

import numpy as np

from sim import verbs
from sim.answers.outcome import Outcome
from sim.base.errors import RunFailed, WrongSetting
from sim.job.scenario import Scenario
from sim.laws import Law
from sim.model.copies import copies_s
from sim.model.costs import Line
from sim.protocols import is_ours, name_of
from sim.protocols.base import Protocol
from sim.vector.draws import Listed, Rounds
from sim.vector.hub import Hub
from sim.vector.overlap import Overlap
from sim.vector.ring import Lockstep
from sim.vector.served import Barrier
from sim.vector.shared import Neighbours
from sim.vector.shared.backup import Backup
from sim.vector.shared.barrier import Crowd
from sim.vector.together import Refused, Together
from sim.vector.waits import Waits
from sim.verbs.at_hand import AtHand
from sim.verbs.book import CLOCK_S, Book
from sim.verbs.me import PRIMITIVES
from sim.worlds.texts import role_of, text_of
from sim.worlds.time_budget import Patience

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
SHORTEST_S = 1e-100  # in place of a partition that takes no time
CLOCKS = 4  # moments that every group carries from a step to the next
MANY = 256  # waits, after which those are counted that can be


def refusal(scenario: Scenario) -> str | None:
    """Why this world cannot run the scenario, as far as that is known before; None if nothing speaks against it."""
    network, missing = scenario.network, sorted(sorted(verbs_of(scenario.protocol) - DOES), key=PRIMITIVES.__contains__)
    reasons = {
        f"the text uses {missing[0] if missing else ''}, in which ranks differ or messages overtake one another": missing,
        "of sparse variables only the event world knows which rows travel": scenario.gathered_variables
        or scenario.sends_rows
        or (scenario.served and scenario.summed),
        "ranks on one host share its cores and its port, and so do a runtime's other threads": scenario.cores_shared
        and not _share_ports_alone(scenario),
        "a host's cores are too few for what its rank does at once, or slow one another down": scenario.protocol.overlaps
        and not scenario.cores_suffice,
        "ranks poll while they wait, and see what has come at their next poll": scenario.cluster.poll_s,
        "its ports pass one message after another, each as it comes, whatever a port has sent before": network.fair
        or network.sustained_bytes_per_s
        or network.tcp
        or network.store_and_forward,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _share_ports_alone(scenario: Scenario) -> bool:
    """Whether ranks of a host have a core each, copy from one another, and share its port."""
    local = scenario.cluster.local
    return scenario.cores_suffice and not (local.wakes and local.latency_s)


def verbs_of(protocol: Protocol) -> frozenset[str]:
    """The primitives and verbs that its texts use; a setting is none, whatever its name."""
    return protocol.names & frozenset((*PRIMITIVES, *verbs.__all__)) - {setting.name for setting in fields(protocol)}


class VectorWorld:
    """The master, if there is one, and the group of workers of one scenario.

    Args:
        scenario: the job.
        replications: their numbers.
        within_s: see `sim.vector.run`.
        rounds: that the texts go through; all if None.
    """

    def __init__(
        self, scenario: Scenario, replications: range, within_s: float = math.inf, rounds: range | None = None
    ):
        self.scenario, self.replications = scenario, replications
        self.rounds = range(scenario.rounds) if rounds is None else rounds
        self.patience = Patience(scenario, within_s)
        self.updates: list[tuple[np.ndarray, np.ndarray]] = []  # end and samples of each, shape (replications,)
        # When warm-up had ended, by its number of steps; of a shorter one too, as long as the run may end early.
        self.lows_s = {} if scenario.warmup else {0: np.zeros(len(replications))}
        machines = scenario.machines
        factors = np.array([scenario.error_factor(replication) for replication in replications])
        speeds = np.array([machines[m].speed for m in scenario.hosts]) / factors[:, None]
        first = scenario.servers
        self.master = self._group(range(first), speeds[:, :first])
        self.workers = self._group(range(first, scenario.ranks), speeds[:, first:])
        self.refused: Refused | None = None

    def _group(self, ranks: range, speeds: np.ndarray) -> Group:
        return Group(self, ranks, speeds)

    @cached_property
    def neighbours(self) -> Neighbours | None:
        """How a master and workers send to one another where some share hosts; None where none do."""
        hosts = self.scenario.hosts
        shared = self.scenario.served and len(set(hosts)) < len(hosts)
        return Neighbours(self.scenario, self.refuse) if shared else None

    @cached_property
    def crowd(self) -> Crowd | Backup | None:
        """Servers behind a barrier and their workers where some share hosts or are late; None elsewhere."""
        of, hosts = self.scenario, self.scenario.hosts
        if of.protocol.gradients_per_update(of.workers) == of.workers:
            return Crowd(of, len(self.replications)) if len(set(hosts)) < len(hosts) else None
        if of.servers > 1 or not is_ours(of.protocol):
            raise self.refuse("some workers are late, with several servers or by a text that may remember something")
        return Backup(of, len(self.replications))

    def run(self) -> Outcome:
        """Run all replications to their end, or until time is over; what they come to.

        Raises:
            Refused: the text does what this world cannot do exactly.
            RunFailed: the ranks wait for one another for ever.
        """
        self.play()
        if not self.patience.over:
            self.patience.check_complete()
        return self._outcome()

    def play(self) -> None:
        """Run the texts to their end, or until there is no time left."""
        texts, idle_turns = deque(self._texts()), 0
        while texts and (self.served_in_rounds or not self.patience.over):
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

    @property
    def served_in_rounds(self) -> bool:
        """Whether servers see that training is over, and end by themselves; they then know how long workers wait for them."""
        return bool(self.scenario.served and self.scenario.protocol.has_servers)

    @property
    def training_is_over(self) -> bool:
        """Whether there is no further update."""
        return self.patience.over or len(self.updates) >= self.scenario.rounds

    def _texts(self) -> list:
        """Of each group that has ranks, one for all of them."""
        of = self.scenario
        return [text_of(of, role_of(of, group.ranks[0]), Together(group)) for group in self.groups]

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

    @property
    def first_s(self) -> np.ndarray:
        """Where the rank is that is least far, shape (replications, 1)."""
        return np.min([group.now_s.min(axis=1, keepdims=True) for group in self.groups], axis=0)

    def ended(self, end_s: np.ndarray, samples: np.ndarray) -> None:
        """Rank 0 has made an update."""
        self.updates.append((end_s, samples))
        steps, warmup = len(self.updates), self.scenario.warmup
        if steps in (self.patience.least_warmup, warmup):
            self.lows_s[steps] = end_s
        if steps == warmup + 1:  # from now on there is no shorter one
            self.lows_s = {warmup: self.lows_s[warmup]}

    def end_s(self, steps: int) -> np.ndarray:
        """When so many steps had ended, shape (replications,)."""
        return self.updates[steps - 1][0] if steps else np.zeros(len(self.replications))

    def evaluates(self, step: int) -> bool | np.ndarray:
        """Whether the master evaluates at the end of this step; a bool of all replications, or shape (replications, 1)."""
        return self.scenario.evaluates(step)

    @property
    def groups(self) -> list[Group]:
        """Those that have ranks."""
        return [group for group in (self.master, self.workers) if group.ranks]

    @property
    def ran_out(self) -> np.ndarray:
        """How often a rank had no more partitions to compute, and time left, shape (replications,)."""
        return np.sum([group.ran_out for group in self.groups], axis=0)

    def idle_s(self, warmup: int, low_s: np.ndarray, high_s: np.ndarray) -> np.ndarray:
        """Seconds that each rank waited after a warm-up of so many steps, shape (replications, ranks).

        Args:
            low_s, high_s: when the warm-up and the run end, shape (replications,).
        """
        return np.concatenate([group.idle_s(warmup, low_s, high_s) for group in self.groups], axis=1)

    def _outcome(self) -> Outcome:
        warmup, updates = self.patience.warmup, len(self.updates)
        end_s = np.stack([self.end_s(steps) for steps in range(updates + 1)], axis=1)
        samples = np.stack([samples for _, samples in self.updates], axis=1).astype(int)
        return outcome_of(
            end_s, samples, self.idle_s(warmup, end_s[:, warmup], end_s[:, -1]), self.ran_out.sum(), warmup
        )


def outcome_of(end_s: np.ndarray, samples: np.ndarray, idle_s: np.ndarray, ran_out: int, warmup: int) -> Outcome:
    """What a run comes to.

    Args:
        end_s: of each step, after a 0; shape (replications, steps + 1).
        samples: shape (replications, steps).
        idle_s: after the warm-up, shape (replications, ranks).
        ran_out, warmup: see Outcome.

    Raises:
        WrongSetting: no time goes by.
    """
    window_s = end_s[:, -1:] - end_s[:, warmup : warmup + 1]
    if not (window_s > 0).all():
        raise WrongSetting("costs", "steps that take no time", "costs above 0, or a network that is not free")
    return Outcome(np.diff(end_s, axis=1)[:, warmup:], samples[:, warmup:], idle_s / window_s, int(ran_out), warmup)


class Group(Hub, Lockstep, Overlap, Barrier):
    """The primitives of sim.verbs.me, of all workers or of the master, on clocks of shape (replications, ranks)."""

    def __init__(self, world: VectorWorld, ranks: range, speeds: np.ndarray):
        self.world, self.ranks, self.speeds, self.at_hand = world, ranks, speeds, AtHand()
        self._speed = None if (speeds == 1).all() else speeds  # None spares a division
        self.step: int | np.ndarray = 0  # the number of the round; of each worker where some are late
        self.done = 0
        self.ran_out = np.zeros(len(world.replications), int)
        self._fetched, self.book = False, Book()
        shape = (len(world.replications), len(ranks))
        self.now_s, self._out_free_s, self._in_free_s, self._warm_s = (np.zeros(shape) for _ in range(4))
        self._no_samples, self._whole_batch = (
            np.broadcast_to(each, shape) for each in (0.0, float(world.scenario.batch))
        )
        self.samples, self._slept = self._no_samples, np.zeros(shape, bool)
        # The algorithm of the last collective call, and when its last message reached a port.
        self._last_reach_s, self._calls = np.full((shape[0], 1), -math.inf), ""
        self.inbox: deque[tuple[np.ndarray, np.ndarray]] = deque()  # when messages reach the port, and their samples
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

        resumes = costs.resume_s or costs.resume_error_s
        self._resume_s = np.array([[scenario.resume_s(one)] for one in replications]) if resumes else None
        self._sleeps = self._slept_s(numbers)
        self._factors = self._noise(numbers)
        self._input_factors = rounds(costs.input_noise, "input")
        self._update_factors = rounds(costs.update_noise, "update")

    def _slept_s(self, numbers: range) -> Rounds | Listed:
        """Seconds that workers, by their numbers, sleep in each round."""
        scenario, of = self.world.scenario, self.world.replications
        if isinstance(scenario.stragglers, Law):
            random = [one if scenario.sleeps_of is None else scenario.sleeps_of for one in of]
            return Rounds(scenario.stragglers, scenario.seed, random, numbers, "sleep", scenario.rounds)
        return Listed([[scenario.sleeps(one, number) for number in numbers] for one in of], scenario.rounds)

    def _noise(self, numbers: range) -> Rounds | Listed:
        """Factors on the computing of workers, by their numbers, in each round."""
        scenario, of, factors = self.world.scenario, self.world.replications, self._run_factors()
        if not scenario.stragglers.slows_computing:
            return Rounds(scenario.costs.noise, scenario.seed, of, numbers, "noise", scenario.rounds, factors)
        return Listed([[scenario.noise(one, number) for number in numbers] for one in of], scenario.rounds, factors)

    def _run_factors(self) -> float | np.ndarray:
        """The factors of runs on their hosts, shape (replications, ranks); one number if all are alike."""
        scenario = self.world.scenario
        if scenario.costs.run.sole is not None:
            return scenario.costs.run.sole
        hosts = [scenario.hosts[rank] for rank in self.ranks]
        return np.array([[scenario.run_factor(one, host) for host in hosts] for one in self.world.replications])

    def steps(self):
        """Every round; sets `step`."""
        for step in self.world.rounds:
            self._fold()
            self._waits.begin(self.world.lows_s, self.now_s)
            self.step = step
            yield step

    def sleep(self):
        """The induced straggler; one that sleeps at all oversleeps a little."""
        seconds, scenario = self._of_step(self._sleeps), self.world.scenario
        if isinstance(seconds, np.ndarray) or seconds:
            self.now_s = self.now_s + seconds
            if scenario.cluster.oversleep_s:
                self.now_s += np.greater(seconds, 0) * scenario.cluster.oversleep_s
            if self._resume_s is not None:
                self._slept = self._slept | np.greater(seconds, 0)
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
        self.samples = self._whole_batch
        if self.pulled:
            self.compute_later()
        else:
            self.now_s = self.computed_s(self.now_s)
            self.end_computing()
        yield from self._did()

    def computed_s(self, begun_s: np.ndarray) -> np.ndarray:
        """When gradients that are begun then are there and packed, shape (replications, ranks)."""
        costs = self.world.scenario.costs
        core_s = self._of_step(self._factors) * costs.compute(self.world.scenario.batch)
        if costs.compute.cold_s:
            core_s = core_s + costs.compute.cold(begun_s + self._seconds(self._to_device_s) - self._warm_s)
        beside_s = self._to_device_s + costs.pack(self.world.scenario.packed_bytes) + self._to_host_s
        self._computed_s = begun_s + self._seconds(core_s + beside_s)
        return self._computed_s

    def end_computing(self) -> None:
        """Ranks are warm from where they had computed and packed last."""
        self._warm_s = self._computed_s

    def compute_until(self, deadline_s, partitions):
        """Partitions while there is time, at least one; the last overruns."""
        batch, costs = self.world.scenario.batch, self.world.scenario.costs
        self.at_hand.begin_gradient()
        self._input(batch)
        if self._to_device_s:
            self._spend(self._to_device_s)
        factor, micro_batch = self._of_step(self._factors), batch // partitions
        self._spend(factor * costs.loop_s + self._cold_s(costs.partition))
        partition_s = self._seconds(factor * costs.partition(micro_batch))
        left_s = deadline_s - self.now_s - CLOCK_S
        done = _partitions(left_s, partition_s, partitions)
        self.ran_out = self.ran_out + np.count_nonzero(left_s > partitions * partition_s, axis=1)
        self.samples = done * micro_batch
        done *= partition_s
        done += self.now_s
        self.now_s = done
        self._packed()
        yield from self._did()

    def _packed(self) -> None:
        """The gradient is packed; until then the ranks are warm."""
        self._spend(self.world.scenario.costs.pack(self.world.scenario.packed_bytes) + self._to_host_s)
        self._warm_s = self.now_s

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

    def _of_step(self, drawn: Rounds) -> float | np.ndarray:
        """What has been drawn for this step, shape (replications, ranks), or a number of all."""
        if np.max(self.step) >= self.world.scenario.rounds:
            raise self.world.refuse("the text goes beyond its rounds")
        if not isinstance(self.step, np.ndarray):
            return drawn[self.step]
        found = np.zeros(self.step.shape)
        for step in np.unique(self.step).tolist():  # workers may be at several
            np.copyto(found, drawn[step], where=self.step == step)
        return found

    def update(self, variables=None):
        """Make new parameters of the sum; the first rank's update ends the step."""
        if variables is not None:
            raise self.world.refuse("the text updates some variables alone")
        if self.world.scenario.served and self is self.world.workers:
            raise self.world.refuse("the text has workers update")
        if self.world.scenario.protocol.counts_updates:
            self.step = len(self.world.updates)
        self.at_hand.begin_update(self.samples, self.step, len(self.world.updates))
        self.now_s = self._warm_s = self.now_s + self._seconds(self._update_s(self.now_s))
        self._waits.updated(self.world.lows_s)
        self.world.ended(self.now_s[:, 0].copy(), self.samples[:, 0].copy())
        self.samples = self._no_samples
        yield from self._did()
        if self.world.patience.updated():
            yield

    def _update_s(self, begun_s: np.ndarray) -> float | np.ndarray:
        """Seconds of an update that begins then."""
        update = self.world.scenario.costs.update
        cold_s = update.cold(begun_s - self._warm_s) if update.cold_s else 0.0
        return self._of_step(self._update_factors) * update(self._updated_bytes) + cold_s

    def updated_s(self, begun_s: np.ndarray) -> np.ndarray:
        """When updates that are begun then are over, and an evaluation if it is due; shape (replications, ranks)."""
        return begun_s + self._seconds(self._update_s(begun_s)) + self._seconds(self._evaluate_s())

    @cached_property
    def has_hosts(self) -> bool:
        """Whether each rank has a host, and so ports, of its own."""
        hosts = [self.world.scenario.hosts[rank] for rank in self.ranks]
        return len(set(hosts)) == len(hosts)

    @cached_property
    def _updated_bytes(self) -> np.ndarray:
        """Of each rank's update, shape (ranks,); of workers, whose updates are alike, shape (1,)."""
        several = self.ranks if self is self.world.master else self.ranks[:1]
        return np.array([sum(self.world.scenario.updated_bytes(rank)) for rank in several])

    def evaluate(self):
        """Loss and accuracy, where they are due, at rank 0."""
        self._spend(self._evaluate_s())
        yield from self._did()

    def _evaluate_s(self) -> float | np.ndarray:
        due = self.world.evaluates(self.step)
        if not np.any(due):
            return 0.0
        return due * np.equal(self.ranks, 0) * self.world.scenario.costs.evaluate(self.world.scenario.test_size)

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

    def resumed(self, world: VectorWorld, rows: np.ndarray, draws: Callable, carried, waits, late) -> Group:
        """These ranks in another world, beginning where a step here ends.

        Args:
            rows: which replication here each replication there is.
            draws: finds what was drawn for each of them, in place of Rounds or Listed.
            carried: as `carried` has it.
            waits, late: count waits, and those of background threads.
        """
        found, moments, numbers = copy(self), iter(carried[0]), iter(carried[1])
        found.world, found.at_hand, found.book, found.inbox = world, AtHand(), Book(), deque()
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
        found._sleeps, found._factors = draws(self._sleeps), draws(self._factors)
        found._input_factors, found._update_factors = draws(self._input_factors), draws(self._update_factors)
        if self.background is not None:
            found.background = self.background.resumed(found, rows, list(moments), list(numbers))
        return found

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

    def _did(self):
        """A verb is over; nothing is yielded, for nothing is waited for."""
        self.done += 1
        return
        yield


def _partitions(left_s: np.ndarray, partition_s: float | np.ndarray, most: int) -> np.ndarray:
    """How many partitions a rank computes: one at least, and as long as there is time left; the last overruns."""
    done = left_s / np.maximum(partition_s, SHORTEST_S)
    np.ceil(done, out=done)
    return np.minimum(np.maximum(done, 1, out=done), most, out=done)
