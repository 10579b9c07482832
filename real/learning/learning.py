"""Train a job in simulated time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from real.learning.learned import Learned
from real.learning.train import train
from real.training.trainee import Training
from sim import needs
from sim.answers import candidates, quantities, shares
from sim.base.activity import Activity
from sim.base.ranges import MOST_REPLICATIONS, check_integer, check_kind
from sim.job.scenario import Scenario
from sim.protocols.base import text_of
from sim.recording.curves import TARGETS, Curves, Target, reached
from sim.recording.traces import Trace
from sim.runs.job import job_of
from sim.runs.replications import gradients_each, once_and_step_s
from sim.simulation import simulate

if TYPE_CHECKING:
    from real.learning.trainer import Trainer
    from real.learning.versions import Versions
    from sim.answers.result import Result

RUNS = 5
MOVED = 0.1  # logarithm of the throughput at an end that is trained, where steps last a fixed time
RARELY = 50  # evaluations: after that, each comes when the number of updates has grown by one part in so many
MOST_TESTED = 10_000  # samples of an evaluation that takes no simulated time
SPEED_STEPS = 100


def learn(
    scenario: Scenario,
    training: Training | None = None,
    until: Target | str | None = None,
    replications: int = RUNS,
    *,
    trainer: Trainer | None = None,
    evaluate_every: int | None = None,
    want_trace: bool = False,
    done: Callable[[float], object] = lambda samples: None,
) -> Learned:
    """Train a job in simulated time, run by run: real gradients, in the order and at the times of the simulation.

    Args:
        scenario: the job, and the most steps of a run. Warm-up steps train as others do. Evaluations take simulated time, as real ones
            do, if it has a `test_size`; else they are of all test samples, and nobody waits for them.
        training: data, optimiser and engine, see real.training.trainee.Training; the usual ones if None.
        until: ends each run, such as "accuracy=0.9".
        replications: runs, each with times and an order of data of its own: those of the real runs of these numbers.
        trainer: made before for the same model, seed and training.
        evaluate_every: updates of rank 0 from one evaluation to the next; if None those of the scenario's steps with a test_size, else
            about 2 % of those so far.
        want_trace: record all activities of the first run.
        done: called with the number of samples whose gradients have just been computed, of `work(scenario)` in each run.

    Raises:
        WrongSetting: an argument is out of range, or the job cannot be trained.
        RunFailed: the ranks wait for one another for ever, or do what no world can run.
    """
    from real.learning.trainer import Trainer

    check_kind("scenario", scenario, Scenario, "a Scenario(protocol, workload, ...)")
    check_kind("training", training, Training | None, "a Training(...)")
    check_kind("until", until, Target | str | None, TARGETS)
    check_kind("trainer", trainer, Trainer | None, "a real.learning.trainer.Trainer(...)")
    check_kind("done", done, Callable, "a function of the number of samples that were computed")
    check_integer("--replications", replications, 1, MOST_REPLICATIONS)
    if evaluate_every is not None:
        check_integer("evaluate_every", evaluate_every, 1)
    if candidates.unknown(scenario):
        candidates.refuse(scenario, "training in simulated time")
    target = Target.read(until) if isinstance(until, str) else until
    training = training or Training(threads=len(os.sched_getaffinity(0)))
    scenario = replace(scenario, steps=scenario.rounds, warmup=0)
    check_trainable(scenario, training)
    every = evaluate_every or (scenario.evaluate_every * scenario.updates_per_step if scenario.test_size else None)
    began_s, trainer = time.monotonic(), trainer or Trainer(scenario.workload, scenario.seed, training)
    speed = simulate(replace(scenario, warmup=10, steps=SPEED_STEPS))
    job = _Job(scenario, training, trainer, target, every, want_trace, done)
    runs = [_Run(job, number).run() for number in range(replications)]
    at_ends = _at_ends(job, target, runs[0], speed) if target else {}
    curves, updates = tuple(run.curves for run in runs), tuple(run.updates for run in runs)
    took_s = time.monotonic() - began_s
    return Learned(
        scenario,
        training.recorded(scenario.workload),
        target,
        curves,
        updates,
        speed,
        took_s,
        runs[0].trace,
        at_ends,
    )


def _at_ends(job: _Job, target: Target, first: _Run, speed: Result) -> dict[str, tuple[float, float]]:
    """By key of each quantity that moves throughput, the logarithms by which the target takes longer and shorter at its ends.

    Only where steps last as long whatever they sum: elsewhere it takes as much longer as a step. Trained once at each end, with the random
    numbers of the first run; those that do not reach the target are left out.
    """
    found: dict[str, tuple[float, float]] = {}
    if not any(hasattr(job.scenario.protocol, name) for name in shares.TIMES):
        return found
    speeds, moved = [1 / reached(first.curves, target)], speed.outcome.ends
    for key, jobs in quantities.at_ends(job.scenario, shares.mean_step_s(speed.outcome)).items():
        if max(moved.get(key, (0.0, 0.0))) < MOVED:
            continue
        runs = [_Run(job._replace(scenario=one, want_trace=False, done=lambda _: None), 0).run() for one in jobs]
        off = quantities.off(speeds[0], [1 / reached(run.curves, target) for run in runs])
        if off is not None and np.isfinite(off).all():
            found[key] = off
    return found


def check_trainable(scenario: Scenario, training: Training) -> None:
    """Refuse what no real run trains either, and what there is no memory for.

    Raises:
        WrongSetting: naming the setting.
    """
    from real.models import forward_of
    from real.training.row_optimiser import check_by_rows

    scenario.check_computing()
    scenario.check_evaluation()
    needs.check_rows(scenario)
    forward_of(scenario.workload)
    job_of(scenario, text_of(scenario))  # which refuses what texts do not have
    if scenario.gathered_variables or scenario.traffic.sends_rows:
        check_by_rows(training.optimiser)


def work(scenario: Scenario) -> float:
    """Samples whose gradients a run of all steps computes, at most."""
    return scenario.rounds * max(1, scenario.workers) * scenario.batch * gradients_each(scenario)


class _Job(NamedTuple):
    """All that runs share; see `learn`."""

    scenario: Scenario
    training: Training
    trainer: Trainer
    target: Target | None
    every: int | None
    want_trace: bool
    done: Callable[[float], object]


class Estimate(NamedTuple):
    """What training takes at most.

    Args:
        seconds: of the wall clock.
        bytes: of memory, besides the engine.
    """

    seconds: float
    bytes: float


def estimate(jobs: list[tuple[Scenario, Trainer]], runs: int) -> Estimate:
    """The seconds and bytes of so many runs of each job, by timing a gradient."""
    seconds, largest = 0.0, 0.0
    for scenario, trainer in jobs:
        once_s, step_s = once_and_step_s(scenario, "event")
        apart = scenario.protocol.by_arrival or scenario.by_all_ranks
        alike = 1.0 if apart else trainer.share(scenario.batch, max(1, scenario.workers))
        samples = work(scenario) * alike
        trained = runs + 2 * any(hasattr(scenario.protocol, name) for name in shares.TIMES)  # as _at_ends trains
        seconds += trained * (once_s + step_s * scenario.rounds + samples * trainer.sample_s())
        live = 2 * scenario.ranks if apart else 2
        largest = max(largest, 4.0 * scenario.workload.parameters * (live + 4) + trainer.data_bytes)
    return Estimate(seconds, largest)


class _Run:
    """One run, and its evaluations.

    Args:
        every: updates of rank 0 between two; None: more rarely as the run goes on.
        done: called with the work of each update, and at the end with what was left out.
    """

    def __init__(self, job: _Job, number: int):
        self._job, self._number, self._scenario = job, number, job.scenario
        self._size = job.scenario.test_size or min(MOST_TESTED, len(job.trainer.data.test_y))
        self._found: list[tuple[int, float, int, float, float]] = []
        self._next, self._counted, self.updates = job.every or 1, job.trainer.computed, 0
        self._left = work(job.scenario)
        self._version: tuple[int, float, int] | None = None  # the last one: updates, seconds, samples
        self.trace: Trace | None = None

    def run(self) -> _Run:
        """Train until the target, or to the last step."""
        want_trace = self._job.want_trace and self._number == 0
        versions, rows = train(self._scenario, self._number, self._job.trainer, self._made, want_trace)
        if self._version and self._found[-1][0] < self.updates:  # what was learned last
            self._evaluate(versions, *self._version)
        self._job.done(max(0.0, self._left))
        self.trace = self._traced(rows) if want_trace else None
        return self

    def _made(self, versions: Versions, updates: int, time_s: float, samples: int) -> bool:
        """A version has been made; whether training is over with it."""
        job, computed = self._job, self._job.trainer.computed - self._counted
        self._counted, self._left, self.updates = self._counted + computed, self._left - computed, updates
        job.done(computed)
        self._version = updates, time_s, samples
        if updates < self._next:
            return False
        self._next = updates + (job.every or max(1, updates // RARELY))
        return self._evaluate(versions, updates, time_s, samples)

    def _evaluate(self, versions: Versions, updates: int, time_s: float, samples: int) -> bool:
        job, newest = self._job, versions.newest
        loss, accuracy = job.trainer.evaluate(newest, self._size)
        self._found.append((updates, time_s, samples, loss, accuracy))
        return job.target is not None and bool(job.target.met(np.array(loss), np.array(accuracy)))

    @property
    def curves(self) -> Curves:
        """All evaluations."""
        step, time_s, samples, loss, accuracy = np.array(self._found, float).reshape(-1, 5).T
        return Curves(step.astype(int), time_s, samples.astype(int), loss, accuracy)

    def _traced(self, rows: list[Activity]) -> Trace:
        """The activities until the last update, with an evaluation that takes no time for each that nobody waited for."""
        scenario, end_s = self._scenario, self._found[-1][1]
        found = {step - 1: at_s for step, at_s, *_ in self._found}
        rows = [row for row in rows if row.end_s <= end_s]
        rows = [row for row in rows if row.activity != "evaluate" or row.step in found]
        free = found.keys() - {row.step for row in rows if row.activity == "evaluate"}
        rows += [
            Activity(found[step], found[step], 0, step, "evaluate", self._size, version=step + 1)
            for step in sorted(free)
        ]
        done = replace(scenario, steps=-(-self.updates // scenario.updates_per_step))
        told = tuple((step - 1, loss, accuracy) for step, _, _, loss, accuracy in self._found)
        training = self._job.training.recorded(scenario.workload)
        return Trace.of(done.header("learning", self._number, training=training, evaluations=told), rows)
