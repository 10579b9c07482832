"""How good intervals are, beside those of trivial rules: interval scores, and how much too wide or narrow they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.extrapolation import law
from experiments.extrapolation.held import mean_error
from experiments.kit import pages
from sim.base.interval import LEVEL, of_normal

if TYPE_CHECKING:
    from rich.table import Table

    from experiments.extrapolation.held import Held
    from sim.answers.ignorance import Law

FACTORS = np.exp(np.linspace(0.005, 1.5, 300))  # that are tried as one for all rows


class Scores(NamedTuple):
    """Mean interval scores of a source's rows, in logarithms of seconds; NaN where a rule has no interval.

    Args:
        ours: of the law of the other sources.
        unchanged, ideal: of "nothing changes" and ideal scaling, whose intervals are as wide as they miss the rows that were fitted.
    """

    ours: float
    unchanged: float
    ideal: float

    @property
    def best(self) -> bool:
        """Whether ours is the lowest of those that there are."""
        return bool(self.ours < np.nanmin([self.unchanged, self.ideal, np.inf]))


def score(measured_s: float, low_s: float, high_s: float) -> float:
    """The width, and 2 / (1 - LEVEL) times the distance of what was measured from the nearer end (Gneiting and Raftery, 2007, section 6.2).

    >>> round(score(1.0, 0.5, 2.0), 3), round(score(4.0, 0.5, 2.0), 3)
    (1.386, 15.249)
    """
    outside = max(0.0, log(low_s / measured_s), log(measured_s / high_s))
    return log(high_s / low_s) + law.OUTSIDE * outside


def of(rows: Sequence[Held], known: Law) -> Scores:
    """Those of the rows of a source."""
    ours = [score(row.measured_s, *law.interval_s(row, known)) for row in rows]
    unchanged = [_around(row.measured_s, row.trivial_s, row.trivial_off) for row in rows]
    ideal = [_around(row.measured_s, row.ideal_s, row.ideal_off) for row in rows]
    return Scores(*(float(np.mean(one)) for one in (ours, unchanged, ideal)))


def _around(measured_s: float, said_s: float, off: float | None) -> float:
    if off is None:
        return nan
    half = of_normal(off)
    return score(measured_s, said_s * exp(-half), said_s * exp(half))


def of_one_factor(sources: Sequence[Sequence[Held]]) -> tuple[float, float]:
    """The factor that would have had the lowest mean score of all rows' predictions, chosen with them in view, and that score."""
    offs = [np.array([abs(log(row.measured_s / row.predicted_s)) for row in rows]) for rows in sources]

    def mean(half: float) -> float:
        return float(np.mean([np.mean(2 * half + law.OUTSIDE * np.maximum(0.0, off - half)) for off in offs]))

    means = [mean(log(factor)) for factor in FACTORS]
    return float(FACTORS[np.argmin(means)]), min(means)


def too_wide(rows: Sequence[Held], known: Law) -> float:
    """Times as wide as would have held LEVEL of the rows the intervals are, in logarithms: more than 1 is too wide."""
    needed = []
    for row in rows:
        low_s, high_s = law.interval_s(row, known)
        off = log(row.measured_s / row.predicted_s)
        needed.append(off / log(high_s / row.predicted_s) if off > 0 else off / log(low_s / row.predicted_s))
    return 1 / max(float(np.quantile(needed, LEVEL, method="inverted_cdf")), 1e-3)


def shown(split: str, sources: dict[str, list[Held]], laws: dict[str, Law]) -> Iterator[str | Table]:
    """Interval scores beside those of trivial rules, each with an interval as wide as it misses the rows that were fitted."""
    heads = ("", "score", "nothing changes", "ideal scaling", "ideal, mean abs. error", "too wide by")
    made = pages.table(f"Interval scores in logarithms, lower is better: further sources, {split}", *heads)
    found = {name: of(rows, laws[name]) for name, rows in sources.items()}
    for name, one in found.items():
        rows = sources[name]
        cells = ("none" if np.isnan(score) else f"{score:.2f}" for score in one)
        wide = f"x {too_wide(rows, laws[name]):.2f}"
        made.add_row(name, *cells, f"{mean_error(rows, 'ideal_s'):.1%}", wide)
    yield made
    ours, unchanged, ideal = (_mean(column) for column in zip(*found.values(), strict=True))
    factor, least = of_one_factor([*sources.values()])
    lowest = sum(one.best for one in found.values())
    yield f"lower than both rules on {lowest} of {len(found)}; mean score {ours} (nothing changes: {unchanged}, ideal scaling: {ideal})"
    yield f"one factor for all these rows, chosen on them: {factor:.2f}, mean score {least:.2f}"


def _mean(of_sources: Sequence[float]) -> str:
    """Of those that there are, as text."""
    known = [one for one in of_sources if not np.isnan(one)]
    return f"{np.mean(known):.2f}" if known else "none"
