"""Published steps to a target by the global batch, of models that are known by name; published.csv has the sources."""

from __future__ import annotations

from functools import lru_cache
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.efficiency import law

if TYPE_CHECKING:
    import pandas as pd

FALLING = ("loss", "wer")  # metrics that training makes smaller
FILE = Path(__file__).with_name("published.csv")


@lru_cache(None)
def table() -> pd.DataFrame:
    """All runs, by model, metric and batch: the evaluations of each that were better than all before, in order."""
    import pandas as pd

    return pd.read_csv(FILE, comment="#")


def runs(model: str, metric: str, value: float) -> dict[int, int]:
    """By batch, the steps of a model's runs that reached a target; without those of which already the first evaluation was better."""
    known, found = table().query("model == @model and metric == @metric"), {}
    for batch, run in known.groupby("batch"):
        good = run["value"] <= value if metric in FALLING else run["value"] >= value
        if good.any() and not (good.iloc[0] and run["value"].iloc[0] != value):
            found[int(batch)] = int(run["steps"][good.idxmax()])
    return found


def read(model: str, target: str, setting: str) -> law.Law:
    """The law of a model's published runs to a target, such as "accuracy=0.755".

    Args:
        setting: which a complaint names.

    Raises:
        WrongSetting: nothing is published of the model or the metric, or two batches or more have not reached the target.
    """
    metric, _, number = target.partition("=")
    metrics = table()["metric"][table()["model"] == model].unique()
    if not len(metrics):
        names = ", ".join(sorted(table()["model"].unique()))
        others = f"a table of steps by batch, as steps.csv; targets are known by name of {names}"
        raise WrongSetting(setting, f"{target} of {model}", others)
    if metric not in metrics:
        raise WrongSetting(
            setting, target, f"{' or '.join(f'{name}=NUMBER' for name in metrics)} of {model}, or a table"
        )
    try:
        value = float(number)
    except ValueError:
        value = nan
    found = runs(model, metric, value)
    if len(found) < 2:
        allowed = f"{metric} {_range(model, metric)} of {model}, or a table of steps by batch"
        raise WrongSetting(setting, target, allowed)
    return law.fit([*found], [*found.values()])


def _range(model: str, metric: str) -> str:
    """The targets that two batches or more are known to have reached."""
    known = table().query("model == @model and metric == @metric").groupby("batch")["value"]
    ends = known.agg(["first", "last", "size"])
    several, alone = ends[ends["size"] > 1], ends[ends["size"] == 1]
    first, last = (sorted(several[end], reverse=metric in FALLING) for end in ("first", "last"))
    said = [f"from {first[1]:g} to {last[-2]:g}"] if len(first) > 1 else []
    return " or ".join([*said, *(f"{value:g}" for value in sorted(set(alone["first"])))])
