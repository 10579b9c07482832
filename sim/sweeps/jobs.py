"""The jobs of a sweep: each a scenario and how it is simulated, with a digest by which its row is known again; and that row."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import pickle
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim import command, options, simulated_options
from sim.answers import summary
from sim.base import interval, own
from sim.base.errors import WrongSetting
from sim.job import gpu_memory
from sim.platform import other_sizes
from sim.runs.replications import by_one_thread
from sim.simulation import simulate
from sim.sweeps.results import ASKED, SETTING

if TYPE_CHECKING:
    from sim.answers.result import Result
    from sim.job.scenario import Scenario


@dataclass(frozen=True)
class How:
    """The manner of simulating a scenario.

    Args:
        world: auto, event or engine.
        replications: their number; the usual number if None.
        within_s: seconds after which it is answered from the runs so far.
    """

    world: str = "auto"
    replications: int | None = None
    within_s: float = math.inf


@dataclass(frozen=True)
class Job:
    """A row of the sweep, before it is answered.

    Args:
        asked: its columns for the question; among them the digest.
        how: the manner of simulating it.
        scenario: None if it is impossible.
        error: the reason for that.
    """

    asked: dict
    how: How
    scenario: Scenario | None = None
    error: str | None = None

    @property
    def digest(self) -> str:
        """A digest of the scenario, and of how it is simulated."""
        return self.asked["digest"]


def of_scenario(scenario: Scenario, how: How, assumed: str | None = None) -> Job:
    """The job of a scenario.

    Args:
        assumed: the options that nobody gave, in a line; the same scenario has the same digest without them.
    """
    costs = {name: costs.model_dump(mode="json") for name, costs in scenario.cluster.costs.items()}
    asked = _with_digest(_told(scenario) | _of_how(how), costs)
    return Job(asked | {"assumed": assumed}, how, scenario)


def of_options(given: argparse.Namespace, read: options.Readers) -> Job:
    """The job that options describe, though there may be no such scenario.

    Raises:
        WrongSetting: a time, or a number of replications, that cannot be.
    """
    how = How(given.world, options.replications(given, None), simulated_options.within_s(given))
    try:
        scenario = simulated_options.scenario(given, read)
        return of_scenario(scenario, how, assumed=simulated_options.assumed(given, read, scenario.workers))
    except WrongSetting as error:
        plain = {name: value for name, value in vars(given).items() if name in ASKED}
        plain["workers"] = options.DEFAULT_WORKERS if given.workers is None else given.workers  # no number if all
        settings = {f"{SETTING}{name}": value for name, _, value in (one.partition("=") for one in given.set)}
        return Job(_with_digest(plain | _of_how(how) | settings), how, error=str(error))


def _told(scenario: Scenario) -> dict:
    """All of a scenario, a column for each thing: settings have one each, laws, models and clusters are JSON."""
    told = summary.told(scenario, "event")
    told |= {"cluster": scenario.cluster.name, "cluster_told": told["cluster"], "workload_digest": told.pop("digest")}
    told |= {"network": other_sizes.told(scenario.cluster.network)}
    settings = {f"{SETTING}{name}": value for name, value in told.pop("settings").items()}
    del told["training"]  # of real runs
    return {name: json.dumps(value) if isinstance(value, dict) else value for name, value in told.items()} | settings


def _of_how(how: How) -> dict:
    within_s = None if how.within_s == math.inf else how.within_s
    return {"world_asked": how.world, "runs_asked": how.replications, "within_s": within_s}


def _with_digest(asked: dict, *besides) -> dict:
    text = json.dumps([asked, *besides], sort_keys=True)
    return asked | {"digest": hashlib.sha256(text.encode()).hexdigest()[:16]}


def work(digests: list[str], chunk: bytes | list[Job]) -> list[dict]:
    """The rows of a chunk: columns of sim.sweeps.results.ANSWERED, and the digest; a scenario that fails has one, too.

    Args:
        digests: of its jobs.
        chunk: the jobs; in another process pickled, so that what cannot be unpickled is their error and not the process's end.
    """
    try:
        jobs = pickle.loads(chunk) if isinstance(chunk, bytes) else chunk
    except Exception as error:
        return [{"digest": digest, "error": f"not to be had by another process: {said(error)}"} for digest in digests]
    with by_one_thread():
        return [row(job) for job in jobs]


def row(job: Job) -> dict:
    """The row of one scenario: figures, or an error; and the seconds that it took."""
    start_s, how = time.monotonic(), job.how
    assert job.scenario
    own.SOURCES.update(own.sources(type(job.scenario.protocol)))  # so that mistakes there are said with their place
    try:
        found = figures(simulate(job.scenario, how.world, how.replications, within_s=how.within_s))
    except (Exception, SystemExit) as error:
        found = {"error": said(error)}
    return {"digest": job.digest, **found, "wall_s": time.monotonic() - start_s}


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
