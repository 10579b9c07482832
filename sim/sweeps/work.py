"""The work of a process of a sweep: it simulates a chunk of scenarios, each of which becomes a row, even if it fails."""

from __future__ import annotations

import json
import pickle
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim import command
from sim.answers import summary
from sim.base import interval, own
from sim.base.errors import WrongSetting
from sim.job import gpu_memory
from sim.runs.replications import by_one_thread
from sim.simulation import simulate

if TYPE_CHECKING:
    from sim.answers.result import Result
    from sim.job.scenario import Scenario
    from sim.sweeps.jobs import How


class Task(NamedTuple):
    """The part of a job that a process needs."""

    digest: str
    scenario: Scenario
    how: How


def work(digests: list[str], chunk: bytes | list[Task]) -> list[dict]:
    """The rows of a chunk: columns of sim.sweeps.columns.ANSWERED, and the digest.

    Args:
        digests: of its scenarios.
        chunk: its tasks; in another process pickled, so that what cannot be unpickled is their error and not the process's end.
    """
    try:
        tasks = pickle.loads(chunk) if isinstance(chunk, bytes) else chunk
    except Exception as error:
        return [{"digest": digest, "error": f"not to be had by another process: {said(error)}"} for digest in digests]
    with by_one_thread():
        return [row(task) for task in tasks]


def row(task: Task) -> dict:
    """The row of one scenario: figures, or an error; and the seconds that it took."""
    start_s = time.monotonic()
    own.SOURCES.update(own.sources(type(task.scenario.protocol)))  # so that mistakes there are said with their place
    found = _tried(task)
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
        **{name: answer.get(name) for name in ("tokens_per_s", "usd_per_hour", "usd_per_million_samples")},
        "mfu": answer.get("mfu", {}).get("share"),
        **{f"step_{name}_s": value for name, value in step_s.items()},
        "samples_per_step": answer["samples_per_step"]["mean"],
        "samples_per_step_sd": answer["samples_per_step"]["sd"],
        "idle_fraction_servers": float(np.mean(idle[:servers])) if servers else None,
        "idle_fraction_workers": float(np.mean(idle[servers:])) if found.scenario.workers else None,
        "gpu_memory_fraction": memory and memory.share,
        "notes": "; ".join(found.notes),
    }
