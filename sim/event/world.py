"""The ranks of one scenario on their machines, in simulated time."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial

from sim import collectives
from sim.answers.outcome import Outcome
from sim.base.errors import RunFailed
from sim.collectives import Exchange
from sim.event import assembly
from sim.event.agreement import Agreement
from sim.event.all_ranks import AllRanks
from sim.event.clock import Clock
from sim.event.machines.flows import Flows
from sim.event.meter import Meter
from sim.event.ranks.amounts import Amounts
from sim.event.ranks.random_streams import RandomStreams
from sim.event.ranks.rank import Rank
from sim.event.ranks.thread import Thread
from sim.event.readiness import Readiness
from sim.event.recorder import Recorder
from sim.job.scenario import Scenario
from sim.protocols import name_of
from sim.recording.traces import Trace
from sim.worlds.texts import role_of, text_of
from sim.worlds.time_budget import Patience

MOST_KEPT = 400_000  # exchanges of collective calls
DONE = ()


def run(
    scenario: Scenario,
    replication: int = 0,
    within_s: float = math.inf,
    want_trace: bool = True,
) -> tuple[Outcome, Trace | None]:
    """One run of the scenario: its outcome, and its trace if one is asked for.

    Args:
        within_s: of the wall clock; once they are over, the run ends after the step at hand, or after the least that there must be
            (sim.worlds.time_budget).

    Raises:
        RunFailed: the protocol's texts wait for one another for ever, or do what no world can run.
    """
    with garbage_left_lying():
        world = EventWorld(scenario, replication, within_s, want_trace)
        try:
            world.run()
            return world.outcome, None if world.recorder.rows is None else world.trace
        finally:
            world.fall_apart()


def trace(scenario: Scenario, replication: int = 0, **given) -> Trace:
    """The trace of one run; see `run`."""
    kept = run(scenario, replication, want_trace=True, **given)[1]
    assert kept is not None
    return kept


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

    rank_class = Rank

    def __init__(
        self,
        scenario: Scenario,
        replication: int = 0,
        within_s: float = math.inf,
        want_trace: bool = True,
    ):
        scenario.check_evaluation()
        self.scenario, self.replication = scenario, replication
        self.env, self.random, self.amounts = Clock(), RandomStreams(scenario, replication), Amounts(scenario)
        self.patience, self._over, self._at_work = Patience(scenario, within_s), self.env.event(), 0
        self.counts_updates, self.layerwise = scenario.protocol.counts_updates, scenario.protocol.layerwise
        self.servers, self.workers = range(scenario.servers), range(scenario.servers, scenario.ranks)
        self.costs, self.link, self.local = scenario.costs, scenario.network, scenario.local
        self.recorder = Recorder(scenario, {self.patience.least_warmup, scenario.warmup}, want_trace)
        self.all_ranks = AllRanks(self) if scenario.by_all_ranks else None
        self.flows, self.readiness = Flows(self.env), Readiness(scenario.ranks, self.env)
        self.agreement = Agreement(scenario, self.env)
        self.machines = assembly.machines(self)
        self.ranks = assembly.ranks(self)
        each = scenario.updates_per_step
        self.meter = Meter(self.ranks, self.machines, {0, each * scenario.warmup, each * self.patience.least_warmup})

    # ---- the run

    def run(self) -> None:
        """Run to the end of all texts, or until time is over.

        Raises:
            RunFailed: the texts wait for one another for ever.
        """
        threads = [
            Thread(rank, text_of(self.scenario, role_of(self.scenario, rank.rank), rank), partial(self._ended, rank))
            for rank in self.ranks
        ]
        self._at_work = len(threads)
        for thread in threads:
            thread.rank.thread = thread
            self.env.call(0.0, thread.go)
        if not self.env.run_until(self._over):
            waiting = ", ".join(str(number) for number, thread in enumerate(threads) if thread.alive)
            raise RunFailed(f"deadlock in {name_of(self.scenario.protocol)}: ranks {waiting} wait for ever")
        if not self.patience.over:
            self.patience.check_complete()

    def _ended(self, rank: Rank) -> None:
        """Count a text that has ended; what is sent to its rank leaves unread."""
        rank.mechanics.end()
        self._at_work -= 1
        if not self._at_work and not self._over.triggered:
            self._over.succeed()

    def updated(self, rank: Rank, samples: int):
        """Rank 0 has made an update; or any rank, where a step is that of all."""
        if self.all_ranks is not None:
            self.all_ranks.updated(rank, samples)
            return DONE
        self.recorder.updated(rank.clock_s, samples)
        if rank.version in self.meter.warmups:
            self.meter.begin(rank.version, rank.clock_s)
        if self.patience.updated() and not self._over.triggered:
            return self._ended_early(rank)
        return DONE

    def step_over(self, end_s: float, samples: int) -> None:
        """All ranks have ended a step, where it is that of all."""
        self.recorder.updated(end_s, samples)
        if self.patience.updated():
            self.at(end_s, self._cut)

    def _ended_early(self, rank: Rank):
        """End the run now: there is no time left."""
        self.at(rank.clock_s, self._cut)
        yield

    def _cut(self) -> None:
        if not self._over.triggered:
            self._over.succeed()

    def at(self, time_s: float, call) -> None:
        """Call at a simulated time."""
        self.env.call(max(time_s, self.env.now), _called, call)

    def fall_apart(self) -> None:
        """Cut references that form circles, so that memory is free at once, without the garbage collector."""
        for rank in self.ranks:
            rank.fall_apart()
        self.ranks.clear()
        self.machines.clear()

    # ---- the outcome

    @property
    def outcome(self) -> Outcome:
        """Steps, samples and idle shares, as one replication."""
        found, warmup = (
            self.recorder.outcome(self.patience.warmup),
            self.patience.warmup * self.scenario.updates_per_step,
        )
        if self.all_ranks is not None:
            return replace(found, rank_step_s=self.all_ranks.step_s(self.patience.warmup, found.step_s.shape[1])[None])
        if not (self.scenario.protocol.counts_updates and self.scenario.served):
            return found
        return replace(found, arrivals=self.meter.arrivals(warmup, self.recorder.ends_s[-1]))

    @property
    def trace(self) -> Trace:
        """All activities."""
        header = self.scenario.header("event", self.replication, ran_out=self.recorder.ran_out)
        return Trace.of(replace(header, warmup=self.patience.warmup), self.recorder.rows or [])

    # ---- worked out once for all ranks

    def pieces(self, fused: bool) -> list[slice]:
        """The pieces that calls sum."""
        return self._pieces(fused)

    @cached_property
    def _pieces(self) -> Callable[[bool], list[slice]]:
        return cache(lambda fused: collectives.pieces(self.scenario.summed, fused))

    def exchanges(self, algorithm: str, worker: int, piece: slice) -> list[Exchange]:
        """The exchanges of one worker, counted from 0, in one collective call."""
        return self._exchanges(self.scenario.algorithm(algorithm), worker, piece.start, piece.stop)

    @cached_property
    def _exchanges(self):
        first, hosts = self.scenario.servers, self.scenario.hosts

        def made(algorithm: str, worker: int, start: int, stop: int) -> list[Exchange]:
            found = collectives.allreduce(algorithm, worker, hosts[first:], slice(start, stop))
            return [exchange.among(first) for exchange in found] if first else list(found)

        return lru_cache(max(1, MOST_KEPT // (2 * len(hosts))))(made)


def _called(call) -> None:
    call()
