"""What rows of a table show by themselves: input that binds, rows that contradict one another, batches that are no line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table, evenly

NOISE = 1.15  # a factor between two rows, beyond which they are said to contradict one another
GROWN = 1.1  # a factor of a host's rate, below which it is said not to grow with GPUs
MOST_COMPARED = 300  # rows, each with each
MOST_SAID = 3  # pairs of such rows
LINE = 0.2  # a share of a step by which a line over batches may miss it, and half of it may miss all others


class Ceiling(NamedTuple):
    """GPUs of a host beyond which its total rate, samples a second, does not grow."""

    gpus: int
    samples_per_s: float


def ceiling(rows: Table) -> Ceiling | None:
    """That of real data in one host, of the largest batch that shows one; None if rates grow with GPUs, by twice as many at least.

    Where the table does not say which data are real, servers make a ceiling too, and one GPU's rate is no ceiling of two: these are the
    first that sum. From two on a ring's bytes grow by half at most, so that its rates grow.
    """
    said = rows.real is not None
    of = rows.where((rows.hosts == 1) & (rows.real != 0) & (said or ((rows.servers is None) & (rows.gpus > 1))))
    for batch in np.unique(of.batch)[::-1]:
        mine = of.where(of.batch == batch)
        mine = mine.where(np.argsort(mine.gpus))
        rates = mine.gpus * batch / mine.step_s
        for at, gpus in enumerate(mine.gpus):
            if mine.gpus[-1] >= 2 * gpus and (most := rates[at:].max()) <= GROWN * rates[at]:
                return Ceiling(int(gpus), float(most))
    return None


def read_s(rows: Table) -> float:
    """Seconds in which a host reads a sample of real data, at most; 0 where rows do not tell: no ceiling, and no synthetic data."""
    real = rows.where(rows.real != 0) if rows.real is not None else rows
    compared = rows.real is not None and 0 < real.size < rows.size
    return float((real.step_s / real.most / real.batch).min()) if compared or ceiling(rows) else 0.0


def alone(rows: Table) -> tuple[tuple[int, float], ...]:
    """Batches of a minibatch that are no line with the others on the fewest GPUs of one host, and the seconds that each takes there.

    Such are at most a third of the batches; or, of two, the smaller one, which takes more time than the other.
    """
    from scipy.optimize import nnls

    of = rows.where((rows.hosts == 1) & (rows.real != 1))
    of = of.where(of.gpus == of.gpus.min(initial=np.inf))
    batches = np.unique(of.minibatch)
    each_s = np.array([np.exp(np.log((of.step_s / of.minibatches)[of.minibatch == one]).mean()) for one in batches])

    def off(kept: list[int]) -> float:
        """The largest share of a step by which the nearest line misses one of the kept batches."""
        at = np.stack([np.ones(len(kept)), batches[kept]], axis=1) / each_s[kept, None]
        return float(np.abs(at @ nnls(at, np.ones(len(kept)))[0] - 1).max())

    whole = [*range(len(batches))]
    if len(whole) < 2 or off(whole) < LINE:
        return ()
    if len(whole) == 2:
        return ((int(batches[0]), float(each_s[0])),)
    for several in range(1, len(whole) // 3 + 1):
        odd = min(combinations(whole, several), key=lambda some: off([one for one in whole if one not in some]))
        if off([one for one in whole if one not in odd]) < LINE / 2:
            return tuple((int(batches[one]), float(each_s[one])) for one in odd)
    return ()


def notes(rows: Table, found: Scaling) -> Iterator[str]:
    """In lines, with what the fit makes of it."""
    for batch, seconds in found.alone:
        line_s = found.base_s + found.sample_s * batch
        yield (
            f"batch {batch} is no line with the others: it takes {seconds:.3g} s alone, and their line says {line_s:.3g} s. "
            "It is predicted on its own, and tells the line nothing"
        )
    yield from _falling(rows)
    wrong = [*contradictions(rows, found)]
    yield from wrong[:MOST_SAID]
    if wrong[MOST_SAID:]:
        yield f"{len(wrong) - MOST_SAID} more pairs of rows contradict one another"
    if found.read_s and rows.real is not None and not rows.real.all():
        yield f"a host reads {1 / found.read_s:,.0f} samples/s of real data; without reading in the model, data are synthetic"
    elif (top := ceiling(rows)) is not None:
        yield (
            f"the total rate of a host stops growing at {top.gpus} GPU{'s' * (top.gpus > 1)} ({top.samples_per_s:,.0f} samples/s): input? "
            "It is taken as a ceiling of each host. To know, measure the same runs on synthetic data, as rows of this table with a column "
            "data (real, synthetic)"
        )


def _falling(rows: Table) -> Iterator[str]:
    """The two rows between which steps fall most with more GPUs, each of as many samples or more, in a line."""
    kept = evenly(rows.size, MOST_COMPARED)
    some = rows.where(kept)
    alike = [some.minibatches, *(one for one in some[6:] if one is not None)]
    more = np.logical_and.reduce([one[:, None] <= one for one in (some.hosts, some.batch)]) & (
        some.gpus[:, None] < some.gpus
    )
    more &= np.logical_and.reduce([one[:, None] == one for one in alike])
    times = more * some.step_s[:, None] / some.step_s
    one, other = (int(kept[at]) for at in np.unravel_index(times.argmax(), times.shape))
    if times.max() > NOISE:
        yield (
            f"steps fall from {rows.step_s[one]:.3g} s (row {one + 1}) to {rows.step_s[other]:.3g} s (row {other + 1}) with more GPUs, "
            "which no protocol explains: is batch that of one GPU, or a row wrong?"
        )


def contradictions(rows: Table, found: Scaling) -> Iterator[str]:
    """Rows of one job that take other times, and rows of a larger batch that take less time, in lines."""
    said_s, odd = found.step_s(rows), {batch for batch, _ in found.alone}
    job = [rows.hosts, rows.gpus, rows.most, rows.minibatches, *(one for one in rows[6:] if one is not None)]
    _, places = np.unique(np.stack(job), axis=1, return_inverse=True)
    order = np.lexsort((rows.step_s, rows.batch, places.ravel()))
    for one, other in pairwise(order):
        if places.ravel()[one] != places.ravel()[other] or odd & {*rows.minibatch[[one, other]].tolist()}:
            continue
        times = rows.step_s[other] / rows.step_s[one]
        if times > NOISE if rows.batch[one] == rows.batch[other] else times < 1 / NOISE:
            two = " and ".join(
                f"row {at + 1} (batch {rows.batch[at]:.0f}: {rows.step_s[at]:.3g} s, {said_s[at]:.3g} by the fit)"
                for at in (one, other)
            )
            where = f"{rows.hosts[one]:.0f} x {rows.most[one]:.0f}"
            yield f"on {where}, {two} contradict one another: the fit takes both; mend or leave out the one that is wrong"
