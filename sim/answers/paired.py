"""What is not known of the ratio of two jobs' throughputs: what both share cancels, what each has for itself does not.

Simulated pairs have the same random numbers. Two real runs share the sleeps, the links and the machines, but each has a drift of its
own. The error of a profile differs between kinds of jobs (calibration.estimators.errors).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import hypot, inf, log
from typing import TYPE_CHECKING

import numpy as np

from sim.answers import extrapolation, growth, shares
from sim.answers.extrapolation import Unknown
from sim.answers.quantities import BETWEEN, WITHIN, WORK
from sim.base.tables import flattened

if TYPE_CHECKING:
    from sim.answers.outcome import Outcome
    from sim.answers.result import Result
    from sim.job.scenario import Scenario

UNASKED = (WORK, BETWEEN, WITHIN)  # of a job whose costs are not given
MORE = ("bandwidth_bytes_per_s", "sustained_bytes_per_s", "speed")  # never slow a job where they are more
LESS = ("latency_s", "overhead_s", "gap_s", "background_s", "contention", "switching", "uneven", "both_ways")


def unknown(base: Result, changed: Result) -> tuple[float, float]:
    """By how much the ratio changed over base may be lower and higher than simulated, nine times in ten, besides the runs: logarithms."""
    if all(np.array_equal(getattr(base, name), getattr(changed, name)) for name in ("step_s", "samples")):
        return 0.0, 0.0  # a change of nothing
    return difference(*(of(one.scenario, one.outcome) for one in (base, changed)))


def of_same_numbers(base: Result, changed: Result) -> tuple[float, float]:
    """The same where only numbers that can be put into a job are unknown, and off by the same in both.

    A number that one of them does not have moves the other alone. Of those that a job with costs of its own does not ask about, what was
    not simulated of one of them is taken to cancel.
    """
    known = [_effects(one) for one in (base, changed)]
    lost = [key for key in UNASKED if not all(key in of for of in known)]
    kept = ({key: off for key, off in of.items() if key not in lost} for of in known)
    return difference(*([Unknown(*off, shared=((key, *off),)) for key, off in of.items()] for of in kept))


def possible(base: Scenario, changed: Scenario) -> tuple[float, float]:
    """The least and the largest ratio that a change can have: one whose links and hosts are nowhere slower never costs throughput.

    Nor does a job without induced sleeps. What changes anything else may have any ratio: 0 and infinity.
    """
    differ = {one.name for one in fields(base) if repr(getattr(base, one.name)) != repr(getattr(changed, one.name))}
    ours, theirs = (dict(flattened(one.cluster.model_dump(mode="json"))) for one in (base, changed))
    if differ - {"cluster", "stragglers", "stragglers_name"} or ours.keys() != theirs.keys():
        return 0.0, inf
    signs = {_sign(path.rpartition(".")[2], ours[path], theirs[path]) for path in ours if ours[path] != theirs[path]}
    if "stragglers" in differ:
        signs.add((base.slowed - changed.slowed) or None)
    return (1.0 if signs == {1} else 0.0), (1.0 if signs == {-1} else inf)


def _sign(name: str, before: str, after: str) -> int | None:
    """1 where a job is as fast or faster with the value after, -1 where it is as fast or slower; None if that is not known."""
    if name == "named":
        return 1 if before == str(True) else -1
    if name not in MORE + LESS:
        return None
    return 1 if (float(after) > float(before)) == (name in MORE) else -1


def _effects(result: Result) -> dict[str, tuple[float, float]]:
    """By key; none of a single run."""
    if not result.outcome.ends.keys() - {growth.BEYOND}:
        return {}
    return {one.key: off for one, off in extrapolation.effects(result.scenario, result.outcome)}


def difference(base: Sequence[Unknown], changed: Sequence[Unknown]) -> tuple[float, float]:
    """The same of what is unknown of each.

    >>> difference([Unknown(0.3, 0.3, shared=(("links", 0.3, 0.3),))], [Unknown(0.5, 0.5, shared=(("links", 0.3, 0.3),))])
    (0.4, 0.4)
    """
    ours, theirs = _shared(base), _shared(changed)
    (our_slower, our_faster), (their_slower, their_faster) = _own(base), _own(changed)
    lower, higher = [their_slower, our_faster], [their_faster, our_slower]
    for cause in ours | theirs:
        one, other = (of.get(cause, (0.0, 0.0)) for of in (ours, theirs))
        slower, faster = other[0] - one[0], other[1] - one[1]
        lower.append(max(0.0, slower, -faster))
        higher.append(max(0.0, -slower, faster))
    return hypot(*lower), hypot(*higher)


def of(scenario: Scenario, outcome: Outcome) -> list[Unknown]:
    """All that is unknown of a job beside another one: with the drift that the pairs of runs have in common."""
    costs, share = scenario.costs, shares.of_computing(scenario, shares.mean_step_s(outcome))
    drift = share * log(costs.run.quantile(0.95) / costs.run.quantile(0.05)) / 2 if costs.run.sole is None else 0.0
    return [*extrapolation.unknowns(scenario, outcome), Unknown(drift, drift)]


def _shared(unknowns: Sequence[Unknown]) -> dict[str, tuple[float, float]]:
    return {cause: (slower, faster) for one in unknowns for cause, slower, faster in one.shared}


def _own(unknowns: Sequence[Unknown]) -> tuple[float, float]:
    """What no cause is named of."""
    named = [*_shared(unknowns).values()]
    slower = sum(one.slower**2 for one in unknowns) - sum(slower**2 for slower, _ in named)
    faster = sum(one.faster**2 for one in unknowns) - sum(faster**2 for _, faster in named)
    return max(0.0, slower) ** 0.5, max(0.0, faster) ** 0.5
