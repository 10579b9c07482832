"""Tables of planted steps, their profiles, and how far simulations by a profile are off a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.scaling import profiled, replay
from calibration.scaling.overlap import Overlap
from calibration.scaling.steps import Scaling
from calibration.scaling.table import WORDS, Table
from sim.model import workload
from sim.platform.cluster import Cluster

MODEL = workload.NAMED["resnet50"]
BYTES = 4.0 * MODEL.parameters
OVERLAP = Overlap.of(MODEL)
LIKE = Scaling(BYTES, overlap=OVERLAP)


def table(places, **columns) -> Table:
    """Rows of hosts, GPUs of each and batch, of steps of a second, or of the columns that are given."""
    hosts, each, batch = np.array(places, float).T
    return Table(hosts, hosts * each, each, batch, *np.ones((2, len(hosts))))._replace(**columns)


def written(tmp_path: Path, of: Table, name: str = "table.csv") -> Path:
    found = {"hosts": of.hosts, "gpus_per_host": of.most, "batch": of.batch, "step_s": of.step_s}
    if (of.minibatches > 1).any():
        found["minibatches"] = of.minibatches
    for column, values in (("servers", of.servers), ("servers_on", of.beside), ("data", of.real)):
        if values is not None:
            found[column] = [WORDS[column][int(one)] for one in values] if column in WORDS else values
    lines = [",".join(map(str, row)) for row in zip(*found.values(), strict=True)]
    path = tmp_path / name
    path.write_text("\n".join([",".join(found), *lines]))
    return path


def profile(tmp_path: Path, of: Table, protocol: str | None = None, **about) -> Cluster:
    return profiled.profile(str(written(tmp_path, of)), "x", "resnet50", protocol, **about)


def notes(made: Cluster) -> str:
    return " ".join(made.provenance.notes)


def off(made: Cluster, protocol: str, of: Table, *settings: str) -> np.ndarray:
    """Logarithms of simulated over measured seconds, without the profile's error and growth."""
    costs = made.costs[MODEL.name].model_copy(update={"error": 0.0})
    exact = made.known(growth=None).model_copy(update={"costs": {MODEL.name: costs}})
    settings = settings or tuple(profiled.settings_of(protocol))
    return np.log(np.array(replay.steps_s(exact, MODEL, protocol, settings, of)) / of.step_s)
