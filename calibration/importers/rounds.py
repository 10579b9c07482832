"""Synchronous rounds, of which only the workers' busy seconds and the rounds' lengths were logged, as a trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sim.base.errors import WrongSetting
from sim.job import header as heads
from sim.recording import records
from sim.recording.traces import Activity, Header, Trace

if TYPE_CHECKING:
    from sim.model.workload import Workload

FIRST = "the first round is left out of the costs, as warm-up: processes join one by one"


class Work(NamedTuple):
    """One worker's log of one round.

    Args:
        busy_s: induced sleep and computation together, seconds.
        sleep_s: the sleep alone; None if it was not logged.
    """

    rank: int
    step: int
    samples: int
    busy_s: float
    sleep_s: float | None = None


def trace(
    work: Sequence[Work], ends_s: Sequence[float], workload: str | Workload, stragglers: str, source: str
) -> Trace:
    """A trace of the rounds that end at `ends_s`, seconds since the first began.

    Logged: samples, busy seconds (they contain the sleep, which gets a row of its own if it was logged), rounds. Reconstructed: all
    workers start a round together; the master waits for the slowest of them; everything after that (reduction, optimiser, evaluation,
    parameters back) is the master's `update` and the workers' `wait`. The protocol is fmb if all counts of samples are equal, else
    amb. The micro-batch of amb is their greatest common divisor, and its limit the shortest busy time (a worker that stops has passed
    the limit). Its batch is the largest count, because the true batch is not in the logs.

    Raises:
        WrongSetting: there is no work, a worker did not log each round once, a round ends before its slowest worker, a value is one
            that no trace may hold, or the workload or law does not exist.
    """
    if not work:
        raise WrongSetting("log", source, "a log of at least one complete round")
    _check(work, source)
    header = _header(work, len(ends_s), workload, stragglers, source)
    starts_s = [0.0, *ends_s[:-1]]
    ready_s, samples = _rounds(work, starts_s)
    for step, (ready, end) in enumerate(zip(ready_s, ends_s, strict=True)):
        if end < ready:
            raise WrongSetting(
                f"{source}: round {step + 1}",
                f"{end - starts_s[step]:g} s",
                f"at least its slowest worker, {ready - starts_s[step]:g} s",
            )
    rows = [row for w in work for row in _worker(w, starts_s[w.step], ends_s[w.step])]
    for step, (start, ready, end) in enumerate(zip(starts_s, ready_s, ends_s, strict=True)):
        rows.append(Activity(start, ready, 0, step, "wait", version=step))
        rows.append(Activity(ready, end, 0, step, "update", samples[step], version=step + 1))
    found = Trace.of(heads.checked(header.text(), source), rows)
    records.check(found.header, found.rows, source)
    return found


def _check(work: Sequence[Work], source: str) -> None:
    """Every worker, from 1 on, logged every round once."""
    ranks, steps = ({getattr(w, name) for w in work} for name in ("rank", "step"))
    if ranks != set(range(1, len(ranks) + 1)):
        raise WrongSetting(f"{source}: ranks", shortened(sorted(ranks)), "1, 2, 3, ..., each of them")
    seen = {(w.rank, w.step) for w in work}
    if len(seen) < len(work) or len(seen) < len(ranks) * len(steps):
        allowed = f"{len(ranks) * len(steps)}: one of each of {len(ranks)} workers in each of {len(steps)} rounds"
        raise WrongSetting(f"{source}: lines", f"{len(work)}, {len(seen)} of them different", allowed)


def shortened(values: list) -> str:
    """The first of them."""
    return ", ".join(f"{value:.20}" if isinstance(value, str) else f"{value:.9g}" for value in values[:5])


def _rounds(work: Sequence[Work], starts_s: Sequence[float]) -> tuple[list[float], list[int]]:
    """When the slowest worker of each round was done, and the samples of all."""
    ready_s, samples = list(starts_s), [0] * len(starts_s)
    for w in work:
        ready_s[w.step] = max(ready_s[w.step], starts_s[w.step] + w.busy_s)
        samples[w.step] += w.samples
    return ready_s, samples


def _worker(w: Work, start_s: float, end_s: float) -> list[Activity]:
    awake_s, done_s = start_s + (w.sleep_s or 0.0), start_s + w.busy_s
    sleep = [Activity(start_s, awake_s, w.rank, w.step, "sleep", version=w.step)] if w.sleep_s else []
    compute = Activity(awake_s, done_s, w.rank, w.step, "compute", w.samples, version=w.step)
    return [*sleep, compute, Activity(done_s, end_s, w.rank, w.step, "wait", peer=0, version=w.step)]


def _header(work: Sequence[Work], rounds: int, workload: str | Workload, stragglers: str, source: str) -> Header:
    from sim import stragglers as laws
    from sim.job import heading
    from sim.model import workload as workloads

    counts = {w.samples for w in work}
    batch, micro_batch = max(counts), math.gcd(*counts)
    anytime = len(counts) > 1
    settings = {"time_limit_s": min(w.busy_s for w in work), "partitions": batch // micro_batch} if anytime else {}
    return Header(
        protocol="amb" if anytime else "fmb",
        world="imported",
        **heading.told_of(workloads.read(workload), laws.read(stragglers)),
        workers=max(w.rank for w in work),
        steps=max(1, rounds - 1),
        warmup=1,  # the first round starts ragged: processes join one by one and load their data
        batch=batch,
        seed=0,
        settings=settings,
        stragglers=stragglers,
        cluster=source,
        sleep_in_compute=any(w.sleep_s is None for w in work),
        communication_in_update=True,
    )
