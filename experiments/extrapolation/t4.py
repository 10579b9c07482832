"""Hosts of 4 T4 GPUs (Pollux): fitted up to some number of hosts, and predicted beyond; and each number between the others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from calibration.scaling.fitting import WITHIN, Before, fit
from calibration.scaling.overlap import Overlap
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table
from experiments import figures
from experiments.extrapolation.held import Held, doublings
from experiments.extrapolation.sizes import Split, once, predicted
from sim.model.sparse_rows import ITEM_BYTES

if TYPE_CHECKING:
    from sim.model.workload import Workload

ZOO = {"bert": "bert_base", "imagenet": "resnet50", "cifar10": "resnet18_cifar"}
MODELS = ZOO | {"deepspeech2": ""}  # whose parameters the source does not list
UP_TO = {
    "bert": (2, 3),
    "imagenet": (2, 3),
    "cifar10": (2, 4, 8),
    "deepspeech2": (2, 4, 8),
}  # hosts fitted; more predicted


def table(name: str) -> Table:
    """The table of one of MODELS."""
    found = figures.table(f"t4_{name}")
    columns = [found[column].to_numpy(float) for column in found.columns]
    return Table(*[*columns, np.ones(len(found))])


@cache
def model(name: str) -> Workload:
    """One of MODELS."""
    from sim.model import workload

    if name == "deepspeech2":
        table = {"name": name, "parameters": "53 M", "layers": 20, "step": {"time": "466 ms", "batch": 10}}
        return workload.Workload.model_validate(table)
    return workload.NAMED[MODELS[name]]


def fitted(name: str, rows: Table, within: Before = WITHIN) -> Scaling:
    """The constants of some rows of a table."""
    return fit(rows, float(ITEM_BYTES * model(name).parameters), Overlap.of(model(name)), within=within)


def byte_s(name: str, hosts: int) -> float:
    """Seconds of a byte between so many hosts, fitted on no more."""
    rows = table(name)
    return float(fitted(name, rows.where(rows.hosts <= hosts)).byte_s(rows.where(rows.hosts == hosts))[0])


def held_out() -> Iterator[Held]:
    """All of them."""
    for name in MODELS:
        fit_of = once(partial(fitted, name))
        for split in _splits(table(name), UP_TO[name]):
            yield from predicted(f"T4, {name}", split, fit_of)


def _splits(rows: Table, most: tuple[int, ...]) -> Iterator[Split]:
    for hosts in most:
        yield _split(f"1 to {hosts} hosts, then more", rows, rows.hosts > hosts)
    for hosts in np.unique(rows.hosts)[1:-1]:
        yield _split(f"all but {hosts:.0f} hosts", rows, rows.hosts == hosts)


def _split(said: str, rows: Table, left_out: np.ndarray) -> Split:
    seen, out = rows.where(~left_out), rows.where(left_out)
    return Split(said, seen, out, np.array([doublings(hosts, seen.hosts.max()) for hosts in out.hosts]))
