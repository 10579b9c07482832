"""The constants of steps beyond a table (sim.answers.growth.LAW), beside others near them, on the sources for choices alone.

Each table is fitted on its smaller sizes, and its larger ones are simulated as if it said nothing of growth
(experiments.extrapolation.sizes). What is left is the law's; or, as if there were no table, that of sim.answers.ignorance. Its median and
90 % ends have a weighted interval score (J. Bracher et al., Evaluating epidemic forecasts in an interval format, 2021), each source
weighing as one. From the constants in use each in turn is made larger and smaller, as long as the score falls by more than sources differ
by chance: those in use stay where the rows cannot tell. That rule was set after a first run, which took whatever scored lower, had
printed constants that were worse on all rows of these sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import hypot, log
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from calibration.scaling import changes, profiled
from calibration.scaling.table import evenly
from experiments.extrapolation import scores, sizes
from experiments.figures import CHOICE
from experiments.kit import pages
from sim.answers import growth, ignorance
from sim.base.interval import LEVEL, of_normal
from sim.base.progress import Progress, advance
from sim.platform.cluster import Growth
from sim.simulation import simulate
from sim.sweeps import pools

MOST_ROWS = 3  # of a split
MOST_SEEN, MOST_GPUS = 60, 16  # rows that are fitted, and GPUs that are simulated, in a second or two
TIMES = (1.5, 1.2, 1 / 1.2, 1 / 1.5)  # as large a constant is tried
TELLS = 2.0  # standard errors of a mean over sources, by which other constants must be better
DIGITS = 2
TAKES_S = 25
L = TypeVar("L", growth.Law, ignorance.Law)
CERTAIN = Growth(per_doubling=0, simulated=1e-9, unchanged=1e-9, simulated_weight=1)  # nothing is open of larger sizes


class Row(NamedTuple):
    """A step that was left out, in logarithms.

    Args:
        off: measured over simulated seconds.
        largest_off: the same at the largest size that was fitted.
        unchanged: simulated seconds there, of as many samples, over those of this step.
        slower, faster: 90 % limits of all that is not known besides.
    """

    source: str
    sizes: list[changes.Origin]
    doublings: float
    off: float
    largest_off: float
    unchanged: float
    slower: float
    faster: float


def run(out: Path, seed: int = 0) -> None:
    """Print the constants, and what they score."""
    series = [(one, list(filter(_small, sizes.splits(one.rows)))) for one in sizes.series_of(CHOICE)]
    # The first series of each source, which counts once.
    firsts = {one.source: (one, some) for one, some in reversed(series) if some}
    tasks = [(one, split) for one, some in reversed(firsts.values()) for split in some]
    rows: list[Row] = []
    with Progress("fitting and predicting", TAKES_S), pools.of_size(None) as places:
        for future in [places.submit(of_split, *task) for task in tasks]:
            rows += future.result()
            advance(TAKES_S / len(tasks), "a split")
    pages.show(
        f"{len(rows)} rows of {len({row.source for row in rows})} sources for choices",
        *_said("constants", rows, growth.LAW, score),
        *_said("constants without a table", rows, ignorance.LAW, score_alone),
    )


def _said(what: str, rows: Sequence[Row], law: L, score: Callable[[Sequence[Row], L], np.ndarray]) -> Iterator[str]:
    """The constants that are learned, and what they score."""
    found = learned(rows, law, score)
    yield f"{what}: {', '.join(f'{name} {value:g}' for name, value in found._asdict().items())}"
    yield f"weighted interval score {score(rows, found).mean():.4f}; of the constants in use {score(rows, law).mean():.4f}"


def _small(split: sizes.Split) -> bool:
    return split.seen.size <= MOST_SEEN and split.out.gpus.min() <= MOST_GPUS


def of_split(series: sizes.Series, split: sizes.Split) -> list[Row]:
    """Some of the rows that were left out, simulated by a profile that takes larger sizes as known."""
    seen, out = split.seen, split.out.where(split.out.gpus <= MOST_GPUS)
    made = sizes.fitted(series, seen)
    known = made.provenance
    if known is None or known.growth is None:
        return []
    plain = made.known(growth=CERTAIN.model_copy(update={"fewest": known.growth.fewest, "power": known.growth.power}))
    model = sizes.workload(series.model, series.million_parameters)
    told = changes.origins(seen, profiled.refitting(model, known.protocol or "ddp", seen))
    doublings = split.doublings[split.out.gpus <= MOST_GPUS]
    found = []
    for place in evenly(out.size, MOST_ROWS):
        where = int(out.hosts[place]), int(out.most[place]), round(out.minibatch[place]), int(out.minibatches[place])
        answer = sizes.answered(plain, *where)
        largest = growth.at_largest(answer.scenario)
        assert largest is not None  # it is beyond the sizes that were fitted
        there_s = float(simulate(largest, replications=1).step_s.mean()) * growth.by_samples(answer.scenario, largest)
        step_s, low_s, high_s = sizes.seconds(answer)
        off, unchanged, slower = (log(times / step_s) for times in (float(out.step_s[place]), there_s, high_s))
        rest = growth.off_of(largest, known.growth), unchanged, slower, log(step_s / low_s)
        found.append(Row(series.source, told, float(doublings[place]), off, *rest))
    return found


def score(rows: Sequence[Row], law: growth.Law) -> np.ndarray:
    """The mean weighted interval score of each source, shape (sources,)."""
    known = {id(row.sizes): changes.by_law(row.sizes, law) for row in rows}
    found = []
    for row in rows:
        grown = known[id(row.sizes)]
        assert grown is not None  # a table of one size has no row
        told = growth.after(grown, row.doublings, row.unchanged, row.largest_off, law)
        found.append(_score(row, row.off - told.longer, told.slower, told.faster))
    return _by_source(rows, found)


def score_alone(rows: Sequence[Row], law: ignorance.Law) -> np.ndarray:
    """The same where no table is known: of the simulation, and of one whose links are free, so that a step takes as long as before."""
    found = []
    for row in rows:
        slower, free = (of_normal(one) for one in (law.deviation(row.doublings), law.unchanged * row.doublings))
        simulated = _score(row, row.off, slower, law.faster * slower)
        unchanged = _score(row, row.off - row.unchanged, hypot(slower, free), hypot(law.faster * slower, free))
        found.append((simulated + unchanged) / 2)
    return _by_source(rows, found)


def _score(row: Row, off: float, slower: float, faster: float) -> float:
    """Of a prediction that is off by a logarithm, with 90 % limits besides those of the row."""
    slower, faster = hypot(slower, row.slower), hypot(faster, row.faster)
    ends = slower + faster + scores.OUTSIDE * max(0.0, off - slower, -off - faster)
    return (abs(off) / 2 + (1 - LEVEL) / 2 * ends) / 1.5


def _by_source(rows: Sequence[Row], found: Sequence[float]) -> np.ndarray:
    """The mean of each source, shape (sources,)."""
    _, places = np.unique([row.source for row in rows], return_inverse=True)
    return np.bincount(places, found) / np.bincount(places)


def learned(rows: Sequence[Row], law: L, score: Callable[[Sequence[Row], L], np.ndarray]) -> L:
    """The constants near others whose scores are surely lower; the same if there are none."""
    best, better = score(rows, law), True
    while better:
        better = False
        for name, times in product(law._fields, TIMES):
            tried = law._replace(**{name: float(f"{times * getattr(law, name):.{DIGITS}g}")})
            gains = best - (now := score(rows, tried))
            if gains.mean() > TELLS * gains.std(ddof=1) / len(gains) ** 0.5:
                law, best, better = tried, now, True
    return law
