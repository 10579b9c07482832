"""The event world: one generator a rank, simulated time, contention for cores and ports. It can run everything."""

from __future__ import annotations

import gc
import math
from contextlib import contextmanager
from dataclasses import replace

import simpy

from sim.costs import Line
from sim.cpu import ROUND_OFF_S, THREADS_TURN_S, TICK_S, Cores
from sim.errors import RunFailed
from sim.flows import Flows
from sim.horovod_timeline import Timeline
from sim.laws import LogNormal
from sim.network import Inbox, Message
from sim.protocols import name_of
from sim.randomness import Stream
from sim.rows import HEADER_BYTES, Load
from sim.scenario import Scenario
from sim.traces import NOBODY, Activity, Trace
from sim.worlds.asynchrony import Asynchrony
from sim.worlds.at_hand import AtHand
from sim.worlds.background import Background, Readiness
from sim.worlds.behind import Behind
from sim.worlds.exchanging import Exchanging
from sim.worlds.layers import Layers
from sim.worlds.looking import Looking
from sim.worlds.machine import Machine
from sim.worlds.patience import Patience
from sim.worlds.sending import Sending
from sim.worlds.serving import CLOCK_S, ENDLESS, Serving
from sim.worlds.texts import role_of, text_of
from sim.worlds.transport import Transport


def run(
    scenario: Scenario, replication: int = 0, timeline: Timeline | None = None, within_s: float = math.inf
) -> Trace:
    """One run of the scenario, as a trace; a `timeline` is told what Horovod's would.

    Args:
        within_s: of the wall clock; once they are over, the run ends after the step at hand, or after the least that there must be
            (sim.worlds.patience); the trace says how many steps were its warm-up.

    Raises:
        RunFailed: the protocol's texts wait for one another for ever, or do what no world can run.
    """
    with garbage_left_lying():
        return EventWorld(scenario, replication, timeline, within_s).run()


@contextmanager
def garbage_left_lying():
    """Python's collector looks seldom: it would look through all activities again and again, for half of the time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class EventWorld:
    """The ranks of one scenario on their machines."""

    def __init__(
        self,
        scenario: Scenario,
        replication: int,
        timeline: Timeline | None = None,
        within_s: float = math.inf,
    ):
        scenario.check_evaluation()
        self.scenario, self.replication, self.timeline = scenario, replication, timeline
        self.env = simpy.Environment()
        self.patience, self.over = Patience(scenario, within_s), self.env.event()
        self.costs, self.activities, self.ran_out, self.meetings = scenario.costs, [], 0, {}
        self.one_work_a_core = not (scenario.cores_shared or scenario.protocol.overlaps)
        self.groups = scenario.groups(scenario.hosts)
        link, hosts, cores = scenario.network, scenario.machines, scenario.cluster.shared_cores
        off = scenario.error_factor(replication)
        hosts = [
            h.model_copy(update={"speed": h.speed / off, "contention": scenario.contention(replication, h)})
            for h in hosts
        ]
        turn_s = THREADS_TURN_S if scenario.threaded else TICK_S
        shared = Cores(self.env, cores, hosts[0].speed, hosts[0].contention, turn_s) if cores else None
        machines = [Machine(self.env, i, host, link, turn_s, shared) for i, host in enumerate(hosts)]
        self.flows = Flows(self.env)
        self.readiness = Readiness(self.env, scenario.ranks)
        self.ranks = [Rank(self, rank, machines[machine]) for rank, machine in enumerate(scenario.hosts)]
        for rank in self.ranks:
            rank.begin_layers()

    def run(self) -> Trace:
        processes = [self.env.process(text) for text in self._texts()]
        try:
            self.env.run(simpy.AllOf(self.env, processes) | self.over)
        except RunFailed:
            raise
        except RuntimeError as error:
            if "until" not in str(error):
                raise
            waiting = ", ".join(str(rank) for rank, process in enumerate(processes) if process.is_alive)
            raise RunFailed(f"deadlock in {name_of(self.scenario.protocol)}: ranks {waiting} wait for ever") from error
        if not self.patience.over:
            self.patience.check_complete()
        header = self.scenario.header("event", self.replication, ran_out=self.ran_out)
        return Trace.of(replace(header, warmup=self.patience.warmup), self.activities)

    def updated(self) -> None:
        """Rank 0 has made an update."""
        if self.patience.updated() and not self.over.triggered:
            self.over.succeed()

    def _texts(self):
        return [text_of(self.scenario, role_of(self.scenario, rank.rank), rank) for rank in self.ranks]


class Rank(AtHand, Sending, Exchanging, Serving, Asynchrony, Layers, Background, Behind, Looking, Transport):
    """`me` of the event world: the verbs of sim.protocols.base, in simulated time."""

    def __init__(self, world: EventWorld, rank: int, machine: Machine):
        scenario = world.scenario
        self.world, self.rank, self.machine = world, rank, machine
        self.scenario, self.hosts = scenario, scenario.hosts
        self.idle_from_s = 0.0  # while a rank computes beside its messages it does not wait
        self.master, self.servers = 0, range(scenario.servers)
        self.workers = range(scenario.servers, scenario.ranks)
        self.step, self.version, self.samples, self.minibatches = 0, 0, 0, 0
        number = scenario.worker_number(rank)
        self.begin_serving(scenario.updates if rank == 0 else ENDLESS)
        self.begin_aggregating(world.groups)
        self.begin_asynchrony(scenario.delays(world.replication, number))
        self._fetched, self._slept_s, self._warm_s = False, 0.0, 0.0  # when it last ended a gradient or an update
        self.inbox, self._posted = Inbox(world.env), None
        self.luck = luck = (scenario.seed, world.replication, number)
        self._sleeps = scenario.sleeps(world.replication, number)
        self._noise = Stream(world.costs.noise, *luck, "noise")
        self._input_noise = Stream(world.costs.input_noise, *luck, "input")
        self._update_noise = Stream(world.costs.update_noise, *luck, "update")
        self.begin_looking()
        self.begin_transport(Stream(LogNormal(cv=scenario.network.unfairness), *luck, "share"))
        self._run_factor = scenario.run_factor(world.replication, machine.index)

    @property
    def now_s(self) -> float:
        """Simulated seconds since the start."""
        return self.world.env.now

    def steps(self):
        """Every round; sets `step`."""
        for step in range(self.world.scenario.rounds):
            self.step = step
            yield step

    def sleep(self):
        """The induced straggler; one that sleeps at all oversleeps a little."""
        seconds = self._sleeps[self.step]
        if seconds > 0:
            start_s = self.now_s
            yield self.world.env.timeout(seconds + self.world.scenario.cluster.oversleep_s)
            self._record("sleep", start_s)
            self._slept_s = self.now_s - start_s

    def fetch(self):
        """A minibatch, before the parameters for it."""
        batch = self.world.scenario.batch
        self.work_behind_step(self.world.costs.background(batch), self._slept_s)
        yield from self._input(batch)
        self._fetched = True

    def compute(self):
        """The gradient of the whole minibatch."""
        self.begin_gradient()
        if not self._fetched:
            yield from self.fetch()
        batch, self.oldest, self._fetched = self.world.scenario.batch, self.version, False
        yield from self._gradient(batch)
        self.samples, self.minibatches = batch, 1
        yield from self._pack()

    def compute_until(self, deadline_s, partitions):
        """Partitions while there is time, at least one; the last overruns."""
        self.begin_gradient()
        yield from self._input(self.world.scenario.batch)
        start_s, factor = self.now_s, self._factor()
        micro_batch = self.world.scenario.batch // partitions
        cold_s = self._cold_s(self.world.costs.partition)
        yield from self._spend(factor * self.world.costs.loop_s + cold_s, computing=True)
        done = 0
        while done < partitions and (done == 0 or deadline_s - self.now_s > CLOCK_S):
            yield from self._spend(factor * self.world.costs.partition(micro_batch), computing=True)
            done += 1
        self.world.ran_out += done == partitions and deadline_s - self.now_s > CLOCK_S
        self.samples = done * micro_batch
        self._record("compute", start_s, samples=self.samples)
        self._warm_s = self.now_s
        yield from self._pack()

    def begin_minibatch(self):
        """A minibatch of which partitions will be computed."""
        self.begin_gradient()
        self.samples, self.oldest = 0, self.version
        yield from self._input(self.world.scenario.batch)

    def compute_partition(self, done: int, partitions: int):
        """The gradient of one partition, by itself, added to those of the `done` before."""
        micro_batch = self.world.scenario.batch // partitions
        yield from self._gradient(micro_batch)
        yield from self._pack()
        self.samples += micro_batch

    def run_out(self) -> None:
        """There was time left, and no data."""
        self.world.ran_out += 1

    def _sum_s(self, size_bytes: int, load: Load) -> float:
        costs = self.world.costs
        return (costs.reduce_rows if load.rows and costs.reduce_rows else costs.reduce)(size_bytes)

    def gather(self, peers):
        """Receive from each of `peers`, in order of arrival, and add up."""
        missing = {peers} if isinstance(peers, int) else set(peers)
        while missing:
            self.taken = yield from self.arrival(missing)
            missing.remove(self.taken.sender)
            yield from self.add()

    def add(self):
        """Add the gradient that was taken to the sum."""
        message = self.begin_add()
        about = {
            "samples": message.samples,
            "bytes": message.size_bytes,
            "peer": message.sender,
            "version": message.version,
        }
        summed_s = map(self._sum_s, message.parts, self._loads_with(message.sender))
        yield from self._work_on(summed_s, "reduce", **about)
        self.samples += message.samples
        self.minibatches += message.minibatches
        self.added()

    def update(self):
        """Make new parameters of the sum."""
        parts = self.world.scenario.updated_bytes(self.rank)
        self.number_update()
        self.version += 1
        self.updated()
        noise, about = self._update_noise[self.step], {"samples": self.samples, "bytes": sum(parts)}
        parts_s = [noise * self.world.costs.update(size) for size in parts]
        parts_s[0] += self._cold_s(self.world.costs.update)
        yield from self._work_on(parts_s, "update", **about)
        self._warm_s = self.now_s
        self.samples = self.minibatches = 0

    def evaluate(self):
        """Loss and accuracy, where they are due."""
        if self.rank == 0 and self.world.scenario.evaluates(self.step):
            test_size = self.world.scenario.test_size
            yield from self._work("evaluate", self.world.costs.evaluate(test_size), samples=test_size)

    def take_up(self, message: Message):
        """New parameters replace those at hand."""
        if message.sender == 0:
            self.version = message.version
        yield from self._work("update", self.world.costs.take_up(message.size_bytes), bytes=message.size_bytes)

    def post_note(self, peer: int, version: int | None = None, last: bool = False):
        """Send a header alone, and go on; the last says that training is over, a worker's others which rows it asks for."""
        label, parts = self.version if version is None else version, (HEADER_BYTES,)
        if peer in self.servers and self.rank in self.workers and not last:
            parts = tuple(load.request_bytes for load in self.scenario.loads(peer))
        yield from self._post(peer, Message(self.rank, label, 0, sum(parts), note=True, last=last, parts=parts))

    def hold(self, message: Message) -> Message:
        """A message that later ones do not overwrite."""
        return message

    def _input(self, samples: int):
        costs, slept_s, self._slept_s = self.world.costs, self._slept_s, 0.0
        resume_s = costs.resume_s if slept_s else 0.0
        yield from self._work("input", resume_s + self._input_noise[self.step] * costs.input(samples), samples=samples)

    def _pack(self):
        size_bytes = self.world.scenario.packed_bytes
        yield from self._work("pack", self.world.costs.pack(size_bytes), bytes=size_bytes)

    def _gradient(self, samples: int):
        """Compute a gradient at once."""
        compute = self.world.costs.compute
        seconds = self._factor() * compute(samples) + self._cold_s(compute)
        yield from self._work("compute", seconds, samples=samples)
        self._warm_s = self.now_s

    def _cold_s(self, line: Line) -> float:
        return float(line.cold(self.now_s - self._warm_s))

    def _factor(self) -> float:
        return self._run_factor * self._noise[self.step]

    def _work(self, activity: str, seconds: float, **about):
        start_s = self.now_s
        yield from self._spend(seconds, computing=activity == "compute")
        self._record(activity, start_s, **about)

    def _work_on(self, parts_s, activity: str, **about):
        """Parts that take so many seconds of a core, at once, each by a core as long as there are."""
        start_s, parts_s = self.now_s, list(parts_s)
        who = self.rank if len(parts_s) == 1 and not self.scenario.threaded else None
        works = [self.machine.cores.work(seconds, who) for seconds in parts_s if seconds > ROUND_OFF_S]
        yield simpy.AllOf(self.world.env, works)
        self._record(activity, start_s, **about)

    def _spend(self, seconds: float, computing: bool = False):
        """`seconds` of a core, or of the rank's own GPU where it computes on one."""
        if seconds > ROUND_OFF_S:
            waits_for_none = self.world.one_work_a_core or (computing and self.machine.gpus)
            if waits_for_none:
                yield self.world.env.timeout(seconds / self.machine.speed)
            else:
                yield self.machine.cores.work(seconds, self.rank)

    def _record(
        self, activity: str, start_s: float, end_s: float | None = None, samples=0, bytes=0, peer=NOBODY, version=None
    ) -> None:
        end_s = self.now_s if end_s is None else end_s
        if activity == "update" and self.rank == 0:
            self.world.updated()
        self.world.activities.append(
            Activity(
                start_s,
                end_s,
                self.rank,
                self.step,
                activity,
                samples,
                bytes,
                peer,
                self.version if version is None else version,
            )
        )
