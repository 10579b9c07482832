"""Steps to a target at larger batches, by published runs whose gradient noise scale was measured (Pollux, sim/efficiency/published.csv).

Two predictions: every larger batch by the smallest batch's run alone and its noise scale; and the largest batch by the law of all
smaller ones. The spread of the first, by doublings, is learned on half of the models, and reported of the other half. The second has
learned nothing of these models. Halves are by the rule of MLPerf's models, and were listed before anything was predicted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sim.efficiency import law, published

LEARN, REPORT = ("bert_base", "ncf", "yolov3"), ("resnet18_cifar", "deepspeech2", "resnet50")
AFTER = 0.75  # of the smallest batch's steps: what it has reached then is the first target
LEAST = 10  # evaluations of a run for that target


class Predicted(NamedTuple):
    """A batch: logarithms of predicted over published steps.

    Args:
        by: what it is predicted by, or its target, in words.
        beyond: doublings from the batches that it is predicted by.
        half_width: of the 90 % interval.
        same_samples, same_steps: of the two rules, from the largest batch that it is predicted by.
    """

    model: str
    by: str
    batch: float
    beyond: float
    error: float
    half_width: float
    same_samples: float
    same_steps: float

    @property
    def held(self) -> bool:
        """Whether the interval covers it."""
        return abs(self.error) <= self.half_width


def predicted(model: str, by: str, fitted: law.Law, last: tuple[float, float], one: tuple[float, float]) -> Predicted:
    """A batch by a law, whose largest batch is the last; both are a batch and its published steps."""
    (last_batch, last_steps), (batch, steps) = last, one
    said, same_steps = fitted.steps(batch), math.log(last_steps / steps)
    return Predicted(
        model,
        by,
        batch,
        fitted.beyond(batch),
        math.log(said.median / steps),
        math.log(said.high / said.median),
        same_steps - math.log(batch / last_batch),
        same_steps,
    )


def targets(model: str) -> Iterator[tuple[str, float]]:
    """Metrics, and values that several batches reached: one on the way, and the worst of what all batches reached in the end."""
    for metric, curves in published.curves()[model].items():
        several = [curve for curve in curves if curve.noise_scale]
        if not several:
            continue
        first = several[0]
        if len(first.steps) >= LEAST:
            yield (
                metric,
                [v for step, v in zip(first.steps, first.values, strict=True) if step <= AFTER * first.steps[-1]][-1],
            )
        ends = [curve.values[-1] for curve in several]
        yield metric, max(ends) if metric in published.FALLING else min(ends)


def by_noise(models: Sequence[str]) -> Iterator[Predicted]:
    """Every larger batch, by the smallest one and its noise scale."""
    for model, said, (first, *larger) in _runs(models):
        assert first.noise_scale is not None
        found = law.of_noise(first.batch, [first.steps], first.noise_scale)
        yield from (predicted(model, said, found, first[:2], one[:2]) for one in larger)


def by_law(models: Sequence[str]) -> Iterator[Predicted]:
    """The largest batch, by all others."""
    for model, said, (*smaller, largest) in _runs(models):
        if len(smaller) > 1:
            found = law.fit([one.batch for one in smaller], [one.steps for one in smaller])
            yield predicted(model, said, found, smaller[-1][:2], largest[:2])


def _runs(models: Sequence[str]) -> Iterator[tuple[str, str, list[published.Reached]]]:
    """Models, targets, and the runs that reached them, smallest batch first."""
    for model in models:
        for metric, value in targets(model):
            runs = [one for one in published.runs(model, metric, value) if one.noise_scale is not None]
            yield model, f"{metric} {value:g}", runs


def learn() -> float:
    """The standard deviation of the logarithm for each doubling from the smallest batch; models weigh the same."""
    of_model: dict[str, list[float]] = {}
    for one in by_noise(LEARN):
        of_model.setdefault(one.model, []).append((one.error / one.beyond) ** 2)
    return math.sqrt(math.fsum(math.fsum(squares) / len(squares) for squares in of_model.values()) / len(of_model))
