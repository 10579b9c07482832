"""Published steps to a target by the global batch, of models that are known by name; published.csv has the sources."""

from __future__ import annotations

import csv
from functools import lru_cache
from math import nan
from pathlib import Path
from typing import NamedTuple

from sim.base.errors import WrongSetting
from sim.efficiency import law

FALLING = ("loss", "wer")  # metrics that training makes smaller
FILE = Path(__file__).with_name("published.csv")


class Curve(NamedTuple):
    """A run, by its evaluations that were better than all before; each field has one number an evaluation.

    Args:
        batch: samples of an update.
        steps: updates until each of them.
        values: of the metric.
    """

    batch: int
    steps: tuple[int, ...]
    values: tuple[float, ...]

    def reached(self, value: float, falls: bool) -> int | None:
        """Updates until the first evaluation that is as good; None if there is none, or if already the first of all is better."""
        good = [(one <= value) if falls else (one >= value) for one in self.values]
        if True not in good or (good[0] and self.values[0] != value):
            return None
        return self.steps[good.index(True)]


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
    return Curve(batch, tuple(int(row["steps"]) for row in rows), tuple(float(row["value"]) for row in rows))


def runs(model: str, metric: str, value: float) -> dict[int, int]:
    """By batch, the steps of a model's runs that reached a target."""
    reached = {curve.batch: curve.reached(value, metric in FALLING) for curve in curves()[model][metric]}
    return {batch: steps for batch, steps in reached.items() if steps is not None}


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
    return law.fit([*found], [*found.values()])


def _range(several: list[Curve], falls: bool) -> str:
    """The targets that two batches or more are known to have reached."""
    first, last = (
        sorted((one.values[end] for one in several if len(one.values) > 1), reverse=falls) for end in (0, -1)
    )
    alone = sorted({one.values[0] for one in several if len(one.values) == 1})
    said = [f"from {first[1]:g} to {last[-2]:g}"] if len(first) > 1 else []
    return " or ".join([*said, *(f"{value:g}" for value in alone)])
