"""Into how many parts to cut sparse variables: Parallax's search, over whatever says how long a step takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sim.answers.summary import Search
from sim.base.progress import Progress, advance
from sim.job.scenario import Scenario
from sim.simulation import simulate


def search(step_s: Callable[[int], float], start: int, least: int = 1) -> Search:
    """Search for the best number of parts as Parallax does (Kim et al., EuroSys 2019, section 3.2).

    Double the parts from `start` while steps get shorter, then halve them from there while they do. Fit t(P) = b / P + a (P - 1) + c,
    of work that parts share and a cost of each part. Take the best whole number by it, between the fewest and the most that were
    tried. With fewer than three points, take the best of them.

    Args:
        step_s: mean seconds of a step with so many parts.
        start: first number; in Parallax the number of machines.
        least: fewest parts that are possible.
    """
    start = max(start, least)
    tried = {start: step_s(start)}
    for next_to in (lambda parts: 2 * parts, lambda parts: parts // 2):
        last, parts = start, next_to(start)
        while parts >= least:
            tried[parts] = step_s(parts)
            if tried[parts] >= tried[last]:
                break
            last, parts = parts, next_to(parts)
    if len(tried) < 3:
        return Search(min(tried, key=tried.__getitem__), tried, None)
    a, b, c = fit(tried)
    candidates = range(min(tried), max(tried) + 1)
    return Search(min(candidates, key=lambda parts: b / parts + a * (parts - 1) + c), tried, (a, b, c))


def fit(tried: dict[int, float]) -> tuple[float, float, float]:
    """a, b, c of t(P) = b / P + a (P - 1) + c by least squares."""
    parts = np.array(list(tried), float)
    columns = np.stack([parts - 1, 1 / parts, np.ones_like(parts)], axis=1)
    a, b, c = np.linalg.lstsq(columns, np.array(list(tried.values())), rcond=None)[0]
    return float(a), float(b), float(c)


def searched(scenario: Scenario, step_s: Callable[[Scenario], float] | None = None, machines: int = 0) -> Search:
    """The search over runs of a scenario, from as many parts as there are machines and at least one a server.

    Args:
        step_s: mean seconds of a step of a scenario; simulated by the event world if not given.
        machines: that ranks sit on; the cluster's if not given.
    """
    start, least = machines or len(set(scenario.hosts)), scenario.servers
    if step_s:
        return search(lambda parts: step_s(replace(scenario, variable_partitions=parts)), start, least)
    with Progress("searching for variable partitions"):
        return search(lambda parts: _simulated_step_s(scenario, parts), start, least)


def _simulated_step_s(scenario: Scenario, parts: int) -> float:
    step_s = float(simulate(replace(scenario, variable_partitions=parts), "event", 1).step_s.mean())
    advance(label=f"{parts} parts: {step_s * 1e3:.4g} ms a step")
    return step_s
