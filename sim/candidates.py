"""The algorithm of a library is unknown: all candidates are simulated with equal weights, and the interval is that of the mixture."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.collectives import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.answers.outcome import Outcome
    from sim.answers.result import Result
    from sim.job.scenario import Scenario

CANDIDATES = ("ring", "hierarchical", "halving-doubling", "recursive-doubling", "tree")  # NCCL's, Horovod's and MPI's
RUNS = 3  # of each, unless more are asked for


def unknown(scenario: Scenario) -> bool:
    """Whether the job's algorithm is one that nobody said."""
    return getattr(scenario.protocol, "algorithm", None) == UNKNOWN


def refuse(scenario: Scenario, what: str) -> None:
    """Refuse what only one algorithm can have.

    Raises:
        WrongSetting: nobody said which.
    """
    if unknown(scenario):
        raise WrongSetting("--set algorithm", UNKNOWN, f"a name, because {what} follows one algorithm")


def of(scenario: Scenario) -> dict[str, Scenario]:
    """The job with each candidate, by its name; hierarchies of one rank a host are rings."""
    flat = len(set(scenario.hosts)) == len(scenario.hosts)
    names = [name for name in CANDIDATES if not (flat and name == "hierarchical")]
    return {name: replace(scenario, protocol=replace(scenario.protocol, algorithm=name)) for name in names}


def mixed(
    scenario: Scenario, one: Callable[..., Result], replications: int | None, within_s: float = math.inf
) -> Result:
    """The result of all candidates together, in equal numbers of replications.

    Args:
        one: simulates one of them: one(scenario, replications, within_s).
        replications: of all together; RUNS of each if None.
        within_s: seconds for all of them.
    """
    from sim.answers.outcome import join

    jobs, found = of(scenario), {}
    each = RUNS if replications is None else max(1, round(replications / len(jobs)))
    began_s = time.monotonic()
    for left, (name, job) in zip(range(len(jobs), 0, -1), jobs.items(), strict=True):
        found[name] = one(job, each, max(0.0, within_s - (time.monotonic() - began_s)) / left)
    runs = min(len(result.step_s) for result in found.values())
    steps = min(result.step_s.shape[1] for result in found.values())
    outcome = join([_shortened(result.outcome, runs, steps) for result in found.values()])
    world = "event" if any(result.world == "event" for result in found.values()) else "vector"
    speeds = {name: result.samples_per_s for name, result in found.items()}
    whole = sum(result.wall_s for result in found.values())
    first = next(iter(found.values()))
    return replace(
        first, scenario=scenario, world=world, runs=each * len(jobs), outcome=outcome, wall_s=whole, speeds=speeds
    )


def _shortened(outcome: Outcome, runs: int, steps: int) -> Outcome:
    return replace(
        outcome,
        step_s=outcome.step_s[:runs, :steps],
        samples=outcome.samples[:runs, :steps],
        idle_fraction=outcome.idle_fraction[:runs],
    )


def said(speeds: dict[str, float]) -> str:
    """The candidates as text, the fastest first."""
    from sim.answers.summary import number

    listed = ", ".join(f"{name} {number(speed)}" for name, speed in sorted(speeds.items(), key=lambda one: -one[1]))
    apart = max(speeds.values()) / min(speeds.values())
    return f"the library's algorithm is unknown: {listed} samples/s; they differ by a factor {apart:.2g}, which is in the interval"
