"""The columns of a sweep's rows, one row a scenario: what was asked, all of it, and what came of it. Units are in the names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

SETTING = "set_"  # before the name of a protocol's setting, of which each has a column

ASKED = {
    "digest": "string",  # of the scenario and how it is simulated: a row is known again by it
    "protocol": "string",
    "workload": "string",
    "workload_digest": "string",
    "model": "string",  # JSON, of a workload that does not come with the simulator
    "workers": "int64",
    "servers": "int64",
    "servers_on": "string",
    "placement": "string",
    "variable_partitions": "int64",
    "steps": "int64",
    "warmup": "int64",
    "batch": "int64",
    "seed": "uint64",
    "stragglers": "string",
    "law": "string",  # JSON
    "cluster": "string",
    "network": "string",  # between hosts
    "cluster_told": "string",  # JSON, without costs
    "test_size": "int64",
    "evaluate_every": "int64",
    "sleeps_of": "int64",
    "world_asked": "string",
    "runs_asked": "int64",
    "within_s": "float64",
    "assumed": "string",  # the options that were chosen because nobody gave them
}
ANSWERED = {
    "world": "string",
    "runs_done": "int64",
    "steps_done": "int64",
    "warmup_done": "int64",
    "samples_per_s": "float64",
    "samples_per_s_se": "float64",  # standard error over the replications; what is unknown of costs and links is not in it
    "samples_per_s_runs": "string",  # JSON, of each replication: those of one number have the same random numbers in every row
    "samples_per_s_low": "float64",  # of the 90 % interval of one more run, which contains what is unknown of costs and links
    "samples_per_s_high": "float64",
    "why_no_interval": "string",
    "tokens_per_s": "float64",  # these four where they are known (sim.answers.worth)
    "usd_per_hour": "float64",
    "usd_per_million_samples": "float64",
    "mfu": "float64",
    "step_mean_s": "float64",
    "step_p50_s": "float64",
    "step_p95_s": "float64",
    "step_p99_s": "float64",
    "samples_per_step": "float64",
    "samples_per_step_sd": "float64",
    "idle_fraction_servers": "float64",  # the mean of master or servers
    "idle_fraction_workers": "float64",
    "gpu_memory_fraction": "float64",  # of the fullest GPU's, that a worker takes as far as is known; above 1 it does not fit
    "notes": "string",
    "error": "string",
    "wall_s": "float64",
}


def kinds(jobs: Iterable) -> dict[str, str]:
    """The type of each column, in order, for these jobs (sim.sweeps.jobs.Job).

    A setting has the type that holds its values in all possible scenarios.
    """
    jobs, values = list(jobs), cast("dict[str, set[str]]", {})
    for job in jobs:
        for name, value in job.asked.items():
            if name.startswith(SETTING):
                known = values.setdefault(name, set())
                if job.scenario is not None and value is not None:
                    known.add(type(value).__name__)
    return ASKED | {name: _kind(types) for name, types in sorted(values.items())} | ANSWERED


def _kind(types: set[str]) -> str:
    if types and types <= {"int", "float"}:
        return "int64" if types == {"int"} else "float64"
    return "bool" if types == {"bool"} else "string"


def fitted(value: object, kind: str) -> object:
    """A value as a column of this type holds it; None if it cannot, as a number of thousands of digits that a user gave."""
    if value is None:
        return None
    try:
        return _AS[kind](value)
    except (ValueError, OverflowError):
        return None


def _integer(least: int, most: int):
    return lambda value: int(value) if least <= int(value) <= most else None


def _number(value: Any) -> float | None:
    return None if math.isnan(float(value)) else float(value)


_AS = {
    "string": lambda value: str(value).encode(errors="backslashreplace").decode(),
    "bool": lambda value: value if isinstance(value, bool) else None,
    "int64": _integer(-(2**63), 2**63 - 1),
    "uint64": _integer(0, 2**64 - 1),
    "float64": _number,
}
