"""The law of ignorance (sim.answers.ignorance), learned from rows that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, hypot, log, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.extrapolation.held import Held, Unmeasured
from sim.answers import paired
from sim.answers.extrapolation import Unknown
from sim.answers.ignorance import Law
from sim.base.interval import LEVEL, of_normal

if TYPE_CHECKING:
    from experiments.extrapolation.links import Links

LEAST, MOST = 1e-3, 3.0  # of a parameter
START = Law(step=0.05, by_change=0.5, unseen=0.1, faster=0.5)
TURNS = 3
DRAWS = 200
OUTSIDE = 2 / (1 - LEVEL)  # times as much as the width counts a distance outside of an interval
HALF = 0.5  # a doubling, from which on one is counted
NEAR = 1e-3  # of the logarithm, to which parameters are sought


def learned(rows: Sequence[Held], near: Law = START) -> Law:
    """The law whose intervals have the lowest mean score, each source weighing as one.

    In turn: `unseen` has the lowest where nobody knows what any source's steps changed by, and all else where it is known as far as it is.

    Args:
        near: a law that is not far, from which it is found sooner.

    Raises:
        ValueError: no rows.
    """
    if not rows:
        raise ValueError("no rows to learn from")
    tables = [_columns(of) for of in by_source(rows).values()]
    hidden = [table._replace(changed=np.full(len(table.off), nan)) for table in tables]
    known, found = [name for name in Law._fields if name != "unseen"], near
    for _ in range(TURNS):
        found = _lowest(hidden, _lowest(tables, found, known), ["unseen"])
    return found


def _lowest(tables: Sequence[_Columns], near: Law, free: Sequence[str]) -> Law:
    """The law with the lowest mean score of tables, by some of its parameters; the others are those of `near`."""
    from scipy.optimize import minimize

    def law(at: np.ndarray) -> Law:
        return near._replace(**dict(zip(free, np.exp(at).tolist(), strict=True)))

    def mean_score(at: np.ndarray) -> float:
        return float(np.mean([_scores(table, law(at)).mean() for table in tables]))

    start = np.log(np.clip([getattr(near, name) for name in free], LEAST, MOST))
    return law(minimize(mean_score, start, method="Nelder-Mead", options={"xatol": NEAR, "fatol": NEAR**2}).x)


class _Columns(NamedTuple):
    """Of held-out rows; arrays of one length, of logarithms but for doublings. `changed` is NaN where it is not known."""

    off: np.ndarray
    doublings: np.ndarray
    changed: np.ndarray
    slower: np.ndarray
    faster: np.ndarray


def _columns(rows: Sequence[Held]) -> _Columns:
    of_rows = (
        (
            log(row.measured_s / row.predicted_s),
            row.doublings,
            nan if row.changed is None else row.changed,
            hypot(row.residual, row.slower),
            hypot(row.residual, row.faster),
        )
        for row in rows
    )
    return _Columns(*np.array([*of_rows]).T)


def _scores(rows: _Columns, law: Law) -> np.ndarray:
    """Interval scores, shape (rows,): see experiments.extrapolation.scores."""
    changed = law.by_change * np.where(np.isnan(rows.changed), law.unseen, rows.changed)
    variance = (law.step**2 + changed**2) * (1 + rows.doublings)
    slower, faster = (
        of_normal(1.0) * np.sqrt(side**2 * variance + own**2)
        for side, own in ((1.0, rows.slower), (law.faster, rows.faster))
    )
    return slower + faster + OUTSIDE * np.maximum(0.0, np.maximum(rows.off - slower, -faster - rows.off))


def interval_s(row: Held, law: Law) -> tuple[float, float]:
    """Seconds, low and high, between which the row's step is, nine times in ten."""
    spread = law.deviation(row.doublings, row.changed)
    faster, slower = (
        of_normal(hypot(times * spread, row.residual, side))
        for times, side in ((law.faster, row.faster), (1.0, row.slower))
    )
    return row.predicted_s * exp(-faster), row.predicted_s * exp(slower)


def covers(row: Held, law: Law) -> bool:
    """Whether that interval holds what was measured."""
    low, high = interval_s(row, law)
    return low <= row.measured_s <= high


class Ratios(NamedTuple):
    """Pairs of rows that were held out together; arrays of one length, logarithms.

    Args:
        off: the error of the predicted ratio.
        half: its 90 % limit, on the side where it is off.
        cancelled: the share of both rows' variances that the ratio does not have.
        outside: whether one of the rows is outside of its own interval.
    """

    off: np.ndarray
    half: np.ndarray
    cancelled: np.ndarray
    outside: np.ndarray


def ratios(rows: Sequence[Held], law: Law) -> Ratios:
    """The ratio of every two rows of a split, as of --what-if: what one table's rows have in common cancels (sim.answers.paired)."""
    found = []
    for split in dict.fromkeys(row.split for row in rows):
        mine = [row for row in rows if row.split == split]
        one, other = np.triu_indices(len(mine), 1)
        each = np.array([log(row.measured_s / row.predicted_s) for row in mine])
        unknown = [_unknown(row, law) for row in mine]
        outside = np.array([not covers(row, law) for row in mine])
        off = each[one] - each[other]
        limits = [
            paired.difference([unknown[i]], [unknown[j]])[int(far > 0)]
            for i, j, far in zip(one, other, off, strict=True)
        ]
        slower, faster = (np.array([getattr(row, side) for row in unknown]) for side in ("slower", "faster"))
        apart = np.where(off > 0, np.hypot(slower[one], faster[other]), np.hypot(faster[one], slower[other]))
        cancelled = 1 - (np.array(limits) / apart) ** 2
        found.append(Ratios(abs(off), np.array(limits), cancelled, outside[one] | outside[other]))
    return Ratios(*map(np.concatenate, zip(*found, strict=True)))


def _unknown(row: Held, law: Law) -> Unknown:
    """As the product has it (sim.answers.extrapolation), with what is unknown of fitted rows besides."""
    grown = law.common(row.doublings, row.changed)
    shared = (("growth", of_normal(grown), of_normal(law.faster * grown)),)
    low_s, high_s = interval_s(row, law)
    return Unknown(log(high_s / row.predicted_s), log(row.predicted_s / low_s), shared=shared)


def by_source(rows: Sequence[Held]) -> dict[str, list[Held]]:
    """The rows of each source."""
    return {name: [row for row in rows if row.source == name] for name in dict.fromkeys(row.source for row in rows)}


def unchanged(rows: Sequence[Held]) -> float:
    """The error of the trivial rule with each doubling: root mean square of logarithms, of each table and of all."""
    found = []
    for table in by_source(rows).values():
        off = [log(row.measured_s / row.trivial_s) / row.doublings for row in table if row.doublings >= HALF]
        found.append(np.square(off).mean())
    return float(np.sqrt(np.mean(found)))


def left_out(rows: Sequence[Held]) -> dict[str, Law]:
    """The law that all other sources make, for each source."""
    start = learned(rows)
    return {name: learned([row for row in rows if row.source != name], start) for name in by_source(rows)}


def of_candidates(row: Unmeasured, known: Links) -> tuple[float, float]:
    """Between which a step is, nine times in ten, where its algorithm and its link's bandwidth are unknown: the mixture's quantiles.

    Args:
        known: of links by their names alone.
    """
    quantiles = (np.arange(DRAWS) + 0.5) / DRAWS
    from scipy.special import ndtri

    slower = np.maximum(1.0, np.exp(known.mean + known.spread * ndtri(quantiles)))  # nobody beats the wire
    drawn = np.concatenate([row.computing_s + (one - row.computing_s) * slower for one in row.said_s])
    low, high = np.quantile(drawn, (0.05, 0.95))
    return float(low) * (1 - row.reading), float(high) * (1 + row.reading)
