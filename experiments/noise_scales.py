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
NOISE, LAW = "noise scale of the smallest batch", "law of all smaller batches"


class Predicted(NamedTuple):
    """A run to a target: logarithms of predicted over published steps.

    Args:
        target: METRIC=NUMBER.
        way: NOISE or LAW.
        beyond: doublings from the batches that it is predicted by.
        half_width: of the 90 % interval.
        same_samples, same_steps: of the two rules, from the largest batch that it is predicted by.
    """

    model: str
    target: str
    way: str
    batch: int
    beyond: float
    error: float
    half_width: float
    same_samples: float
    same_steps: float

    @property
    def held(self) -> bool:
        """Whether the interval covers it."""
        return abs(self.error) <= self.half_width


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


def predictions(models: Sequence[str], others: law.Published = law.PUBLISHED) -> Iterator[Predicted]:
    """All, of both ways."""
    for model in models:
        for metric, value in targets(model):
            runs = [one for one in published.runs(model, metric, value) if one.noise_scale is not None]
            said, (first, *larger) = f"{metric}={value:g}", runs
            assert first.noise_scale is not None
            by_noise = law.of_noise(first.batch, [first.steps], first.noise_scale, others)
            yield from (_predicted(model, said, NOISE, by_noise, first, one) for one in larger)
            if len(runs) > 2:
                by_law = law.fit([one.batch for one in runs[:-1]], [one.steps for one in runs[:-1]], others)
                yield _predicted(model, said, LAW, by_law, runs[-2], runs[-1])


def _predicted(
    model: str, target: str, way: str, by: law.Law, last: published.Reached, one: published.Reached
) -> Predicted:
    steps, same_steps = by.steps(one.batch), math.log(last.steps / one.steps)
    return Predicted(
        model,
        target,
        way,
        one.batch,
        by.beyond(one.batch),
        math.log(steps.median / one.steps),
        math.log(steps.high / steps.median),
        same_steps - math.log(one.batch / last.batch),
        same_steps,
    )


def learn() -> float:
    """The standard deviation of the logarithm for each doubling from the smallest batch; models weigh the same."""
    of_model: dict[str, list[float]] = {}
    for one in predictions(LEARN):
        if one.way == NOISE:
            of_model.setdefault(one.model, []).append((one.error / one.beyond) ** 2)
    return math.sqrt(math.fsum(math.fsum(squares) / len(squares) for squares in of_model.values()) / len(of_model))
