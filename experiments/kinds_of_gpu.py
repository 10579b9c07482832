"""Which of two kinds of GPU trains a model faster, known by their names alone: would a plan have chosen right, and how sure was it?

A pair is a model, a format and two kinds of GPU. What was measured is the median ratio of published rates of a GPU, over all rows of both
kinds whose batches, or lengths of sequences, are within `NEAR` of one another. What is predicted is what sim.job.named_gpus says that
training reaches. Both speeds are drawn by themselves, as a plan draws them.

Rates by size (figures/sizes) of sources with a `gpu` were in no choice of a share. Shares of decoders were learned from the rates of theirs
(figures/decoders.csv): they are a group of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import exp, log
from statistics import median
from typing import NamedTuple

from experiments import figures, shares
from experiments.kit.choices import Bin, Choice, Pair, reliability
from sim.base.interval import of_normal
from sim.base.ranges import Architecture, Precision
from sim.model.workload import NAMED
from sim.platform import catalogue

GROUP = "GPUs by name, "
NEAR = 2.0  # times: batches, or sequences
DIFFERENT = 0.1  # share by which two kinds differ, at least
FULL = ("fp32", "tf32")  # formats that frameworks take by themselves; all others have 16 bits


class Row(NamedTuple):
    """A published rate of one GPU.

    Args:
        near: samples of a step, or tokens of a sequence.
        rate: samples or tokens a second.
    """

    group: str
    model: str
    format: Precision | None
    gpu: str
    near: float
    rate: float


def choices(rows: Sequence[Row] = ()) -> Iterator[Choice]:
    """Both kinds of each pair of rows, or of all that were published; rates are relative to the second's."""
    rows = rows or [*_sizes(), *_decoders()]
    jobs = {row[:3]: [other for other in rows if other[:3] == row[:3]] for row in rows}
    for (group, model, precision), of in jobs.items():
        kinds = sorted({row.gpu for row in of if precision is None or precision in _gpu(row.gpu).formats})
        for pair in combinations(kinds, 2):
            one, other = ([row for row in of if row.gpu == kind] for kind in pair)
            ratios = [a.rate / b.rate for a in one for b in other if 1 / NEAR <= a.near / b.near <= NEAR]
            for kind, measured in zip(pair, (median(ratios), 1.0) if ratios else (), strict=False):
                job = f"{model}, {precision or 'usual format'}, {' or '.join(pair)}"
                said, spread = _predicted(kind, model, precision)
                ends = said * exp(-of_normal(spread)), said * exp(of_normal(spread))
                yield Choice(f"{GROUP}{group}", f"{model} on {kind}", (measured,), said, DIFFERENT, ends, job=job)


def _sizes() -> Iterator[Row]:
    for source in figures.sources():
        if source.gpu:
            table = figures.table(f"sizes/{source.name}")
            for row in table[(table.gpus == 1) & (table.minibatches == 1)].itertuples():
                if row.model in NAMED:
                    precision: Precision | None = None if row.precision in FULL else "fp16"
                    group = "full precision" if precision is None else "16 bits"
                    yield Row(group, row.model, precision, source.gpu, row.batch, row.samples_per_s)


def _decoders() -> Iterator[Row]:
    for row in shares.decoders().itertuples():
        yield Row("decoders, fitted", row.model, "bf16", row.gpu, row.sequence, row.tokens_per_s_gpu)


def _gpu(name: str):
    return catalogue.find("gpus", name)


def _predicted(gpu: str, model: str, precision: Precision | None) -> tuple[float, float]:
    """Operations a second that training reaches, and the standard deviation of their logarithm.

    The size of a decoder changes the rates of all kinds alike, and is left out.
    """
    kind: Architecture = NAMED[model].kind if model in NAMED else "decoder"
    rate = _gpu(gpu).reached(precision, kind)
    return rate.peak * (rate.share or 1.0), rate.spread or 0.0


def called(pairs: list[Pair]) -> list[Bin]:
    """Pairs of kinds by the probability that the one with the higher prediction is the faster, and how often it is."""
    of_kinds = [pair for pair in pairs if pair.faster.group.startswith(GROUP)]
    return reliability([(_surely(pair), pair.right) for pair in of_kinds])


def _surely(pair: Pair) -> float:
    """With both speeds drawn by themselves."""
    from scipy.special import ndtr

    ends = [one.interval for one in pair if one.interval]
    deviation = sum((log(high / low) / 2 / of_normal(1.0)) ** 2 for low, high in ends) ** 0.5
    return float(ndtr(abs(log(pair.faster.predicted / pair.slower.predicted)) / deviation))
