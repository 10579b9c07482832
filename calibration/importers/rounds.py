"""Synchronous rounds of which the workers' busy seconds and the lengths were logged, as a trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim import stragglers as laws
from sim.base.errors import WrongSetting
from sim.job import header as heads
from sim.job import replay
from sim.job.header import IMPORTED
from sim.model import workload as workloads
from sim.model.workload import Workload
from sim.recording import traces
from sim.recording.traces import Activity, Header, Trace

if TYPE_CHECKING:
    import pandas as pd

FIRST = "the first round is left out of the costs, as warm-up: processes join one by one"


def trace(work: pd.DataFrame, ends_s: Sequence[float], workload: str | Workload, stragglers: str, source: str) -> Trace:
    """A trace of the rounds that end at `ends_s`, seconds since the first began.

    The protocol is fmb if all counts of samples are equal, else amb. The micro-batch of amb is their greatest common divisor, and its
    limit the shortest busy time (a worker that stops has passed the limit). Its batch is the largest count, because the true batch is
    not in the logs. See `laid_out`.

    Args:
        work: a row for each worker (rank, from 1) and round (step, from 0): samples; busy_s, seconds of induced sleep and computation
            together; and sleep_s, seconds of the sleep alone, if it was logged.

    Raises:
        WrongSetting: there is no work, a worker did not log each round once, a round ends before its slowest worker, a value is one
            that no trace may hold, or the workload or law does not exist.
    """
    if work.empty:
        raise WrongSetting("log", source, "a log of at least one complete round")
    ranks, rounds = np.unique(work["rank"]), len(ends_s)
    if ranks.tolist() != list(range(1, len(ranks) + 1)):
        raise WrongSetting(f"{source}: ranks", shortened(ranks.tolist()), "1, 2, 3, ..., each of them")
    ordered = work.sort_values(["step", "rank"]).drop_duplicates(["step", "rank"])
    if len(ordered) < max(len(work), len(ranks) * rounds):
        allowed = f"{len(ranks) * rounds}: one of each of {len(ranks)} workers in each of {rounds} rounds"
        raise WrongSetting(f"{source}: lines", f"{len(work)}, {len(ordered)} of them different", allowed)
    busy_s, samples, sleep_s = (
        ordered[name].to_numpy().reshape(rounds, len(ranks)) if name in ordered else None
        for name in ("busy_s", "samples", "sleep_s")
    )
    head = _header(ordered, rounds, workload, stragglers, source)
    starts_s = np.append(0.0, ends_s[:-1])
    for step, (start_s, end_s, least_s) in enumerate(zip(starts_s, ends_s, busy_s.max(axis=1), strict=True), 1):
        if end_s < start_s + least_s:
            allowed = f"at least its slowest worker, {least_s:g} s"
            raise WrongSetting(f"{source}: round {step}", f"{end_s - start_s:g} s", allowed)
    return laid_out(head, ends_s, busy_s, samples, sleep_s, source=source)


def laid_out(
    head: Header,
    ends_s: Sequence[float],
    busy_s: np.ndarray,
    samples: np.ndarray,
    sleep_s: np.ndarray | None = None,
    messages_s: float = 0.0,
    source: str = "",
) -> Trace:
    """A trace of rounds that all workers begin together, and in which each waits for the slowest and for messages.

    What follows in a round (reduction, optimiser, evaluation, parameters back) is an update, of the master or of each worker.

    Args:
        ends_s: of each round, since the first began.
        busy_s: seconds of each round and worker, shape (rounds, workers), as are samples and sleep_s, the part of busy_s that is sleep.
        messages_s: of a round, after the slowest worker.
    """
    rows: list[Activity] = []
    for step, (start_s, end_s) in enumerate(zip([0.0, *ends_s[:-1]], map(float, ends_s), strict=True)):
        ready_s, total = min(end_s, start_s + float(busy_s[step].max()) + messages_s), int(samples[step].sum())
        for worker in range(head.workers):
            rank, done_s = head.servers + worker, min(ready_s, start_s + float(busy_s[step, worker]))
            awake_s = start_s + (0.0 if sleep_s is None else float(sleep_s[step, worker]))
            if awake_s > start_s:
                rows.append(Activity(start_s, awake_s, rank, step, "sleep", version=step))
            rows.append(Activity(awake_s, done_s, rank, step, "compute", int(samples[step, worker]), version=step))
            rows.append(Activity(done_s, end_s if head.servers else ready_s, rank, step, "wait", version=step))
        if head.servers:
            rows.append(Activity(start_s, ready_s, 0, step, "wait", version=step))
        for rank in (0,) if head.servers else range(head.workers):
            rows.append(Activity(ready_s, end_s, rank, step, "update", total, version=step + 1))
    found = Trace.of(heads.checked(head.text(), source), rows)
    traces.check(found.header, found.rows, source)
    return found


def shortened(values: list) -> str:
    """The first of them."""
    said = ", ".join(f"{value:.60}" if isinstance(value, str) else f"{value:.9g}" for value in values[:5])
    return said + ", ..." * (len(values) > 5)


def _header(work: pd.DataFrame, rounds: int, workload: str | Workload, stragglers: str, source: str) -> Header:
    counts = sorted(set(work["samples"].astype(int).tolist()))
    batch, anytime = counts[-1], len(counts) > 1
    settings = {}
    if anytime:
        settings = {"time_limit_s": float(work["busy_s"].min()), "partitions": batch // math.gcd(*counts)}
    return Header(
        protocol="amb" if anytime else "fmb",
        world=IMPORTED,
        **replay.told_of(workloads.read(workload), laws.read(stragglers)),
        workers=int(work["rank"].max()),
        steps=max(1, rounds - 1),
        warmup=1,  # the first round starts ragged: processes join one by one and load their data
        batch=batch,
        seed=0,
        settings=settings,
        stragglers=stragglers,
        cluster=source,
        sleep_in_compute="sleep_s" not in work,
        communication_in_update=True,
    )
