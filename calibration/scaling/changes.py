"""How well a table's smaller sizes predict its larger ones: by fits, and by trivial rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log, log2
from typing import NamedTuple

import numpy as np

from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table, evenly
from sim.answers import growth
from sim.platform.cluster import Growth

MOST_ROWS = 400  # that a rule is tried on, at even distances
MOST_SPREAD, MOST_ODDS = 3.0, 30.0  # sim.base.ranges.LogSpread; a logarithm
MOST_ORIGINS = 12  # sizes up to which a table is fitted again, at even distances
DIGITS = 4


def unchanged_s(seen: Table, asked: Table) -> float:
    """Seconds of the step if nothing changed from the next smaller size with the same batch, and the nearest number of GPUs a host.

    Where that batch was not seen, a sample takes as long as on the largest number of GPUs.

    Args:
        seen: of which one row at least is smaller.
        asked: one row.
    """
    same = seen.where(_smaller(seen, asked) & (seen.batch == asked.batch))
    if not same.size:
        some = seen.where(seen.gpus == seen.gpus.max())
        return float(np.exp(np.log(some.step_s / some.batch).mean()) * asked.batch[0])
    sizes = same.hosts if asked.hosts[0] > 1 else same.gpus
    same = same.where(sizes == sizes.max())
    near = np.abs(same.most - asked.most)
    return float(np.exp(np.log(same.step_s[near == near.min()]).mean()))


def missed_by(rows: Table) -> float | None:
    """Root mean square of the logarithm by which `unchanged_s` misses the rows that have smaller ones; None where no row has."""
    off = []
    for place in evenly(rows.size, MOST_ROWS):
        asked = rows.where(np.arange(rows.size) == place)
        less = _smaller(rows, asked)
        if less.any():
            off.append(log(unchanged_s(rows.where(less), asked) / asked.step_s[0]))
    return float(np.sqrt(np.mean(np.square(off)))) if off else None


def sizes_of(rows: Table) -> np.ndarray:
    """The size of each row, shape (rows,): hosts, or GPUs where there is one number of hosts."""
    return rows.hosts if np.ptp(rows.hosts) else rows.gpus


class Origin(NamedTuple):
    """A size, after the next smaller one.

    Args:
        doublings: between both.
        first: first_host or first_gpu if the smaller one is a host or GPU alone; else empty.
        grown: mean square of the logarithm by which steps grew with a doubling.
        simulated, unchanged: logarithms of measured steps over those of a fit of all smaller sizes, and of the same job at the smaller
            size; shape (rows,), of rows whose batch was seen, or of all if none was. Empty of the first.
    """

    doublings: float
    first: str
    grown: float
    simulated: np.ndarray
    unchanged: np.ndarray


def growth_of(rows: Table, fitted: Callable[[Table], Scaling]) -> Growth | None:
    """How steps grew with sizes, and how well a fit told each size from all smaller ones, beside "nothing changes"; None of one size.

    Args:
        fitted: makes a fit of some of the rows.
    """
    return by_law(origins(rows, fitted))


def origins(rows: Table, fitted: Callable[[Table], Scaling]) -> list[Origin]:
    """Each size of a table after the next smaller one, predicted by all smaller ones: a rolling origin (L. J. Tashman, 2000)."""
    of_rows = sizes_of(rows)
    sizes, unit = np.unique(of_rows), _unit(rows)
    found: list[Origin] = []
    for place in evenly(len(sizes) - 1, MOST_ORIGINS):
        seen, asked = rows.where(of_rows <= sizes[place]), rows.where(of_rows == sizes[place + 1])
        doublings, alike = log2(sizes[place + 1] / sizes[place]), np.isin(asked.batch, seen.batch)
        asked = asked.where(alike | ~alike.any())
        each = [asked.where(np.arange(asked.size) == index) for index in range(asked.size)]
        same = np.array([log(one.step_s[0] / unchanged_s(seen, one)) for one in each])
        simulated = unchanged = np.zeros(0)
        if found:
            made, largest = fitted(seen), _at(asked, sizes[place], falls(seen)[0])
            grown = made.step_s(asked) / made.step_s(largest) * largest.batch / asked.batch
            simulated, unchanged = same - np.log(grown), same
        first = unit if sizes[place] == 1 else ""
        found.append(Origin(doublings, first, float(np.mean(same**2)) / doublings, simulated, unchanged))
    return found


def by_law(known: Sequence[Origin], law: growth.Law = growth.LAW) -> Growth | None:
    """What the sizes of a table say of larger ones. Of two sizes the growth alone is known, and both predictions weigh the same."""
    if not known:
        return None
    squares = [
        (getattr(law, one.first) if one.first else 1.0) ** 2 * min(one.grown, growth.MOST**2 * one.doublings)
        for one in known
    ]
    grown = np.cumsum(squares) / np.arange(1, len(squares) + 1)
    (of_fit, fit_told), (of_same, same_told) = (_told(known, grown, of, law) for of in ("simulated", "unchanged"))
    weight = 1 / (1 + exp(min(law.by_tries * (same_told - fit_told), MOST_ODDS)))
    spreads = {"per_doubling": float(grown[-1]) ** 0.5, "simulated": of_fit, "unchanged": of_same}
    limited = {name: min(of, MOST_SPREAD) for name, of in spreads.items()}
    return Growth(simulated_weight=weight, drifts=len(known) > 1 or known[0].first == "first_gpu", **limited)


def at_largest(rows: Table, found: Scaling) -> dict[str, object]:
    """What sim.platform.cluster.Growth has of the largest size: `offs`, `fewest`, and its `power`.

    Half of what a batch is off by besides the mean is taken for its row's own error, a share that was chosen on T4 hosts.
    """
    last = rows.where(sizes_of(rows) == sizes_of(rows).max())
    off, each = np.log(last.step_s / found.step_s(last)), np.stack([last.most, last.batch], axis=1).astype(int)
    places = np.unique(each, axis=0)
    own = [(float(off[(each == place).all(axis=1)].mean()) + float(off.mean())) / 2 for place in places]
    offs = tuple((*place.tolist(), round(one, DIGITS)) for place, one in zip(places, own, strict=True))
    few, power = falls(rows)
    return {"offs": offs, "fewest": few, "power": round(power, DIGITS)}


def falls(rows: Table) -> tuple[int, float]:
    """Growth.fewest and its power, 0 and 1 where batches do not fall with sizes. What begins with a second host or GPU counts less."""
    of = sizes_of(rows)
    each = [rows.where(of == size) for size in np.unique(of)[-2:]]
    less, few = each[0], each[-1].where(each[-1].batch == each[-1].batch.min())
    if few.batch[0] >= rows.batch[of < of.max()].min(initial=np.inf if len(each) > 1 else 0):
        return 0, 1.0
    less = less.where(less.batch == less.batch.min())
    grown = np.log(few.step_s).mean() - np.log(less.step_s).mean()
    lost = 1 - min(1.0, max(0.0, float(grown / log(few.batch[0] / less.batch[0]))))
    return int(few.batch[0]), 1 - lost * (getattr(growth.LAW, _unit(rows)) if of[of < of.max()].max() == 1 else 1.0)


def _unit(rows: Table) -> str:
    """The constant of growth from a size of one."""
    return "first_host" if np.ptp(rows.hosts) else "first_gpu"


def _told(known: Sequence[Origin], grown: np.ndarray, which: str, law: growth.Law) -> tuple[float, float]:
    """A prediction's scale for a doubling, and the logarithm of its likelihood for the sizes that it told.

    Rows of one size are off alike: many of them tell more than one, and less than as many sizes.
    """
    told = missed = tries = 0.0
    for one, before in zip(known[1:], grown, strict=False):
        off = getattr(one, which)
        weight, scale = len(off) ** 0.5, law.scale(float(before), missed, tries) * one.doublings**0.5
        told += weight * float(law.log_density(off, scale).mean())
        missed, tries = missed + weight * float(np.mean(off**2)) / one.doublings, tries + weight
    return law.scale(float(grown[-1]), missed, tries), told


def _at(rows: Table, size: float, least: int) -> Table:
    """The rows on so many hosts with as many GPUs each; of rows on one host, on so many GPUs. Batches are at least `least`."""
    rows = rows._replace(batch=np.maximum(rows.batch, least))
    if rows.hosts.max() > 1:
        hosts = np.minimum(rows.hosts, size)
        return rows._replace(hosts=hosts, gpus=rows.gpus * hosts / rows.hosts)
    return rows._replace(gpus=np.minimum(rows.gpus, size), most=np.minimum(rows.most, size))


def _smaller(seen: Table, asked: Table) -> np.ndarray:
    return seen.hosts < asked.hosts if asked.hosts[0] > 1 else seen.gpus < asked.gpus
