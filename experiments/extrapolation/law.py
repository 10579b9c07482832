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
from sim.answers.interval import LEVEL, of_normal

if TYPE_CHECKING:
    from experiments.extrapolation.links import Links

LEAST, MOST = 1e-3, 3.0  # of a standard deviation
LABORATORIES = 0.025  # of a step: those that ran one benchmark on the same hosts differ by 1 to 4 %
START = 0.03, 0.02, 0.1, 0.1, 0.1, 0.2
CHANGED = 4  # the column of what steps changed by
DRAWS = 200
HALF = 0.5  # a doubling, from which on one is counted
ROWS = 30  # of a table that count, at most


def learned(rows: Sequence[Held], near: Law | None = None) -> Law:
    """Maximum likelihood of normal logarithms, where tables are a sample of all there may be (random effects).

    Args:
        near: a law that is not far, from which it is found sooner.

    Raises:
        ValueError: no rows.
    """
    if not rows:
        raise ValueError("no rows to learn from")
    tables = [np.array([_features(row) for row in table]) for table in by_source(rows).values()]
    found = plain = _fitted(tables, nan, near)
    if any(np.isfinite(table[:, CHANGED]).any() for table in tables):
        found = _fitted(tables, plain.step_growth, near)
        unseen = max(0.0, plain.step_growth**2 - found.step_growth**2) ** 0.5 / found.by_change
        found = found._replace(unseen=unseen)
    return _two_sided(found, rows)


def _two_sided(found: Law, rows: Sequence[Held]) -> Law:
    """With the sides that would hold LEVEL of the rows, as much of the rest outside of either; a table's rows weigh as one."""
    tables = by_source(rows).values()
    weights = np.concatenate([np.full(len(table), 1 / len(table)) for table in tables])
    off = np.array([_standardised(found, row) for table in tables for row in table])
    slower, faster = (_quantile(side * off, weights, (1 + LEVEL) / 2) / of_normal(1.0) for side in (1, -1))
    return found._replace(slower=slower, faster=faster)


def _standardised(found: Law, row: Held) -> float:
    """The logarithm of measured over predicted, in standard deviations."""
    off, spread = log(row.measured_s / row.predicted_s), found.deviation(row.doublings, row.share, row.changed)
    return off / hypot(spread, row.residual, row.slower if off > 0 else row.faster)


def _quantile(values: np.ndarray, weights: np.ndarray, level: float) -> float:
    order = np.argsort(values)
    place = np.searchsorted(np.cumsum(weights[order]), level * weights.sum())
    return max(LEAST, float(values[order][min(place, len(values) - 1)]))


def _fitted(tables: Sequence[np.ndarray], growth_unseen: float, near: Law | None = None) -> Law:
    """The law by rows of `_features`, as wide on either side.

    Args:
        growth_unseen: of steps, for each doubling, where it is not known how much they change; NaN to learn one for all rows.
    """
    from scipy.optimize import minimize

    alike = np.isnan(growth_unseen)

    def misses(at) -> float:
        step, step_growth, messages, of_rows, growth, by_change = np.exp(at)

        def of(table: np.ndarray) -> float:
            changed = np.zeros(len(table)) if alike else table[:, CHANGED]
            steps = np.where(np.isnan(changed), growth_unseen, np.hypot(step_growth, by_change * changed))
            return _misses(table, step, of_rows, messages, growth, steps)

        return sum(map(of, tables))

    bounds = [(log(LABORATORIES), log(MOST)), *[(log(LEAST), log(MOST))] * (len(START) - 1)]
    start = START
    if near:
        steps = near.of_steps() if alike else near.step_growth
        messages = max(0.0, near.messages**2 - near.own**2) ** 0.5
        start = near.step, steps, messages, near.own, near.growth, near.by_change
    found = minimize(misses, np.log(np.maximum(start, LEAST)), bounds=bounds).x
    step, step_growth, messages, of_rows, growth, by_change = map(float, np.exp(found))
    return Law(step, step_growth, hypot(messages, of_rows), growth, of_rows, 0.0 if alike else by_change)


def _misses(table: np.ndarray, step: float, of_rows: float, messages: float, growth: float, steps: np.ndarray) -> float:
    """Minus twice the logarithm of a table's likelihood: rows have errors of their own, and a table's rows have some in common.

    Args:
        table: of `_features`, shape (rows, 5).
        step, of_rows: of a row's own: of its step, and of its messages.
        messages, growth: of a table's: of messages, and of these by doublings.
        steps: of a table's steps by doublings, shape (rows,).
    """
    off, beyond, share, residual = table.T[:CHANGED]
    own = residual**2 + step**2 + share * of_rows**2
    weight = min(1.0, ROWS / len(off))  # a large table's rows repeat one another
    common = np.column_stack([share**0.5 * messages, share**0.5 * beyond * growth, beyond * steps])
    inner = np.eye(common.shape[1]) + weight * (common.T / own) @ common
    along = weight * (common.T / own) @ off
    alone = weight * float((np.log(own) + off**2 / own).sum())
    return alone + float(np.linalg.slogdet(inner)[1] - along @ np.linalg.solve(inner, along))


def _features(row: Held) -> tuple[float, ...]:
    """The logarithm of measured over predicted, doublings, share of messages, residual, and what steps changed by; NaN if unknown."""
    off, changed = log(row.measured_s / row.predicted_s), nan if row.changed is None else row.changed
    return off, row.doublings, row.share, hypot(row.residual, row.slower if off > 0 else row.faster), changed


def interval_s(row: Held, law: Law) -> tuple[float, float]:
    """Seconds, low and high, between which the row's step is, nine times in ten."""
    spread = law.deviation(row.doublings, row.share, row.changed)
    faster, slower = (
        of_normal(hypot(times * spread, row.residual, side))
        for times, side in ((law.faster, row.faster), (law.slower, row.slower))
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
    common = law.common(row.doublings, row.share, row.changed)
    shared = tuple(
        (str(part), of_normal(law.slower * one), of_normal(law.faster * one)) for part, one in enumerate(common)
    )
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
