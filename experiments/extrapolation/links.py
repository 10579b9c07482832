"""The seconds of a byte over those by the network's nominal bandwidth, on the clusters of the published tables."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from experiments import figures
from experiments.extrapolation import sizes, sums, t4
from sim.model.sizes import ITEM_BYTES

T4_BYTES_PER_S, P2_BYTES_PER_S = 50e9 / 8, 10e9 / 8
BYTES = 1e9  # a unit in which both constants are of a size


class Links(NamedTuple):
    """Logarithms of that factor: their mean, and the standard deviation of one more cluster."""

    mean: float
    spread: float


@cache
def factors() -> dict[str, float]:
    """Times as long as at the nominal bandwidth, by cluster; a cluster's several fits count once, by their geometric mean."""
    found = {
        "g4dn.12xlarge, 50 Gbit/s, DistributedDataParallel": _mean([t4.byte_s(name, 4) for name in t4.ZOO])
        * T4_BYTES_PER_S
    }
    found["p2.8xlarge, 10 Gbit/s, TensorFlow's servers"] = _servers_byte_s() * P2_BYTES_PER_S
    for algorithm in sums.FOUR_NODES:
        found[f"links shaped by tc, {algorithm}"] = 1 / _mean([sums.fitted(algorithm, name)[1] for name in sums.SHAPED])
    return found


def _servers_byte_s() -> float:
    """Seconds of a byte on TensorFlow's page, where a step is longer by a constant and by a port's bytes, whatever it computes."""
    from scipy.optimize import nnls

    design, longer = [], []
    for one in sizes.of_source("tensorflow_page", figures.table("sizes/tensorflow_page")):
        rows, model = one.rows, sizes.workload(one.model, one.million_parameters)
        for place in np.flatnonzero((rows.gpus > 1) * ("several hosts" in one.called)):
            step_s, apart = rows.step_s[place], 1 - 1 / rows.hosts[place]
            alone_s = rows.step_s[(rows.gpus == 1) & (rows.batch == rows.batch[place])][0]
            design.append([1 / step_s, 2 * ITEM_BYTES * model.parameters * apart / step_s / BYTES])
            longer.append(1 - alone_s / step_s)
    return float(nnls(np.array(design), np.array(longer))[0][1] / BYTES)


def learned(found: dict[str, float]) -> Links:
    """The factor for a network that is known by name alone."""
    logs = np.log(list(found.values()))
    return Links(float(logs.mean()), float(logs.std(ddof=1) * np.sqrt(1 + 1 / len(logs))))


def _mean(values: list[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.log(values).mean()))
