"""The constants of a table of steps, with what is known of them before: a maximum a posteriori fit.

A table of few rows does not tell all constants. Each that is known besides has a spread, which counts as a row: a table of four rows
then has a fit, and constants that it does not tell stay as uncertain as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import exp, inf, log
from typing import Any, NamedTuple

import numpy as np

from calibration.scaling import noticed
from calibration.scaling.steps import CONSTANTS, Scaling, slowest_of
from calibration.scaling.table import Table
from sim.base.interval import of_normal
from sim.platform.cluster import INNER_S, Link
from sim.platform.named_links import LINK

SCATTER = 0.05  # standard deviation of the logarithm of a row, by which rows weigh beside what is known before
FEW_ROWS = 3  # that scatter so much, besides those of the table
SOFT_L1 = 2.0  # deviations from which on a row weighs less
FITTED = tuple(CONSTANTS)[:-1]  # by means of rows; `uneven` by their scatter
# NCCL reckons with 18 us for a message of a large ring between hosts, and 50 us for one of a tree (its src/graph/tuning.cc).
# Of a ring's rounds it takes one for each host between hosts; the others within a host cost 6.5 us by NVLink and 11 us by PCIe.
LEAST_ROUND_S, ROUND_S, MOST_ROUND_S, ROUND_SPREAD_S = 18e-6, 35e-6, 50e-6, 8e-6
# 1 or little more suits eight of ten published clusters with rows of two hosts and of more (Azure's K80, P40 and V100, EC2's p3, DGX-2,
# Piz Daint, Xeon, M60). EC2's T4 hosts have 1.3 to 1.8, and DGX A100 would rather have more than 1. Twice as long, if one flow is all that
# a link carries, is the end of what nine in ten are.
BOTH_WAYS, BOTH_WAYS_SPREAD = 1.0, 0.42
CONTENTION_SPREAD = 0.05  # hosts of four T4 GPUs: 0.03 to 0.08
UNEVEN_SPREAD = 0.15  # between fits of a table up to some number of hosts, and up to more
FEW = 1e-9
SCATTERS = 3  # fits in turn, of which each has the scatter that the one before leaves
PASSES = 2  # of a fit; allreduces are counted before each
WIDE = 2.0  # of a logarithm, where next to nothing is known
# Seconds of a byte that published runs reach, and the spread of its logarithm (between hosts WIDE). The table's own steps do not tell
# it: messages that computing hides would then take as long as computing.
BETWEEN_S, WITHIN_S, WITHIN_SPREAD = 0.2e-9, 0.03e-9, 1.0
MOST_TIMES = 1e4  # as long may a byte take
LEAST = 1e-3  # the least deviation of links that is kept
SMALL = 1e-2  # a small change of a link's time
# A limit of a logarithm below which slopes are believed: what two hosts leave unknown of more is less, and to both sides. And how often a
# range is halved.
WELL_KNOWN, HALVINGS = 1.0, 5


class Before(NamedTuple):
    """What is known of a constant before any row.

    Args:
        start, low, high: of the fit; bounds that are equal hold the constant.
        spread: standard deviation; of its logarithm if `logs`. 0 if nothing is known.
    """

    start: float
    low: float
    high: float
    spread: float = 0.0
    logs: bool = False

    def off(self, value: float) -> float:
        """The distance of a value, in deviations."""
        return (log(value / self.start) if self.logs else value - self.start) / self.spread if self.spread else 0.0

    def deviation(self, value: float) -> float:
        """Its standard deviation in its own unit; infinite if nothing is known."""
        return (value * self.spread if self.logs else self.spread) or inf


BETWEEN, WITHIN = (
    Before(byte_s, FEW * byte_s, MOST_TIMES * byte_s, spread, True)
    for byte_s, spread in ((BETWEEN_S, WIDE), (WITHIN_S, WITHIN_SPREAD))
)

# Of 21 published sources a step of two GPUs of a host is 6 % longer than that of one (median), whatever the model. That of four is 0 %
# longer than that of two (16 sources), and that of eight 1 % longer than that of four (13 sources). Neither a ring's share of bytes nor the
# wait for the slowest of n ranks does so: both would grow further. Full hosts take 3 % longer on two hosts than on one (13 sources).
# Growth from one host to two is that of computing or of a link, which goes on growing: the one is as little known as the other.
SEVERAL, APART, DOUBLING = (
    Before(share, FEW, 10.0, spread, True) for share, spread in ((0.05, 1.0), (0.02, WIDE), (0.006, 1.0))
)


def named(link: Link) -> Before:
    """What a network's name tells of a byte between hosts: none is faster than the wire."""
    wire_s, times = 1 / link.bandwidth_bytes_per_s, exp(LINK.mean)
    return Before(times * wire_s, wire_s, MOST_TIMES * wire_s, LINK.deviation, True)


ANY = WITHIN._replace(start=0.5e-9, spread=0.0)  # of a link of which nothing is known


def fit(rows: Table, like: Scaling, within: Before = WITHIN, between: Before = BETWEEN) -> Scaling:
    """The constants with which steps are nearest to measured ones, in ratio, and to what is known before.

    Args:
        like: steps before any fit.
        within, between: what is known of a byte within a host, and between hosts.
    """
    alike = fitted(rows, like, within, between)
    uneven = 0.0 if like.before(rows, between) else _uneven(rows, alike)
    return fitted(rows, replace(alike, uneven=uneven), within, between) if uneven else alike


def fitted(rows: Table, like: Scaling, within: Before = WITHIN, between: Before = BETWEEN) -> Scaling:
    """With the constants of FITTED; all else is as in `like`."""
    from scipy.optimize import least_squares

    before = _before(rows, within, between) | like.before(rows, between)
    free = [name for name in FITTED if before[name].high > before[name].low]
    weights = _weights(rows)
    scale = np.array([before[name].start or before[name].spread for name in free])
    held: dict[str, Any] = {name: before[name].start for name in FITTED}

    def made(at) -> Scaling:
        return replace(like, **held | dict(zip(free, (at * scale).tolist(), strict=True)))

    def off(at, calls, scatter: float) -> np.ndarray:
        found = made(at)
        known = [before[name].off(getattr(found, name)) for name in free]
        return np.concatenate([weights * np.log(found.step_s(rows, calls) / rows.step_s) / scatter, known])

    bounds = [np.array([getattr(before[name], end) for name in free]) / scale for end in ("low", "high")]

    def nearest(at, scatter: float, held: int | None = None):
        """The likeliest constants of all passes, and their cost; one of them is held if its place is given."""
        places, found = [place for place in range(len(free)) if place != held], []
        limits, calls = [end[places] for end in bounds], made(at).calls(rows)
        for _ in range(PASSES):

            def others(values, here=at, calls=calls) -> np.ndarray:
                whole = here.copy()
                whole[places] = values
                return off(whole, calls, scatter)

            told = least_squares(others, at[places], bounds=limits, loss="soft_l1", f_scale=SOFT_L1)
            at = at.copy()
            at[places] = told.x
            calls = made(at).calls(rows)  # which of both links delays a sum may be another one now
            far = off(at, calls, scatter) / SOFT_L1
            found.append((at, float(SOFT_L1**2 * (np.sqrt(1 + far**2) - 1).sum())))
        return min(found, key=lambda told: told[1])

    starts = [np.array([one[name] for name in free]) / scale for one in _starts(rows, like.gradient_bytes, before)]
    at, _ = min((nearest(one, SCATTER) for one in starts), key=lambda told: told[1])
    for _ in range(SCATTERS):
        scatter = _scatter(rows, made(at))
        at, cost = nearest(at, scatter)
    found, freedom = made(at), rows.size - len(free)
    residual = found.misses(rows) * (rows.size / (freedom if freedom > 0 else rows.size)) ** 0.5
    known = {name: before[name].deviation(getattr(found, name)) for name in free}
    covariance = _covariance(found, rows, _scatter(rows, found), known)
    if "between_s" in free:

        def costs(times: float) -> float:
            """More than the likeliest constants, of others with which a byte between hosts takes so many times as long."""
            slower = at.copy()
            slower[free.index("between_s")] *= times
            return nearest(slower, scatter, free.index("between_s"))[1] - cost

        covariance = _no_slower(covariance, found.between_s, costs)
    return replace(found, residual=float(residual), fitted=tuple(free), covariance=covariance)


def _no_slower(covariance: np.ndarray, byte_s: float, costs: Callable[[float], float]) -> np.ndarray:
    """The covariance with a byte between hosts no slower than rows allow.

    Where computing hides messages, no slope says what a byte takes: it would be as unknown as before any row. But rows would show messages
    that took much longer. The end is where the likelihood, with all other constants at their likeliest, is that of a normal law's limit.
    """
    place = [*CONSTANTS].index("between_s")
    end = of_normal(1.0)
    before = end * covariance[place, place] ** 0.5 / byte_s
    low, high = 0.0, before
    if before < WELL_KNOWN or costs(exp(high)) < end**2 / 2:
        return covariance
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if costs(exp(middle)) < end**2 / 2 else (low, middle)
    along = covariance[:, place]  # by regression on it, what is known of all others beside it stays
    return covariance - (1 - (high / before) ** 2) * np.outer(along, along) / covariance[place, place]


def _scatter(rows: Table, found: Scaling) -> float:
    """Standard deviation of the logarithm of a row, as its rows and SCATTER say together."""
    freedom = max(0, rows.size - sum(getattr(found, name) != 0 for name in FITTED))
    return float(((rows.size * found.misses(rows) ** 2 + FEW_ROWS * SCATTER**2) / (freedom + FEW_ROWS)) ** 0.5)


def _starts(rows: Table, gradient_bytes: float, before: dict[str, Before]) -> Iterator[dict[str, float]]:
    """Where a fit begins: at what is known before, and with links as slow as the steps are.

    While computing hides messages, no slope leads to slower links. Of both ends the likelier is kept.
    """
    known = {name: of.start for name, of in before.items()}
    byte_s = float(np.median(rows.step_s)) / gradient_bytes / 2
    yield known
    links = {name: before[name] for name in ("between_s", "within_s") if before[name].high}
    yield known | {name: min(max(byte_s, of.low), of.high) for name, of in links.items()}


def _weights(rows: Table) -> np.ndarray:
    """By row, shape (rows,). Rows of one arrangement are off alike, so that all of them together count as one."""
    _, places, counts = np.unique(
        np.stack([rows.hosts, rows.gpus, rows.most]), axis=1, return_inverse=True, return_counts=True
    )
    return counts[places.ravel()] ** -0.5


def _covariance(found: Scaling, rows: Table, scatter: float, known: dict[str, float]) -> np.ndarray:
    """Of CONSTANTS, by Laplace's approximation: the inverse of what rows and what is known before say together.

    Args:
        scatter: standard deviation of the logarithm of a row.
        known: by constant, its standard deviation before any row; infinite if nothing is known.
    """
    slopes, names = found.slopes(rows) * _weights(rows) / scatter, [*CONSTANTS]
    places, uneven = [names.index(name) for name in known], names.index("uneven")
    told = slopes[places] @ slopes[places].T + np.diag([spread**-2 for spread in known.values()])
    sizes = np.array([max(getattr(found, name), CONSTANTS[name]) for name in known])
    # Of what nothing is told, such as hidden computing: as wide as it is.
    told += np.diag(np.where(np.diag(told) == 0, sizes**-2.0, 0.0))
    scale = np.diag(told) ** -0.5  # constants have other units
    alone = np.linalg.pinv(told * np.outer(scale, scale), hermitian=True) * np.outer(scale, scale)
    covariance = np.zeros((len(names),) * 2)
    covariance[np.ix_(places, places)] = alone
    if not (rows.hosts > 1).any():
        return covariance
    moved = np.zeros(len(names))  # constants, as `uneven` moves, which the means of rows do not tell
    moved[places], moved[uneven] = -alone @ slopes[places] @ slopes[uneven], 1.0
    return covariance + UNEVEN_SPREAD**2 * np.outer(moved, moved)


def _uneven(rows: Table, found: Scaling) -> float:
    """Maximum likelihood of two normal scatters around the fit: every step has one, and the slowest link of a ring another.

    0 where fewer rows than the constants and these two have three hosts or more: two hosts have one link, and tell nothing of others.
    """
    from scipy.optimize import minimize

    if (rows.hosts > 2).sum() < len(FITTED) + 2:
        return 0.0
    off = np.log(found.step_s(rows) / rows.step_s)
    slower, faster = (replace(found, between_s=found.between_s * (1 + far)).step_s(rows) for far in (SMALL, -SMALL))
    by_link = np.where(rows.hosts > 1, np.log(slower / faster) / (2 * SMALL) * slowest_of(rows)[1], 0.0)

    def misses(at) -> float:
        variance = np.exp(2 * at[0]) + (by_link * np.exp(at[1])) ** 2
        return float((np.log(variance) + off**2 / variance).sum())

    whole = float(np.log(max(FEW, off.std())))
    at = minimize(misses, [whole, whole], bounds=[(log(FEW), 0.0)] * 2, method="Nelder-Mead").x
    return float(np.exp(at[1])) if np.exp(at[1]) > LEAST else 0.0


def _before(rows: Table, within: Before, between: Before) -> dict[str, Before]:
    """What is known of each constant; it is held where the rows say nothing of it."""
    apart, together = bool((rows.hosts > 1).any()), bool((rows.most > 1).any())
    each_s = rows.step_s / rows.minibatches
    least_s = float(each_s.min())
    sample_s = least_s / float(rows.minibatch[np.argmin(each_s)]) / 2
    nothing = Before(0.0, 0.0, 0.0)
    alone, near = bool((rows.gpus == 1).any()), bool((rows.hosts == 1).any())
    return {
        "base_s": Before(least_s / 2, 0.0, float(each_s.max())) if np.ptp(rows.minibatch) else nothing,
        "sample_s": Before(sample_s, FEW * sample_s, 100 * sample_s, WIDE, True),
        "several": SEVERAL if alone and rows.gpus.max() > 1 else nothing,
        "apart": APART if apart and near and together else nothing,
        "doubling": DOUBLING if np.ptp(rows.gpus) else nothing,
        "between_s": between if apart else nothing,
        "both_ways": Before(BOTH_WAYS, 1.0, 2.0, BOTH_WAYS_SPREAD, True) if apart else Before(1.0, 1.0, 1.0),
        "contention": Before(0.0, 0.0, 1.0, CONTENTION_SPREAD) if apart and together else nothing,
        "within_s": within if together else nothing,
        "round_s": _round(float(rows.most.max())) if apart else nothing,
        "read_s": Before(read_s, FEW * read_s, 2 * read_s, WIDE, True) if (read_s := noticed.read_s(rows)) else nothing,
    }


def _round(each: float) -> Before:
    """The mean round of a ring over hosts of so many GPUs."""
    start, low, high = (
        (between_s + (each - 1) * INNER_S) / each for between_s in (ROUND_S, LEAST_ROUND_S, MOST_ROUND_S)
    )
    return Before(start, low, high, ROUND_SPREAD_S / each)
