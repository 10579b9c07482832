"""The ranks of one scenario on their machines, in simulated time."""

from __future__ import annotations

import gc
import math
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache

import simpy

from sim import collectives
from sim.collectives import Exchange
from sim.errors import RunFailed
from sim.event.cores import THREADS_TURN_S, TICK_S, Cores
from sim.event.flows import Flows
from sim.event.free import Crowded, Free
from sim.event.machine import Machine
from sim.event.meter import Meter
from sim.event.rank import Rank
from sim.event.readiness import Readiness
from sim.event.recorder import Recorder
from sim.event.thread import Thread
from sim.horovod_timeline import Timeline
from sim.outcome import Outcome
from sim.protocols import name_of
from sim.protocols.texts import role_of, text_of
from sim.scenario import Scenario
from sim.time_budget import Patience
from sim.traces import Trace
from sim.verbs.me import Place

MOST_KEPT = 400_000  # exchanges of collective calls


def run(
    scenario: Scenario,
    replication: int = 0,
    timeline: Timeline | None = None,
    within_s: float = math.inf,
    want_trace: bool = True,
) -> tuple[Outcome, Trace | None]:
    """One run of the scenario: what it came to, and its trace if that is wanted.

    Args:
        timeline: told what Horovod's would hold.
        within_s: of the wall clock; once they are over, the run ends after the step at hand, or after the least that there must be
            (sim.time_budget).

    Raises:
        RunFailed: the protocol's texts wait for one another for ever, or do what no world can run.
    """
    with garbage_left_lying():
        world = EventWorld(scenario, replication, timeline, within_s, want_trace)
        world.run()
        return world.outcome, world.trace if want_trace else None


def trace(scenario: Scenario, replication: int = 0, **given) -> Trace:
    """The trace of one run; see `run`."""
    return run(scenario, replication, want_trace=True, **given)[1]


@contextmanager
def garbage_left_lying():
    """Raise the collector's threshold: scanning all that a run keeps would take half of its time."""
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
        replication: int = 0,
        timeline: Timeline | None = None,
        within_s: float = math.inf,
        want_trace: bool = True,
    ):
        scenario.check_evaluation()
        self.scenario, self.replication, self.timeline = scenario, replication, timeline
        self.env = simpy.Environment()
        self.patience, self._over, self._at_work = Patience(scenario, within_s), self.env.event(), 0
        self.costs, self.link, self.local = scenario.costs, scenario.network, scenario.cluster.local
        self.recorder = Recorder(scenario, {self.patience.least_warmup, scenario.warmup}, want_trace)
        self.flows, self.readiness = Flows(self.env), Readiness(scenario.ranks, self.at)
        self.machines = self._machines()
        self.ranks = self._ranks()
        each = scenario.updates_per_step
        self.meter = Meter(self.ranks, self.machines, {0, each * scenario.warmup, each * self.patience.least_warmup})

    def _machines(self) -> list[Machine]:
        scenario, replication = self.scenario, self.replication
        error = scenario.error_factor(replication)
        hosts = [
            host.model_copy(update={"speed": host.speed / error, "contention": scenario.contention(replication, host)})
            for host in scenario.machines
        ]
        turn_s = THREADS_TURN_S if scenario.threaded else TICK_S
        cores = scenario.cluster.shared_cores
        shared = Cores(self.env, cores, hosts[0].speed, hosts[0].contention, turn_s) if cores else None
        machines = [Machine(self.env, index, host, self.link, turn_s, shared) for index, host in enumerate(hosts)]
        for machine in scenario.hosts:
            machines[machine].ranks += 1
        return machines

    def _ranks(self) -> list[Rank]:
        scenario = self.scenario
        groups, hosts = scenario.groups(scenario.hosts), scenario.hosts
        servers, workers = range(scenario.servers), range(scenario.servers, scenario.ranks)
        ranks = []
        for number, host in enumerate(hosts):
            mine = groups.of.get(number, [number])
            leads = number == mine[0]
            place = Place(
                number,
                servers,
                workers,
                groups.senders,
                mine[1:] if leads else [],
                servers if leads else [mine[0]],
                hosts,
            )
            ranks.append(Rank(self, place, self.machines[host], self._mechanics(self.machines[host])))
        everyone = [rank.mechanics for rank in ranks]
        for one in everyone:
            one._to = everyone
        return ranks

    def _mechanics(self, machine: Machine):
        """How the ranks of a host take time: by arithmetic where nothing that they share makes work longer."""
        link, local = self.link, self.local
        simple = self.scenario.cores_suffice and not link.fair and not (local.wakes and local.latency_s)
        if simple and not self.scenario.protocol.layerwise:
            return Crowded if machine.ranks > 1 else Free
        from sim.event.contended import Contended

        return Contended

    # ---- the run

    def run(self) -> None:
        """To the end of all texts, or until time is over.

        Raises:
            RunFailed: the texts wait for one another for ever.
        """
        threads = [
            Thread(rank, text_of(self.scenario, role_of(self.scenario, rank.rank), rank), self._ended)
            for rank in self.ranks
        ]
        self._at_work = len(threads)
        for rank, thread in zip(self.ranks, threads, strict=True):
            rank.thread = thread
        for thread in threads:
            self.at(0.0, thread.go)
        try:
            self.env.run(self._over)
        except RunFailed:
            raise
        except RuntimeError as error:
            if "until" not in str(error):
                raise
            waiting = ", ".join(str(number) for number, thread in enumerate(threads) if thread.alive)
            raise RunFailed(f"deadlock in {name_of(self.scenario.protocol)}: ranks {waiting} wait for ever") from error
        if not self.patience.over:
            self.patience.check_complete()

    def _ended(self) -> None:
        """A text is at its end."""
        self._at_work -= 1
        if not self._at_work and not self._over.triggered:
            self._over.succeed()

    def updated(self, rank: Rank, samples: int, start_s: float):
        """Rank 0 has made an update."""
        self.recorder.updated(rank.clock_s, samples)
        self.meter.updated(rank.version, rank.clock_s)
        if self.patience.updated() and not self._over.triggered:
            self.at(rank.clock_s, self._cut)
            yield

    def _cut(self) -> None:
        if not self._over.triggered:
            self._over.succeed()

    def at(self, time_s: float, call) -> None:
        """Call at a simulated time."""
        self.env.timeout(max(0.0, time_s - self.env.now)).callbacks.append(lambda _: call())

    # ---- what it came to

    @property
    def outcome(self) -> Outcome:
        """Steps, samples and idle shares, as one replication."""
        found, warmup = (
            self.recorder.outcome(self.patience.warmup),
            self.patience.warmup * self.scenario.updates_per_step,
        )
        if not (self.scenario.protocol.counts_updates and self.scenario.served):
            return found
        return replace(found, arrivals=self.meter.arrivals(warmup, self.recorder.ends_s[-1]))

    @property
    def trace(self) -> Trace:
        """All activities."""
        header = self.scenario.header("event", self.replication, ran_out=self.recorder.ran_out)
        return Trace.of(replace(header, warmup=self.patience.warmup), self.recorder.rows)

    # ---- what is worked out once for all ranks

    @cached_property
    def variables(self) -> range:
        """Numbers of the variables that travel one by one."""
        return range(len(self.scenario.placed)) if self.scenario.protocol.layerwise else range(0)

    @cached_property
    def server_of(self) -> list[int]:
        """The server of each of them."""
        return [server for _, server in self.scenario.placed]

    @cached_property
    def variable_bytes(self) -> list[int]:
        """Bytes of a message with each of them."""
        return [variable.load(self.scenario.batch).gradient_bytes for variable, _ in self.scenario.placed]

    def held_by(self, rank: int) -> list[int]:
        """Those that a server holds."""
        return [number for number in self.variables if self.server_of[number] == rank]

    def exchanges(self, algorithm: str, worker: int, piece: slice) -> list[Exchange]:
        """Those of one worker, counted from 0, in one collective call."""
        return self._exchanges(algorithm, worker, piece.start, piece.stop)

    @cached_property
    def _exchanges(self):
        first, hosts = self.scenario.servers, self.scenario.hosts

        def made(algorithm: str, worker: int, start: int, stop: int) -> list[Exchange]:
            found = collectives.allreduce(algorithm, worker, hosts[first:], slice(start, stop))
            return [exchange.among(first) for exchange in found] if first else list(found)

        return lru_cache(max(1, MOST_KEPT // (2 * len(hosts))))(made)
