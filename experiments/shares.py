"""Which share of a GPU's peak does training reach, by class of model: convolutions, encoders, decoders with fused attention?

The logarithm of a share is the mean of its class, what its GPU adds to it, what the source adds on that GPU (its code, settings and
network), and what a row adds; in a decoder of less than `LARGE` parameters also a slope by its size, because small kernels use a GPU less.
How much less depends on the code, so that each source has a slope of its own; and on a GPU that is `YOUNG` codes differ by more.
The deviations are those of restricted maximum likelihood. A prediction is of a source that nobody measured, and so is its
spread; of a GPU that nobody measured, too, in `others`. The form was chosen on sources of figures/decoders.toml that are `choice`. Those
that were held out were predicted once, and are in the fit since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import t

from experiments import figures
from sim.base.interval import LEVEL, of_normal
from sim.model import workload
from sim.model.nominal import TRAINING
from sim.platform import catalogue
from sim.platform.gpu import LARGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

SAME_CHIP = {"A100-80GB": "A100", "A100-80GB-PCIe": "A100", "H200": "H100", "GB200": "B200"}
YOUNG = ("B200",)  # chips for which code was still being tuned when the rates were published
ENCODERS = ("bert_base", "bert_large")


class Learned(NamedTuple):
    """What a class of models reaches on tensor cores.

    Args:
        share: of the peak, by chip, and its spread: standard deviation of the logarithm for a new source, by which a 90 % interval holds.
        others: of a chip that nobody measured.
        slope: of the logarithm by that of the parameters over `LARGE`, below it; and its spread for a new source.
    """

    share: dict[str, tuple[float, float]]
    others: tuple[float, float]
    slope: tuple[float, float]


def decoders() -> pd.DataFrame:
    """Rows of figures/decoders.csv, with `log`, the logarithm of their share, and `chip`."""
    rows = figures.table("decoders")
    operations = 6e6 * rows.million_multiplied + 12 * rows.layers * rows.width * rows.sequence
    peak = rows.gpu.map(lambda name: catalogue.find("gpus", name).bf16.peak)
    return rows.assign(log=np.log(rows.tokens_per_s_gpu * operations / peak), chip=rows.gpu.replace(SAME_CHIP))


def learn(rows: pd.DataFrame, by_size: bool = True) -> Learned:
    """The law of shares from rows with `chip`, `source`, `log` and, by size, `million_multiplied`.

    Rows that are alike but for what a row adds tell of the law by their mean, and of that by their differences.
    """
    small = np.minimum(np.log(rows.million_multiplied * 1e6 / LARGE), 0.0) if by_size else 0.0
    groups = rows.assign(small=small).groupby(["chip", "source", "small"])
    apart, squares = len(rows) - len(groups), float(((rows.log - groups.log.transform("mean")) ** 2).sum())
    alike = groups.log.agg(["mean", "size"]).reset_index()
    chips, small, log = (alike[name].to_numpy() for name in ("chip", "small", "mean"))
    known = np.column_stack([np.ones(len(log)), small])[:, : 1 + by_size]
    uneven = [small, np.isin(chips, YOUNG)] if by_size else []  # by which sources differ besides
    same_chip = chips[:, None] == chips
    same_source = same_chip & (alike.source.to_numpy()[:, None] == alike.source.to_numpy())

    def covariance(deviations):
        of_chip, of_source, of_row, *of_uneven = np.exp(2 * deviations)
        more = sum(of * np.outer(by, by) for of, by in zip(of_uneven, uneven, strict=True))
        return of_chip * same_chip + (of_source + more) * same_source + np.diag(of_row / alike["size"])

    def unlikely(deviations):
        """The negative restricted logarithmic likelihood, but for a constant."""
        inverse = np.linalg.inv(covariance(deviations))
        precision = known.T @ inverse @ known
        off = log - known @ np.linalg.solve(precision, known.T @ inverse @ log)
        signs = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(inverse)[1]
        within = apart * deviations[2] + 0.5 * squares * np.exp(-2 * deviations[2])
        return within + 0.5 * (signs + off @ inverse @ off) + 0.01 * np.square(deviations + 2).sum()

    deviations = minimize(unlikely, np.full(3 + len(uneven), -1.5), method="Nelder-Mead").x
    inverse = np.linalg.inv(covariance(deviations))
    of_chip, of_source, of_row, of_slope, of_young = [*np.exp(2 * deviations), 0.0, 0.0][:5]
    errors = np.linalg.inv(known.T @ inverse @ known)
    mean = errors @ known.T @ inverse @ log
    few = float(t.ppf((1 + LEVEL) / 2, rows.source.nunique() - 1)) / of_normal(1.0)

    def predicted(chip: str) -> tuple[float, float]:
        """The share of a large model, and its spread: kriging with the mean unknown."""
        beside = of_chip * (chips == chip)
        unseen = np.eye(1, known.shape[1])[0] - known.T @ inverse @ beside
        middle = mean[0] + beside @ inverse @ (log - known @ mean)
        own = of_source + of_row + of_young * (chip in YOUNG)
        variance = of_chip + own - beside @ inverse @ beside + unseen @ errors @ unseen
        return float(np.exp(middle)), few * float(np.sqrt(variance))

    shares = {chip: predicted(chip) for chip in sorted(set(chips))}
    slope = (float(mean[1]), few * float(np.sqrt(of_slope + errors[1, 1]))) if by_size else (0.0, 0.0)
    return Learned(shares, predicted(""), slope)


def left_out() -> Iterator[tuple[str, float, float]]:
    """Of each row of `decoders`: its source, the logarithm of its share over what all other sources say, and half of their interval."""
    rows = decoders()
    for source, own in rows.groupby("source"):
        law = learn(rows[rows.source != source])
        for one in own.itertuples():
            share, spread = law.share.get(one.chip, law.others)
            small = min(0.0, np.log(one.million_multiplied * 1e6 / LARGE))
            half = of_normal(float(np.hypot(spread, law.slope[1] * small)))
            yield str(source), float(one.log - np.log(share) - law.slope[0] * small), half


def of_one_gpu() -> pd.DataFrame:
    """Rows of figures/gpu_rates.csv, with `log`, the logarithm of their share, and `chip`, which is a GPU and a format."""
    rows = figures.table("gpu_rates")
    share = [
        TRAINING * (workload.NAMED[one.model].flops_per_sample or 0.0) * one.samples_per_s / _peak(one)
        for one in rows.itertuples()
    ]
    return rows.assign(log=np.log(share), chip=rows.gpu + " " + rows.precision)


def _peak(row) -> float:
    return getattr(catalogue.find("gpus", row.gpu), row.precision).peak


def on_tensor_cores(encoders: bool) -> pd.DataFrame:
    """Rows of one GPU that `learn` takes: of encoders, or of convolutions."""
    rows = of_one_gpu()
    return rows[(rows.model.isin(ENCODERS) == encoders) & (rows.precision != "fp32")]
