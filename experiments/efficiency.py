"""How close are steps to a target at a batch that nobody tried, and how often does their interval hold?

Tables are MLPerf's convergence points (figures/mlperf_convergence.csv). Of each model the largest batch is held out, and predicted by the
law of the others (`sim.efficiency`), beside two rules: samples stay the same, and steps stay the same. The spreads that tables share are
learned on half of the models, from every smaller part of their tables; errors and intervals of the other half are the report.

Then the same of other runs, whose gradient noise scale was measured: see experiments.noise_scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments import figures, noise_scales
from experiments.batches import Predicted, predicted
from experiments.kit import pages
from sim.efficiency import law

if TYPE_CHECKING:
    from rich.table import Table

LEARN, REPORT = "learn", "report"
MEANS = law.PUBLISHED._replace(of_runs=0.0)  # rows are means of many seeds
BANDS = (0.0, 0.5, 1.0, 2.0, math.inf)  # doublings beyond the table


class Model(NamedTuple):
    """A model's convergence points.

    Args:
        batches: ascending, shape (batches,); the last is held out.
        steps: of each, in a unit that is the same within a model.
        spread: standard deviation of the logarithm from seed to seed, pooled over batches.
        half: LEARN or REPORT.
    """

    name: str
    batches: tuple[float, ...]
    steps: tuple[float, ...]
    spread: float
    half: str


def models() -> list[Model]:
    """All, as their file has them."""
    table = figures.table("mlperf_convergence")
    found = []
    for name, rows in table.groupby("model", sort=False):
        steps = (rows["epochs"] / rows["batch"]).tolist()
        assert rows["use"].tolist() == ["fit"] * (len(rows) - 1) + ["held"]
        spread = float(np.sqrt(np.average(rows["spread"] ** 2, weights=rows["seeds"] - 1)))
        found.append(Model(str(name), tuple(rows["batch"].astype(float)), tuple(steps), spread, rows["half"].iloc[0]))
    return found


def predict(model: Model, count: int, at: int, others: law.Published = MEANS) -> Predicted:
    """One batch of a model, by its `count` smallest."""
    found = law.fit(model.batches[:count], model.steps[:count], others)
    pairs = list(zip(model.batches, model.steps, strict=True))
    return predicted(model.name, str(count), found, pairs[count - 1], pairs[at])


def held_out(several: Iterable[Model], others: law.Published = MEANS) -> list[Predicted]:
    """The largest batch of each, by all the others."""
    return [predict(one, len(one.batches) - 1, len(one.batches) - 1, others) for one in several]


def from_parts(several: Iterable[Model], others: law.Published = MEANS) -> Iterator[Predicted]:
    """Every batch by every part of its table that is smaller."""
    for one in several:
        for count in range(2, len(one.batches)):
            yield from (predict(one, count, at, others) for at in range(count, len(one.batches)))


def learn(several: Sequence[Model]) -> law.Published:
    """The spreads that tables share: about the law, see `_shared`; and that of doublings, the most likely under Student's t."""
    from scipy.optimize import minimize_scalar
    from scipy.stats import t

    wholes = [(one, law.fit(one.batches, one.steps)) for one in several]
    variances = [_squares(one, whole) / (len(one.batches) - 2) for one, whole in wholes]
    spread, freedom = _shared(np.array(variances), np.array([len(one.batches) - 2 for one in several]))
    shared = law.Published(spread, freedom, 0.0, 0.0)
    errors, scales, doublings, counts_as, weights = np.array(list(_parts(several, shared))).T

    def unlikely(a_doubling: float) -> float:
        return -float(np.sum(weights * t.logpdf(errors, counts_as, scale=np.hypot(scales, a_doubling * doublings))))

    best = minimize_scalar(unlikely, bounds=(0.0, 2.0), method="bounded")
    of_runs = float(np.median([one.spread for one in several]))
    return shared._replace(a_doubling=float(best.x), of_runs=of_runs)


def _parts(several: Sequence[Model], shared: law.Published) -> Iterator[tuple[float, float, float, float, float]]:
    """Of every batch by every part of its table that is smaller: error, deviation, doublings beyond the part, degrees of freedom, weight.

    Models weigh about the same, whatever the number of their parts.
    """
    for one in several:
        for count in range(2, len(one.batches)):
            fitted = law.fit(one.batches[:count], one.steps[:count], shared)
            for batch, steps in zip(one.batches[count:], one.steps[count:], strict=True):
                error = math.log(fitted.steps(batch).median / steps)
                yield error, fitted.deviation(batch), fitted.beyond(batch), fitted.freedom, 1 / len(one.batches) ** 2


def _squares(model: Model, whole: law.Law) -> float:
    """Squared residuals of a table."""
    pairs = zip(model.batches, model.steps, strict=True)
    return sum(math.log(steps / whole.steps(batch).median) ** 2 for batch, steps in pairs)


def _shared(variances: np.ndarray, freedom: np.ndarray) -> tuple[float, float]:
    """The spread of a typical table, and the degrees of freedom that it counts as, the most likely.

    A table's variance over the typical one has an F distribution: G. Smyth, "Linear models and empirical Bayes methods for assessing
    differential expression", Statistical Applications in Genetics and Molecular Biology 3(1), 2004, section 4.

    Args:
        variances: of residuals, shape (tables,).
        freedom: of them, shape (tables,).
    """
    from scipy.optimize import minimize
    from scipy.stats import f

    def unlikely(logs: np.ndarray) -> float:
        variance, counts_as = np.exp(logs)
        return -float(np.sum(f.logpdf(variances / variance, freedom, counts_as) - np.log(variance)))

    bounds = [(-20.0, 5.0), (math.log(0.5), math.log(1e4))]
    first = np.log([np.median(variances), 2.0])
    variance, counts_as = np.exp(minimize(unlikely, first, method="Nelder-Mead", bounds=bounds).x)
    return math.sqrt(variance), float(counts_as)


def run(folder: Path, seed: int) -> None:
    """Print the errors of the held-out batches, how often intervals held, and what was learned."""
    everything = models()
    halves = {half: [one for one in everything if one.half == half] for half in (LEARN, REPORT)}
    learned = learn(halves[LEARN])
    names = ", ".join(one.name for one in halves[LEARN])
    pages.show(
        f"Learned on {len(halves[LEARN])} models ({names}): spread {learned.spread:.3f} about the law, "
        f"as {learned.freedom:.1f} degrees of freedom, {learned.a_doubling:.3f} for each doubling beyond a table "
        f"(in the product: {law.PUBLISHED.spread:g}, {law.PUBLISHED.freedom:g} and {law.PUBLISHED.a_doubling:g}); "
        f"from seed to seed {learned.of_runs:.3f} (in the product: {law.PUBLISHED.of_runs:g})"
    )
    for half, title in ((REPORT, "Models that nothing was learned on"), (LEARN, "Models that spreads were learned on")):
        rows = held_out(halves[half])
        pages.show(_table(f"{title}: steps at the largest batch, which is held out", rows), _summary(rows))
    pages.show(_bands(list(from_parts(halves[REPORT]))))
    _of_pollux()


def _of_pollux() -> None:
    """The runs of Pollux, in two ways."""
    names = ", ".join(noise_scales.LEARN)
    pages.show(
        f"From a single batch and its noise scale: {noise_scales.learn():.3f} for each doubling, learned on {names} "
        f"(in the product: {law.PUBLISHED.by_noise:g}, as {law.PUBLISHED.freedom_by_noise:g} degrees of freedom)"
    )
    rows = list(noise_scales.by_law((*noise_scales.REPORT, *noise_scales.LEARN)))
    title = "Pollux's models, of which nothing was learned for the law: steps at the largest batch, by all smaller ones"
    pages.show(_table(title, rows, "target"), _summary(rows))
    halves = {
        "that nothing was learned on": noise_scales.REPORT,
        "that its spread was learned on": noise_scales.LEARN,
    }
    for said, models_of in halves.items():
        rows = list(noise_scales.by_noise(models_of))
        title = f"Models {said}: steps at larger batches, by the smallest batch and its noise scale"
        bias = math.expm1(float(np.mean([one.error / one.beyond for one in rows])))
        pages.show(_table(title, rows, "target"), f"{_summary(rows)}; {bias:+.1%} for each doubling")


def _error(name: str) -> Callable[[Predicted], str]:
    return lambda one: f"{math.exp(getattr(one, name)) - 1:+.1%}"


def _table(title: str, rows: Sequence[Predicted], by: str = "fitted") -> Table:
    columns: list[tuple[str, Callable[[Predicted], str]]] = [
        ("model", lambda one: one.model),
        (by, lambda one: one.by),
        ("batch", lambda one: f"{one.batch:,.0f}"),
        ("doublings", lambda one: f"{one.beyond:.2f}"),
        ("predicted", _error("error")),
        ("90% interval", lambda one: f"{math.expm1(-one.half_width):+.0%} to {math.expm1(one.half_width):+.0%}"),
        ("same samples", _error("same_samples")),
        ("same steps", _error("same_steps")),
        ("", lambda one: "" if one.held else "outside"),
    ]
    return pages.listed(title, columns, rows)


def _summary(rows: Sequence[Predicted]) -> str:
    of_law, samples, steps = (
        mean([getattr(one, name) for one in rows]) for name in ("error", "same_samples", "same_steps")
    )
    inside = sum(one.held for one in rows)
    return (
        f"Mean error: predicted {of_law:.1%}, same samples {samples:.1%}, same steps {steps:.1%}; "
        f"{inside} of {len(rows)} within the 90% interval"
    )


def _bands(rows: Sequence[Predicted]):
    title = (
        "Of the same models, every batch by every smaller part of its table: mean errors by doublings beyond the part"
    )
    table = pages.table(title, "doublings", "predicted", "law", "same samples", "same steps", "within 90%")
    for low, high in pairwise(BANDS):
        if not (some := [one for one in rows if low < one.beyond <= high]):
            continue
        errors = [mean([getattr(one, name) for one in some]) for name in ("error", "same_samples", "same_steps")]
        held = sum(one.held for one in some)
        said = f"{low:g} to {high:g}" if high < math.inf else f"above {low:g}"
        table.add_row(said, str(len(some)), *(f"{error:.1%}" for error in errors), f"{held} ({held / len(some):.0%})")
    return table


def mean(errors: Sequence[float]) -> float:
    """The mean size of errors in logarithms, as a share."""
    return float(np.expm1(np.mean(np.abs(errors))))
