"""Unknown algorithms of libraries: all candidates are simulated, and the interval is that of the mixture.

They weigh as the library and the size of its calls say (sim.language.library.prior). The runs simulated are shared out by weight.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.language.library import NCCL, UNKNOWN, prior
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.answers.outcome import Outcome
    from sim.answers.result import Result
    from sim.job.scenario import Scenario

RUNS = 15  # of all together at least: fewer have other shares than the weights
ALONE = 3  # of one candidate that has no other beside it, unless more are asked for
LEAST = 0.01  # weight of a candidate that is simulated


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


def weights(scenario: Scenario) -> dict[str, float]:
    """The weight of each candidate by its name, which sum to 1; hierarchies of one rank a host are rings."""
    found = prior(scenario.sum_library, ITEM_BYTES * scenario.summed_items, scenario.apart)
    whole = sum(found.values())
    kept = {name: weight / whole for name, weight in found.items() if weight / whole >= LEAST}
    return {name: weight / sum(kept.values()) for name, weight in kept.items()}


def of(scenario: Scenario) -> dict[str, Scenario]:
    """The job with each candidate, by its name."""
    found = {}
    for name in weights(scenario):
        taken = "auto" if name == "ring" and scenario.sum_library == NCCL else name  # NCCL takes trees for it, too
        found[name] = replace(scenario, protocol=replace(scenario.protocol, algorithm=taken))
    return found


def shared_out(shares: dict[str, float], runs: int) -> dict[str, int]:
    """Runs by weight, by the largest remainder; at least one of each.

    >>> shared_out({"ring": 0.9, "tree": 0.1}, 15), shared_out({"ring": 0.5, "tree": 0.5}, 8)
    ({'ring': 14, 'tree': 1}, {'ring': 4, 'tree': 4})
    """
    found = {name: max(1, math.floor(runs * share)) for name, share in shares.items()}
    wanting = sorted(shares, key=lambda name: found[name] - runs * shares[name])
    for name in wanting[: max(0, runs - sum(found.values()))]:
        found[name] += 1
    return found


def mixed(scenario: Scenario, one: Callable[..., Result], replications: int | None, within_s: float) -> Result:
    """The result of all candidates together, in numbers of replications by their weights.

    Args:
        one: simulates one of them: one(scenario, replications, within_s).
        replications: of all together, at least RUNS of several candidates; if None, as few as that.
        within_s: seconds for all of them.
    """
    from sim.answers.outcome import join

    jobs, found, shares = of(scenario), {}, weights(scenario)
    asked = shared_out(shares, max(replications or 0, RUNS) if len(jobs) > 1 else replications or ALONE)
    began_s, left = time.monotonic(), sum(asked.values())
    for name, job in jobs.items():
        found[name] = one(job, asked[name], max(0.0, within_s - (time.monotonic() - began_s)) * (asked[name] / left))
        left -= asked[name]
    kept = _in_proportion({name: len(result.step_s) for name, result in found.items()}, asked, shares)
    steps = min(found[name].step_s.shape[1] for name in kept)
    outcome = join([_shortened(found[name].outcome, kept[name], steps) for name in kept])
    speeds = {name: result.samples_per_s for name, result in found.items()}
    wall_s = sum(result.wall_s for result in found.values())
    first = next(iter(found.values()))
    return replace(first, scenario=scenario, runs=sum(asked.values()), outcome=outcome, wall_s=wall_s, speeds=speeds)


def _in_proportion(done: dict[str, int], asked: dict[str, int], shares: dict[str, float]) -> dict[str, int]:
    """Of the runs that there was time for, the same share of all candidates; without those that are less than half a run by their weight.

    >>> _in_proportion({"ring": 2, "tree": 1}, {"ring": 14, "tree": 1}, {"ring": 0.95, "tree": 0.05})
    {'ring': 2}
    """
    share = min(done[name] / asked[name] for name in asked)
    whole = share * sum(asked.values())
    kept = {name: max(1, int(share * asked[name])) for name in asked if share == 1 or shares[name] * whole >= 0.5}
    return kept or {max(shares, key=lambda name: shares[name]): 1}


def _shortened(outcome: Outcome, runs: int, steps: int) -> Outcome:
    return replace(
        outcome,
        step_s=outcome.step_s[:runs, :steps],
        samples=outcome.samples[:runs, :steps],
        idle_fraction=outcome.idle_fraction[:runs],
    )


def said(scenario: Scenario, speeds: dict[str, float]) -> str:
    """The candidates as text, the likeliest first."""
    from sim.answers.summary import number

    shares = weights(scenario)
    named = sorted(speeds, key=lambda name: -shares[name])
    why = f"{scenario.sum_library} is taken to use"
    if len(named) == 1:
        return f"nobody said which algorithm sums; {why} {named[0]}"
    listed = ", ".join(f"{name} {shares[name]:.2f} ({number(speeds[name])} samples/s)" for name in named)
    return f"nobody said which algorithm sums; {why} {listed}: the interval is of all of them"
