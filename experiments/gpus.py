"""Which share of a GPU's peak does training reach, and how large is the error for a model that nobody measured?

The share of a model is three times the operations of its forward pass (forward and backward), times its published rate, over the
peak in the format of its arithmetic (`sim/catalogue/gpus.toml`). Rates of one model on one GPU count once, by the mean of their
logarithms. The share of a model that was not measured lies around the mean of a GPU's models, as those of measured models do. Their
spread is pooled over all GPUs, because each has few models, and widened by Student's t. The mean of a GPU that was not measured also
lies around the mean of GPUs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.gpu_rates import RATES, Published
from experiments.kit import pages
from sim.answers.interval import LEVEL, of_normal
from sim.model.nominal import TRAINING


class Cell(NamedTuple):
    """One model on one GPU in one format; `log` is the logarithm of its share, shape ()."""

    gpu: str
    precision: str
    model: str
    log: float

    @property
    def unit(self) -> str:
        """The unit that computes: tensor cores have shares of their own."""
        return "fp32" if self.precision == "fp32" else "tensor"


class Learned(NamedTuple):
    """Shares with their spreads: standard deviations of the logarithm by which a 90 % interval holds as often as it says.

    Args:
        known: by GPU and format.
        others: by unit, of GPUs of which no rate is known.
    """

    known: dict[tuple[str, str], tuple[float, float]]
    others: dict[str, tuple[float, float]]


def cells(rates: Sequence[Published] = RATES) -> list[Cell]:
    """The shares of all models."""
    found = defaultdict(list)
    for one in rates:
        found[one.gpu, one.precision, one.model].append(np.log(share(one)))
    return [Cell(*key, float(np.mean(logs))) for key, logs in found.items()]


def share(rate: Published) -> float:
    """A published rate as a share of the peak."""
    from sim import catalogue
    from sim.model import workload

    peak = getattr(catalogue.find("gpus", rate.gpu), rate.precision).peak
    return TRAINING * (workload.NAMED[rate.model].flops_per_sample or 0.0) * rate.samples_per_s / peak


def learn(seen: Sequence[Cell]) -> Learned:
    """The prediction of shares from those of other models and GPUs."""
    logs, models = defaultdict(list), defaultdict(set)
    for cell in seen:
        logs[cell.gpu, cell.precision].append(cell.log)
        models[cell.unit].add(cell.model)
    means = {key: float(np.mean(values)) for key, values in logs.items()}
    squares = sum(float(np.square(cell.log - means[cell.gpu, cell.precision])) for cell in seen)
    variance = squares / (len(seen) - len(means))
    few = _widened(sum(len(names) - 1 for names in models.values()))
    known = {key: (np.exp(mean), few * np.sqrt(variance * (1 + 1 / len(logs[key])))) for key, mean in means.items()}
    others = {}
    for unit in models:
        of_gpus = [mean for (_, precision), mean in means.items() if (precision == "fp32") == (unit == "fp32")]
        between = np.var(of_gpus, ddof=1) * (1 + 1 / len(of_gpus)) if len(of_gpus) > 1 else variance
        others[unit] = np.exp(np.mean(of_gpus)), few * np.sqrt(variance + between)
    return Learned(known, others)


def _widened(freedom: int) -> float:
    """Student's t over the normal quantile: a deviation that was estimated from few is uncertain itself."""
    from scipy.stats import t

    return float(t.ppf((1 + LEVEL) / 2, freedom)) / of_normal(1.0)


def held_out(by: str) -> Iterator[tuple[Cell, float, float]]:
    """Each cell with the share and spread that those without its `model`, or its `gpu`, say."""
    everything = cells()
    for out in sorted({getattr(cell, by) for cell in everything}):
        learned = learn([cell for cell in everything if getattr(cell, by) != out])
        for cell in (cell for cell in everything if getattr(cell, by) == out):
            known = learned.known.get((cell.gpu, cell.precision))
            if by == "gpu" or known:
                yield cell, *(known or learned.others[cell.unit])


def coverage(by: str) -> tuple[int, int, float]:
    """Number of held-out shares that their 90 % interval covers, number of all, and their mean error as a factor."""
    off = [(abs(cell.log - np.log(middle)), of_normal(spread)) for cell, middle, spread in held_out(by)]
    return sum(far <= half for far, half in off), len(off), float(np.exp(np.mean([far for far, _ in off])))


def run(folder: Path, seed: int) -> None:
    """Print the shares, predictions of others, and how often these held; no pictures."""
    from rich.table import Table

    everything = cells()
    learned = learn(everything)
    table = Table(title="Share of the peak rate that training reaches")
    for column in ("GPU", "format", "models", "in the middle", "spread", "factor"):
        table.add_column(column, no_wrap=column != "models")
    for (gpu, precision), (middle, spread) in learned.known.items():
        models = [c for c in everything if (c.gpu, c.precision) == (gpu, precision)]
        listed = ", ".join(f"{c.model} {np.exp(c.log):.2f}" for c in models)
        table.add_row(gpu, precision, listed, f"{middle:.2f}", f"{spread:.2f}", f"{np.exp(of_normal(spread)):.1f}")
    for unit, (middle, spread) in learned.others.items():
        table.add_row("any other", unit, "", f"{middle:.2f}", f"{spread:.2f}", f"{np.exp(of_normal(spread)):.1f}")
    pages.show(table)
    for by, what in (("model", "Without all rates of a model, it"), ("gpu", "Without all rates of a GPU, it")):
        held, several, off = coverage(by)
        pages.show(
            f"{what} is off by a factor {off:.2f} on average, within its 90 % interval {held} of {several} times"
        )
