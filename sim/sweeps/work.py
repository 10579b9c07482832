"""The work of a process of a sweep: it simulates a chunk of scenarios, each of which becomes a row, even if it fails."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim import command
from sim.answers import interval, summary
from sim.base.errors import WrongSetting
from sim.engine.choose import engine
from sim.platform import gpu_memory
from sim.protocols import own
from sim.simulation import simulate
from sim.vector import at_once, compiled
from sim.vector.compiled import kept

if TYPE_CHECKING:
    from sim.answers.result import Result
    from sim.job.scenario import Scenario
    from sim.sweeps.jobs import How

LOADING_S, COMPILING_S = 1.0, 20.0  # that compiled loops take to be loaded where they are kept, and to be compiled


class Task(NamedTuple):
    """The part of a job that a process needs."""

    digest: str
    scenario: Scenario
    how: How


class Loops:
    """Whether this process simulates by compiled loops: once what is left takes longer than loading or compiling them.

    Where nobody knows what is left, as in a plan, it is taken to be as much as there was.
    """

    def __init__(self) -> None:
        self._are_used = self._fail = False
        self._spent_s = 0.0

    @contextmanager
    def used(self) -> Iterator[None]:
        """Within it, they are used if it is time; what the program around has chosen comes back."""
        before = compiled.in_use()
        asked = compiled.use(before or self._are_used)
        try:
            yield
        finally:
            self._fail |= asked and not compiled.in_use()
            self._are_used &= not self._fail
            compiled.use(before)

    def consider(self, took_s: float, left_s: float) -> None:
        """So many seconds of work that loops can do have been spent, and so many are to come."""
        self._spent_s += took_s
        saved_s = max(self._spent_s, left_s)
        if self._are_used or self._fail or saved_s <= LOADING_S:
            return
        try:
            self._are_used = (saved_s > COMPILING_S or kept.are_kept()) and kept.keep()
        except Exception:  # arrays do as well
            self._fail = True


_loops = Loops()


def work(digests: list[str], chunk: bytes | list[Task], left: float = 0.0) -> list[dict]:
    """The rows of a chunk: columns of sim.sweeps.columns.ANSWERED, and the digest.

    Args:
        digests: of its scenarios.
        chunk: its tasks; in another process pickled, so that what cannot be unpickled is their error and not the process's end.
        left: how many more there are for this process, as far as that is known.
    """
    try:
        tasks = pickle.loads(chunk) if isinstance(chunk, bytes) else chunk
    except Exception as error:
        return [{"digest": digest, "error": f"not to be had by another process: {said(error)}"} for digest in digests]
    with _loops.used(), engine.by_one_thread():
        rows = [row(task) for task in tasks]
    could_s = [found["wall_s"] * at_once.repeats(task.scenario) for task, found in zip(tasks, rows, strict=True)]
    _loops.consider(sum(could_s), left * float(np.mean(could_s)))
    return rows


def row(task: Task) -> dict:
    """The row of one scenario: figures, or an error; and the seconds that it took."""
    start_s = time.monotonic()
    own.SOURCES.update(own.sources(type(task.scenario.protocol)))  # so that mistakes there are said with their place
    found = _tried(task)
    if "error" in found and compiled.in_use():  # which a loop may have caused that does not compile
        compiled.use(False)
        found = _tried(task)
        compiled.use("error" in found)
    return {"digest": task.digest, **found, "wall_s": time.monotonic() - start_s}


def _tried(task: Task) -> dict:
    try:
        how = task.how
        return figures(simulate(task.scenario, how.world, how.replications, within_s=how.within_s))
    except (Exception, SystemExit) as error:
        return {"error": said(error)}


def said(error: BaseException) -> str:
    """An exception in one line."""
    return str(error) if isinstance(error, WrongSetting) else command.failure(error) or own.complaint(error)


def figures(found: Result) -> dict:
    """The columns of an answer."""
    answer = summary.figures(found.scenario, found.world, found.outcome)
    (low, high), step_s = answer["interval"]["samples_per_s"] or (None, None), answer["step_s"]
    idle, servers = answer["idle_fraction"], found.scenario.servers
    memory, runs = gpu_memory.of_job(found.scenario), found.outcome.throughput()
    return {
        "world": found.world,
        "runs_done": found.done.runs,
        "steps_done": found.done.steps,
        "warmup_done": found.done.warmup,
        "samples_per_s": answer["samples_per_s"],
        "samples_per_s_se": interval.standard_error(runs),
        "samples_per_s_runs": json.dumps([float(f"{one:.9g}") for one in runs]),
        "samples_per_s_low": low,
        "samples_per_s_high": high,
        "why_no_interval": answer["interval"]["why_none"],
        **{f"step_{name}_s": value for name, value in step_s.items()},
        "samples_per_step": answer["samples_per_step"]["mean"],
        "samples_per_step_sd": answer["samples_per_step"]["sd"],
        "idle_fraction_servers": float(np.mean(idle[:servers])) if servers else None,
        "idle_fraction_workers": float(np.mean(idle[servers:])) if found.scenario.workers else None,
        "gpu_memory_fraction": memory and memory.share,
        "notes": "; ".join(found.notes),
    }
