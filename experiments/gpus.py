"""Which share of a GPU's peak does training reach, and how large is the error for a model that nobody measured?

The share of a model is three times the operations of its forward pass (forward and backward), times its published rate, over the
peak in the format of its arithmetic (`sim/platform/catalogue/gpus.toml`). Rates of one model on one GPU count once, by the mean of their
logarithms. The share of a model that was not measured lies around the mean of a GPU's models, as those of measured models do. Their
spread is pooled over all GPUs, because each has few models, and widened by Student's t. The mean of a GPU that was not measured also
lies around the mean of GPUs.

Rates of GPUs that came later (`LATER`) differ more from model to model: a B200 trains ResNet-50 no faster than an H200. The law of all
rates is that of these GPUs, and of the tensor cores of GPUs without a rate; the older GPUs keep the spread of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.gpu_rates import BATCHES, LATER, OF_HOSTS, RATES, Published
from experiments.kit import pages
from sim.base.interval import LEVEL, of_normal
from sim.model.nominal import TRAINING

if TYPE_CHECKING:
    from rich.table import Table


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


SAME_CHIP = {"V100-32GB": "V100"}  # with more memory: as fast, though nobody published a rate


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
    from sim.model import workload
    from sim.platform import catalogue

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


def learned() -> Learned:
    """What the catalogue has: older GPUs by their own rates, later ones and those that nobody measured by all."""
    older, whole = learn(cells()), learn(cells([*RATES, *LATER]))
    known = whole.known | older.known
    alike = {
        (name, precision): of
        for name, chip in SAME_CHIP.items()
        for (gpu, precision), of in known.items()
        if gpu == chip
    }
    return Learned(known | alike, whole.others | {"fp32": older.others["fp32"]})


def _widened(freedom: int) -> float:
    """Student's t over the normal quantile: a deviation that was estimated from few is uncertain itself."""
    from scipy.stats import t

    return float(t.ppf((1 + LEVEL) / 2, freedom)) / of_normal(1.0)


def held_out(by: str, rates: Sequence[Published] = RATES) -> Iterator[tuple[Cell, float, float]]:
    """Each cell with the share and spread that those without its `model`, or its `gpu`, say."""
    everything = cells(rates)
    for out in sorted({getattr(cell, by) for cell in everything}):
        learned = learn([cell for cell in everything if getattr(cell, by) != out])
        for cell in (cell for cell in everything if getattr(cell, by) == out):
            known = learned.known.get((cell.gpu, cell.precision))
            if by == "gpu" or known:
                yield cell, *(known or learned.others[cell.unit])


def coverage(by: str, rates: Sequence[Published] = RATES) -> tuple[int, int, float]:
    """Number of held-out shares that their 90 % interval covers, number of all, and their mean error as a factor."""
    off = [(abs(cell.log - np.log(middle)), of_normal(spread)) for cell, middle, spread in held_out(by, rates)]
    return sum(far <= half for far, half in off), len(off), float(np.exp(np.mean([far for far, _ in off])))


class Beside(NamedTuple):
    """A published rate of one GPU, and the prediction of it: samples a second.

    Args:
        low, mid, high: of the prediction, with its 90 % interval.
    """

    cell: Cell
    published: float
    low: float
    mid: float
    high: float

    @property
    def held(self) -> bool:
        """Whether the interval covers it."""
        return self.low <= self.published <= self.high


def beside(by: str) -> list[Beside]:
    """The rates of `LATER`, each beside what all rates without its `gpu`, or without its `model`, say."""
    later = {(one.gpu, one.precision, one.model): one for one in LATER}
    found = []
    for cell, middle, spread in held_out(by, [*RATES, *LATER]):
        if rate := later.get((cell.gpu, cell.precision, cell.model)):
            mid, factor = rate.samples_per_s * middle / np.exp(cell.log), np.exp(of_normal(spread))
            found.append(Beside(cell, rate.samples_per_s, *(float(mid * times) for times in (1 / factor, 1, factor))))
    return found


def on_hosts() -> list[Beside]:
    """The rates of `OF_HOSTS`, each beside what the product says of the host by its name: allreduce, 4 steps of one run."""
    from sim import Scenario, protocols, simulate
    from sim.model import workload
    from sim.platform import cluster

    found = []
    for one in OF_HOSTS:
        placed, model = cluster.read(one.gpu), workload.NAMED[one.model].model_copy(update={"precision": one.precision})
        job = Scenario(
            protocols.make("allreduce"),
            model,
            placed.hosts[0].ranks,
            batch=BATCHES[one.model],
            steps=4,
            warmup=1,
            cluster=placed,
        )
        result = simulate(job, replications=1)
        low, high = result.interval or (result.samples_per_s, result.samples_per_s)
        cell = Cell(one.gpu, one.precision, one.model, 0.0)
        found.append(Beside(cell, one.samples_per_s, low, result.samples_per_s, high))
    return found


def run(folder: Path, seed: int) -> None:
    """Print the shares, predictions of others, and how often these held; no pictures."""
    pages.show(_shares())
    for by, what in (("model", "Without all rates of a model, it"), ("gpu", "Without all rates of a GPU, it")):
        held, several, off = coverage(by)
        pages.show(
            f"{what} is off by a factor {off:.2f} on average, within its 90 % interval {held} of {several} times"
        )
    pages.show(_later())
    for by, what in (("model", "without that model"), ("gpu", "without that GPU")):
        rows = beside(by)
        pages.show(
            f"Of {len(rows)} rates of later GPUs {sum(one.held for one in rows)} are within the 90 % interval {what}"
        )
    pages.show(_whole_hosts(on_hosts()))


def _shares() -> Table:
    from rich.table import Table

    everything, law = cells([*RATES, *LATER]), learned()
    table = Table(title="Share of the peak rate that training reaches")
    for column in ("GPU", "format", "models", "in the middle", "spread", "factor"):
        table.add_column(column, no_wrap=column != "models")
    for (gpu, precision), (middle, spread) in law.known.items():
        models = [c for c in everything if (c.gpu, c.precision) == (SAME_CHIP.get(gpu, gpu), precision)]
        listed = ", ".join(f"{c.model} {np.exp(c.log):.2f}" for c in models)
        table.add_row(gpu, precision, listed, f"{middle:.2f}", f"{spread:.2f}", f"{np.exp(of_normal(spread)):.1f}")
    for unit, (middle, spread) in law.others.items():
        table.add_row("any other", unit, "", f"{middle:.2f}", f"{spread:.2f}", f"{np.exp(of_normal(spread)):.1f}")
    return table


def _later() -> Table:
    from rich.table import Table

    table = Table(title="Later GPUs: published samples a second beside predictions by the rates of others")
    for column in ("GPU", "format", "model", "published", "without this GPU", "", "without this model", ""):
        table.add_column(column, no_wrap=True)
    for of_gpu, of_model in zip(_in_order(beside("gpu")), _in_order(beside("model")), strict=True):
        cell = of_gpu.cell
        table.add_row(
            cell.gpu, cell.precision, cell.model, f"{of_gpu.published:,.0f}", *_said(of_gpu), *_said(of_model)
        )
    return table


def _whole_hosts(rows: list[Beside]) -> Table:
    from rich.table import Table

    table = Table(title="Hosts of 8 GPUs: published samples a second beside predictions by name")
    for column in ("host", "format", "model", "published", "predicted", ""):
        table.add_column(column, no_wrap=True)
    for one in rows:
        cell = one.cell
        table.add_row(cell.gpu, cell.precision, cell.model, f"{one.published:,.0f}", *_said(one))
    return table


def _in_order(rows: list[Beside]) -> list[Beside]:
    return sorted(rows, key=lambda one: one.cell[:3])


def _said(one: Beside) -> tuple[str, str]:
    return f"{one.mid:,.0f} ({one.low:,.0f} to {one.high:,.0f})", "" if one.held else "outside"
