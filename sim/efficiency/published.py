"""Published steps to a target by the global batch, of models that are known by name; published.csv has the sources."""

from __future__ import annotations

import csv
from functools import lru_cache
from math import nan
from pathlib import Path
from typing import NamedTuple

from sim.base.errors import WrongSetting
from sim.efficiency import law, noise

FALLING = ("loss", "wer")  # metrics that training makes smaller
FILE = Path(__file__).with_name("published.csv")


class Reached(NamedTuple):
    """A run that reached a target.

    Args:
        batch: samples of an update.
        steps: updates until the first evaluation that reached it.
        noise_scale: of its gradients until then, samples, see sim.efficiency.noise.noise_scale_of_run; None if it is not known.
    """

    batch: int
    steps: int
    noise_scale: float | None


class Curve(NamedTuple):
    """A run, by its evaluations that were better than all before; each field has one number an evaluation.

    Args:
        batch: samples of an update.
        noise_scale: since the evaluation before; empty if it is not known.
    """

    batch: int
    steps: tuple[int, ...]
    values: tuple[float, ...]
    noise_scale: tuple[float, ...]

    def reached(self, value: float, falls: bool) -> Reached | None:
        """The first evaluation that is as good; None if there is none, or if already the first of all is better."""
        good = [(one <= value) if falls else (one >= value) for one in self.values]
        if True not in good or (good[0] and self.values[0] != value):
            return None
        count = good.index(True) + 1
        if not self.noise_scale:
            return Reached(self.batch, self.steps[count - 1], None)
        between = [end - start for start, end in zip((0, *self.steps), self.steps[:count], strict=False)]
        places = [noise.NoiseScale(one, nan, 1.0, one) for one in self.noise_scale[:count]]
        known = noise.noise_scale_of_run(self.batch, between, places)
        return Reached(self.batch, self.steps[count - 1], known)


@lru_cache(None)
def curves() -> dict[str, dict[str, list[Curve]]]:
    """All runs, by model and metric; batches ascend within a source."""
    with FILE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    found: dict[str, dict[str, dict[int, list[dict[str, str]]]]] = {}
    for row in rows:
        found.setdefault(row["model"], {}).setdefault(row["metric"], {}).setdefault(int(row["batch"]), []).append(row)
    return {
        model: {metric: [_curve(batch, of_run) for batch, of_run in runs.items()] for metric, runs in metrics.items()}
        for model, metrics in found.items()
    }


def _curve(batch: int, rows: list[dict[str, str]]) -> Curve:
    noise_scale = tuple(float(row["noise_scale"]) for row in rows if row["noise_scale"])
    return Curve(
        batch, tuple(int(row["steps"]) for row in rows), tuple(float(row["value"]) for row in rows), noise_scale
    )


def runs(model: str, metric: str, value: float) -> list[Reached]:
    """The runs of a model that reached a target."""
    falls = metric in FALLING
    return [found for curve in curves()[model][metric] if (found := curve.reached(value, falls))]


def read(model: str, target: str, setting: str) -> law.Law:
    """The law of a model's published runs to a target, such as "accuracy=0.755".

    Args:
        setting: which a complaint names.

    Raises:
        WrongSetting: nothing is published of the model or the metric, or two batches or more have not reached the target.
    """
    metric, _, number = target.partition("=")
    known = curves().get(model)
    if known is None:
        others = f"a table of steps by batch, as steps.csv; targets are known by name of {', '.join(sorted(curves()))}"
        raise WrongSetting(setting, f"{target} of {model}", others)
    if metric not in known:
        raise WrongSetting(setting, target, f"{' or '.join(f'{name}=NUMBER' for name in known)} of {model}, or a table")
    try:
        value = float(number)
    except ValueError:
        value = nan
    found = runs(model, metric, value)
    if len(found) < 2:
        allowed = f"{metric} {_range(known[metric], metric in FALLING)} of {model}, or a table of steps by batch"
        raise WrongSetting(setting, target, allowed)
    return law.fit([one.batch for one in found], [one.steps for one in found])


def _range(several: list[Curve], falls: bool) -> str:
    """The targets that two batches or more are known to have reached."""
    first, last = (
        sorted((one.values[end] for one in several if len(one.values) > 1), reverse=falls) for end in (0, -1)
    )
    alone = sorted({one.values[0] for one in several if len(one.values) == 1})
    said = [f"from {first[1]:g} to {last[-2]:g}"] if len(first) > 1 else []
    return " or ".join([*said, *(f"{value:g}" for value in alone)])
