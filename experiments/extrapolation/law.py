"""The law of ignorance (sim.answers.ignorance), learned from rows that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, hypot, log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.extrapolation.held import Held, Unmeasured
from sim.answers.ignorance import Law
from sim.answers.interval import of_normal

if TYPE_CHECKING:
    from experiments.extrapolation.links import Links

LEAST, MOST = 1e-3, 3.0  # of a standard deviation
LABORATORIES = 0.025  # of a step: those that ran one benchmark on the same hosts differ by 1 to 4 %
START = 0.03, 0.02, 0.1, 0.1, 0.1
DRAWS = 200
HALF = 0.5  # a doubling, from which on one is counted
ROWS = 30  # of a table that count, at most


def learned(rows: Sequence[Held]) -> Law:
    """Maximum likelihood of normal logarithms, where tables are a sample of all there may be (random effects).

    Raises:
        ValueError: no rows.
    """
    from scipy.optimize import minimize

    if not rows:
        raise ValueError("no rows to learn from")
    tables = [np.array([_features(row) for row in table]) for table in by_source(rows).values()]

    def misses(at) -> float:
        step, step_growth, messages, of_rows, growth = np.exp(at)
        spreads = np.array([messages, growth, step_growth])
        return sum(_misses(table, step, of_rows, spreads) for table in tables)

    bounds = [(log(LABORATORIES), log(MOST)), *[(log(LEAST), log(MOST))] * (len(START) - 1)]
    found = minimize(misses, np.log(START), bounds=bounds).x
    step, step_growth, messages, of_rows, growth = map(float, np.exp(found))
    return Law(step, step_growth, float(np.hypot(messages, of_rows)), growth, of_rows)


def _misses(table: np.ndarray, step: float, of_rows: float, spreads: np.ndarray) -> float:
    """Minus twice the logarithm of a table's likelihood: rows have errors of their own, and a table's rows have some in common.

    Args:
        table: logarithm of measured over predicted, doublings, share of messages, residual; shape (rows, 4).
        step, of_rows: of a row's own: of its step, and of its messages.
        spreads: of a table's: of messages, of these by doublings, of steps by doublings.
    """
    off, beyond, share, residual = table.T
    own = residual**2 + step**2 + share * of_rows**2
    weight = min(1.0, ROWS / len(off))  # a large table's rows repeat one another
    common = np.column_stack([share**0.5, share**0.5 * beyond, beyond]) * spreads
    inner = np.eye(len(spreads)) + weight * (common.T / own) @ common
    along = weight * (common.T / own) @ off
    alone = weight * float((np.log(own) + off**2 / own).sum())
    return alone + float(np.linalg.slogdet(inner)[1] - along @ np.linalg.solve(inner, along))


def _features(row: Held) -> tuple[float, float, float, float]:
    off = log(row.measured_s / row.predicted_s)
    return off, row.doublings, row.share, hypot(row.residual, row.slower if off > 0 else row.faster)


def interval_s(row: Held, law: Law) -> tuple[float, float]:
    """Seconds, low and high, between which the row's step is, nine times in ten."""
    known = hypot(law.deviation(row.doublings, row.share), row.residual)
    faster, slower = (of_normal(hypot(known, side)) for side in (row.faster, row.slower))
    return row.predicted_s * exp(-faster), row.predicted_s * exp(slower)


def covers(row: Held, law: Law) -> bool:
    """Whether that interval holds what was measured."""
    low, high = interval_s(row, law)
    return low <= row.measured_s <= high


class Ratios(NamedTuple):
    """Pairs of rows that were held out together; arrays of one length, logarithms.

    Args:
        off: the error of the predicted ratio.
        half: its 90 % limit.
        cancelled: the share of both rows' variances that the ratio does not have.
        outside: whether one of the rows is outside of its own interval.
    """

    off: np.ndarray
    half: np.ndarray
    cancelled: np.ndarray
    outside: np.ndarray


def ratios(rows: Sequence[Held], law: Law) -> Ratios:
    """The ratio of every two rows of a split: the common part of one table's rows cancels (sim.answers.ignorance.Law.common)."""
    found = []
    for split in dict.fromkeys(row.split for row in rows):
        mine = [row for row in rows if row.split == split]
        one, other = np.triu_indices(len(mine), 1)
        each = np.array([log(row.measured_s / row.predicted_s) for row in mine])
        common = np.array([law.common(row.doublings, row.share) for row in mine])
        whole = np.array([row.residual**2 + law.deviation(row.doublings, row.share) ** 2 for row in mine])
        whole += np.array([max(row.slower, row.faster) ** 2 for row in mine])  # a ratio of either way
        outside = np.array([not covers(row, law) for row in mine])
        own = whole - (common**2).sum(axis=1)
        variance = own[one] + own[other] + ((common[one] - common[other]) ** 2).sum(axis=1)
        half, cancelled = of_normal(1.0) * np.sqrt(variance), 1 - variance / (whole[one] + whole[other])
        found.append(Ratios(abs(each[one] - each[other]), half, cancelled, outside[one] | outside[other]))
    return Ratios(*map(np.concatenate, zip(*found, strict=True)))


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
    return {name: learned([row for row in rows if row.source != name]) for name in by_source(rows)}


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
