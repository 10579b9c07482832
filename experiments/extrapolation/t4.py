"""Hosts of 4 T4 GPUs (Pollux): four models on up to 16 hosts."""

from __future__ import annotations

import numpy as np

from calibration.scaling.fitting import WITHIN, Before, fit
from calibration.scaling.overlap import Overlap
from calibration.scaling.steps import Scaling
from calibration.scaling.table import Table
from experiments import figures
from sim.model.sizes import ITEM_BYTES

ZOO = {"bert": "bert_base", "imagenet": "resnet50", "cifar10": "resnet18_cifar"}
MODELS = ZOO | {"deepspeech2": ""}  # whose parameters the source does not list
MILLION_PARAMETERS = 53.0  # of DeepSpeech2


def table(name: str) -> Table:
    """The table of one of MODELS."""
    found = figures.table(f"t4_{name}")
    columns = [found[column].to_numpy(float) for column in found.columns]
    return Table(*[*columns, np.ones(len(found))])


def even(name: str) -> Table:
    """Its rows of hosts that have as many GPUs each, as the columns of calibration.fit say them."""
    rows = table(name)
    return rows.where(rows.gpus == rows.hosts * rows.most)


def fitted(name: str, rows: Table, within: Before = WITHIN) -> Scaling:
    """The constants of some rows of a table."""
    from experiments.extrapolation import sizes

    model = sizes.workload(MODELS[name] or name, MILLION_PARAMETERS)
    return fit(rows, Scaling(float(ITEM_BYTES * model.parameters), overlap=Overlap.of(model)), within)


def byte_s(name: str, hosts: int) -> float:
    """Seconds of a byte between so many hosts, fitted on no more."""
    rows = table(name)
    return float(fitted(name, rows.where(rows.hosts <= hosts)).byte_s(rows.where(rows.hosts == hosts))[0])
