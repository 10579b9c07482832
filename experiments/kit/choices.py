"""Would a prediction have chosen right: which of two is faster, by how much, and does P(target) say how often targets are met."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from math import sqrt
from typing import NamedTuple

import numpy as np

from sim.answers.extrapolation import Unknown
from sim.plans.candidates import Figures

BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


@dataclass(frozen=True)
class Choice:
    """A configuration that was measured and predicted.

    Args:
        group: of those that are counted together.
        job: what may not be chosen: the model, and the sleeps. Of a group, those of one job are compared.
        measured: samples a second of each run.
        predicted: samples a second.
        noise: share by which two runs of it differ.
        interval: low and high of the prediction; None if it has none.
        fitted: whether the prediction was fitted on it.
        runs: samples a second of each simulated run; runs of one number have the same random numbers in all of a group.
        unknown: of it, beside another one (sim.answers.paired).
    """

    group: str
    name: str
    measured: tuple[float, ...]
    predicted: float
    noise: float
    interval: tuple[float, float] | None = None
    fitted: bool = False
    runs: tuple[float, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    job: str = ""

    def beside(self, other: Choice) -> bool:
        """Whether one may choose between the two, and the prediction knows one of them at most."""
        return (self.group, self.job) == (other.group, other.job) and not (self.fitted and other.fitted)

    @property
    def real(self) -> float:
        """Samples a second, the mean of runs."""
        return sum(self.measured) / len(self.measured)


class Pair(NamedTuple):
    """Two of one group that differ by more than the noise."""

    faster: Choice
    slower: Choice

    @property
    def right(self) -> bool:
        """Whether the prediction picks the faster one."""
        return self.faster.predicted > self.slower.predicted

    def __str__(self):
        real, said = self.faster.real / self.slower.real, self.faster.predicted / self.slower.predicted
        return f"{self.faster.group}: {self.faster.name} is {real:.2f} times {self.slower.name}, predicted {said:.2f}"


def pairs(choices: list[Choice]) -> list[Pair]:
    """All pairs of a group that differ by more than the noise, and were not both fitted."""
    found = []
    for one, other in combinations(choices, 2):
        if not one.beside(other):
            continue
        faster, slower = (one, other) if one.real > other.real else (other, one)
        if faster.real / slower.real - 1 > max(one.noise, other.noise):
            found.append(Pair(faster, slower))
    return found


class Ratio(NamedTuple):
    """The coverage of measured differences by intervals.

    Args:
        pairs: of two runs, one of each configuration.
        covered: the number of covered pairs.
        width: the median factor from the middle of an interval to its end.
    """

    pairs: int
    covered: int
    width: float


def ratios(choices: list[Choice]) -> dict[str, Ratio]:
    """Of all pairs of a group whose runs are known, the first run beside the first, the second beside the second."""
    held: dict[str, list[tuple[bool, float]]] = {}
    for one, other in combinations(choices, 2):
        if not (one.beside(other) and one.runs and other.runs):
            continue
        low, high = difference(one, other)
        wide = sqrt(high / low)
        for real, beside in zip(one.measured, other.measured, strict=False):
            held.setdefault(one.group, []).append((low <= beside / real <= high, wide))
    return {
        group: Ratio(len(of), sum(inside for inside, _ in of), float(np.median([wide for _, wide in of])))
        for group, of in held.items()
    }


def difference(base: Choice, changed: Choice) -> tuple[float, float]:
    """Low and high of the changed one's samples a second over the base's, as `sim.run --what-if` has them."""
    from sim.answers import paired
    from sim.base import interval
    from sim.studies.what_if import widened

    runs = min(len(base.runs), len(changed.runs))
    pairs = np.array(changed.runs[:runs]) / np.array(base.runs[:runs])
    several = runs > 1 and float(np.ptp(pairs)) > 0
    middle = interval.middle(pairs)
    pair = interval.of_runs(pairs) if several else None
    return widened(pair, middle, *paired.difference(base.unknown, changed.unknown)) or (middle, middle)


class Bin(NamedTuple):
    """Targets whose probability lies in a range.

    Args:
        targets: how many; each run of a configuration is one.
        said: mean of their probabilities.
        met: share of them that was met.
        error: standard error of that share, if `said` is true.
    """

    low: float
    high: float
    targets: int
    said: float
    met: float
    error: float


def planted(choices: list[Choice]) -> list[tuple[float, bool]]:
    """The probability of each target, and whether a run met it: targets lie between measured throughputs of the group, with the same job.

    They are between those of other configurations: a target that depends on the judged runs would be met too often.
    """
    found = []
    for one in choices:
        if one.interval is None or one.fitted:
            continue
        figures = Figures(one.interval[0], one.predicted, one.interval[1])
        others = sorted(other.real for other in choices if other is not one and one.beside(other))
        for target in (sqrt(low * high) for low, high in pairwise(others)):
            found += [(figures.chance(target), run >= target) for run in one.measured]
    return found


def reliability(targets: list[tuple[float, bool]]) -> list[Bin]:
    """The targets by their probability; ranges without any are left out."""
    found = []
    for low, high in pairwise(BINS):
        inside = [one for one in targets if low <= one[0] < high or (one[0] == high == 1.0)]
        if inside:
            said = sum(chance for chance, _ in inside) / len(inside)
            met = sum(was for _, was in inside) / len(inside)
            found.append(Bin(low, high, len(inside), said, met, sqrt(said * (1 - said) / len(inside))))
    return found
