"""Hosts of 4 T4 GPUs (Pollux): fitted up to some number of hosts, and predicted beyond; and each number between the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibration.scaling.steps import Scaling, fit
from calibration.scaling.table import Table
from experiments import figures
from experiments.extrapolation.held import Held, doublings
from sim.model.sparse_rows import ITEM_BYTES

MODELS = {"bert": "bert_base", "imagenet": "resnet50", "cifar10": "resnet18_cifar"}
UP_TO = {"bert": (2, 3), "imagenet": (2, 3), "cifar10": (2, 4, 8)}  # hosts that are fitted, where more are predicted


def table(name: str) -> Table:
    """The table of one of MODELS."""
    found = figures.table(f"t4_{name}")
    return Table(*(found[column].to_numpy(float) for column in found.columns))


def gradient_bytes(name: str) -> float:
    """Bytes that are summed in a step."""
    from sim.model import workload

    return float(ITEM_BYTES * workload.NAMED[MODELS[name]].parameters)


def fitted(name: str, up_to: int) -> Scaling:
    """On no more hosts than that."""
    rows = table(name)
    return fit(rows.where(rows.hosts <= up_to), gradient_bytes(name))


def byte_s(name: str, hosts: int) -> float:
    """Seconds of a byte between so many hosts, fitted on no more."""
    rows = table(name)
    return float(fitted(name, hosts).byte_s(rows.where(rows.hosts == hosts))[0])


def held_out() -> Iterator[Held]:
    """All of them."""
    for name in MODELS:
        rows = table(name)
        for up_to in UP_TO[name]:
            yield from _beyond(name, rows, rows.hosts <= up_to, rows.hosts > up_to, f"1 to {up_to} hosts, then more")
        for out in np.unique(rows.hosts)[1:-1]:
            yield from _beyond(name, rows, rows.hosts != out, rows.hosts == out, f"all but {out:.0f} hosts")


def _beyond(name: str, rows: Table, kept: np.ndarray, out: np.ndarray, split: str) -> Iterator[Held]:
    seen, held = rows.where(kept), rows.where(out)
    found = fit(seen, gradient_bytes(name))
    columns = found.step_s(held), found.computing_s(held), *found.unknown(held)
    most = seen.hosts.max()
    for index in range(held.size):
        hosts, gpus, fullest, batch, step_s = (float(column[index]) for column in held)
        row = f"{hosts:.0f} hosts, {gpus:.0f} GPUs, batch {batch:.0f}"
        said_s, alone_s, slower, faster = (float(column[index]) for column in columns)
        beyond, unchanged_s = doublings(hosts, most), _unchanged_s(seen, hosts, fullest, batch)
        given = step_s, said_s, alone_s, found.residual, unchanged_s
        yield Held(f"T4, {name}", split, row, beyond, *given, slower, faster)


def _unchanged_s(seen: Table, hosts: float, fullest: float, batch: float) -> float:
    """Seconds of the step with that batch on the next smaller number of hosts, with the nearest number of GPUs a host."""
    same = seen.where((seen.batch == batch) & (seen.hosts < hosts))
    same = same.where(same.hosts == same.hosts.max())
    near = np.abs(same.most - fullest)
    return float(np.exp(np.log(same.step_s[near == near.min()]).mean()))
