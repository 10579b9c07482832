"""How good predictions and their intervals are, beside the rule that nothing changes, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import exp, log, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.extrapolation.held import by_source, mean_error
from experiments.kit import pages
from sim.answers import paired
from sim.base.interval import LEVEL, of_normal

if TYPE_CHECKING:
    from rich.table import Table

    from experiments.extrapolation.held import Held

OUTSIDE = 2 / (1 - LEVEL)  # times as much as the width counts a distance outside of an interval
MATTERS = 0.1  # an error of "nothing changes", from which on a change matters
DRAWS = 10_000  # of sources, with replacement


def score(measured_s: float, low_s: float, high_s: float) -> float:
    """The width, and 2 / (1 - LEVEL) times the distance of what was measured from the nearer end (Gneiting and Raftery, 2007, section 6.2).

    >>> round(score(1.0, 0.5, 2.0), 3), round(score(4.0, 0.5, 2.0), 3)
    (1.386, 15.249)
    """
    outside = max(0.0, log(low_s / measured_s), log(measured_s / high_s))
    return log(high_s / low_s) + OUTSIDE * outside


def ours(rows: Sequence[Held]) -> float:
    """The mean score of the intervals that were answered."""
    return float(np.mean([score(row.measured_s, row.low_s, row.high_s) for row in rows]))


def of_unchanged(rows: Sequence[Held]) -> float:
    """That of "nothing changes", as wide as it misses the sizes that it was told; NaN where it predicts none of them."""

    def around(row: Held) -> float:
        if row.trivial_off is None:
            return nan
        half = of_normal(row.trivial_off)
        return score(row.measured_s, row.trivial_s * exp(-half), row.trivial_s * exp(half))

    return float(np.mean([around(row) for row in rows]))


def covered(rows: Sequence[Held]) -> float:
    """The share of rows that intervals hold."""
    return float(np.mean([row.covered for row in rows]))


def too_slow(rows: Sequence[Held]) -> float:
    """The share of the rows outside of their intervals that take longer; NaN if there are none."""
    missed = [row.off > 0 for row in rows if not row.covered]
    return float(np.mean(missed)) if missed else nan


def where_it_matters(rows: Sequence[Held], matters: bool = True) -> list[Held]:
    """The rows where "nothing changes" is off by more than MATTERS; or the others."""
    return [row for row in rows if (abs(row.trivial_s / row.measured_s - 1) > MATTERS) == matters]


def mean(each: Sequence[float], shown: Callable[[float], str], ratio_to: Sequence[float] = ()) -> str:
    """The mean over sources, or the ratio of two such means, and what other sources might have shown (the bootstrap)."""
    known = np.array([each, ratio_to or np.ones(len(each))])
    known = known[:, np.isfinite(known).all(axis=0)]
    if not known.size:
        return "none"
    drawn = known[:, np.random.default_rng(0).integers(known.shape[1], size=(DRAWS, known.shape[1]))].sum(axis=2)
    low, high = np.quantile(drawn[0] / drawn[1], (0.025, 0.975))
    return f"{shown(known[0].sum() / known[1].sum())} (95 % confidence: {shown(low)} to {shown(high)})"


def marks(split: str, rows: Sequence[Held]) -> Iterator[str]:
    """Lines of the marks of all sources of a split, each source counting once."""
    sources = [*by_source(rows).values()]
    errors = [[mean_error(of, name) for of in sources] for name in ("predicted_s", "trivial_s")]
    held, missed = [covered(of) for of in sources], sum(not row.covered for row in rows)
    share, number = "{:.1%}".format, "{:.2f}".format
    said = f"{len(sources)} further sources, {split}"
    yield f"{said}: 90 % intervals hold of rows {covered(rows):.1%}, {mean(held, share)} on the average of sources"
    yield f"of {missed} misses are slower than the interval: {mean([too_slow(of) for of in sources], share)} on the average of sources"
    scores = [ours(of) for of in sources], [of_unchanged(of) for of in sources]
    unchanged = f"nothing changes, as wide as it misses its seen sizes: {mean(scores[1], number)}"
    yield f"interval score, lower is better: {mean(scores[0], number)}; {unchanged}"
    worse = sum(one > other for one, other in zip(*errors, strict=True))
    yield f"mean error {mean(errors[0], share)}; nothing changes: {mean(errors[1], share)}, better on {worse} sources"
    for matters in (True, False):
        some = [found for of in sources if (found := where_it_matters(of, matters))]
        one, other = ([mean_error(of, name) for of in some] for name in ("predicted_s", "trivial_s"))
        where = f"off by {'more' if matters else 'less'} than {MATTERS:.0%} ({sum(map(len, some))} rows of {len(some)} sources)"
        apart = mean([a - b for a, b in zip(one, other, strict=True)], "{:+.1%}".format)
        told = f"error over its error {mean(one, number, other)}" if matters else f"error less its error {apart}"
        yield f"where nothing changes is {where}: {told}"


class Ratios(NamedTuple):
    """Pairs of rows that were predicted by one fit; arrays of one length, logarithms.

    Args:
        off: the error of the predicted ratio.
        half: its 90 % limit, on the side where it is off.
        outside: whether one of the rows is outside of its own interval.
    """

    off: np.ndarray
    half: np.ndarray
    outside: np.ndarray


def ratios(rows: Sequence[Held]) -> Ratios:
    """The ratio of every two rows of a split, as of --what-if: what both have in common cancels (sim.answers.paired)."""
    found = []
    for one, other in _pairs(rows):
        off = one.off - other.off
        limits = paired.difference(one.unknown, other.unknown)
        found.append((abs(off), limits[int(off > 0)], not (one.covered and other.covered)))
    return Ratios(*np.array(found, float).reshape(-1, 3).T)


def _pairs(rows: Sequence[Held]) -> Iterator[tuple[Held, Held]]:
    splits: dict[tuple[str, str], list[Held]] = {}
    for row in rows:
        for other in splits.setdefault((row.source, row.split), []):
            yield other, row
        splits[row.source, row.split].append(row)


def table(title: str, rows: Sequence[Held], key: Callable[[Held], str]) -> Table:
    """The marks of groups of rows; misses that are slower, of all misses."""

    def width(of: Sequence[Held]) -> float:
        return float(np.exp(np.median([log(row.high_s / row.low_s) / 2 for row in of])))

    def slower(of: Sequence[Held]) -> str:
        missed = [row for row in of if not row.covered]
        return f"{sum(row.off > 0 for row in missed)} of {len(missed)}" if missed else ""

    groups: dict[str, list[Held]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    columns: list[tuple[str, Callable[[tuple[str, list[Held]]], str]]] = [
        ("", lambda item: item[0]),
        ("rows", lambda item: str(len(item[1]))),
        ("mean abs. error", lambda item: f"{mean_error(item[1]):.1%}"),
        ("nothing changes", lambda item: f"{mean_error(item[1], 'trivial_s'):.1%}"),
        ("covered by 90 %", lambda item: f"{covered(item[1]):.0%}"),
        ("slower misses", lambda item: slower(item[1])),
        ("median width", lambda item: f"x or / {width(item[1]):.2f}"),
        ("score", lambda item: f"{ours(item[1]):.2f}"),
        ("nothing changes, of its seen sizes", lambda item: f"{of_unchanged(item[1]):.2f}"),
    ]
    return pages.listed(title, columns, groups.items())
