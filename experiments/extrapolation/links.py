"""The seconds of a byte over those by the network's nominal bandwidth, on the clusters of the published tables."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from experiments.extrapolation import sums, t4, tensorflow_page

T4_BYTES_PER_S = 50e9 / 8


class Links(NamedTuple):
    """Logarithms of that factor: their mean, and the standard deviation of one more cluster."""

    mean: float
    spread: float


@cache
def factors() -> dict[str, float]:
    """Times as long as at the nominal bandwidth, by cluster; a cluster's several fits count once, by their geometric mean."""
    t4s = [t4.byte_s(name, 4) * T4_BYTES_PER_S for name in t4.ZOO]
    rows = tensorflow_page.rows(tensorflow_page.SEVERAL_HOSTS, tensorflow_page.GPUS_OF_HOSTS)
    found = {"g4dn.12xlarge, 50 Gbit/s, DistributedDataParallel": float(np.exp(np.log(t4s).mean()))}
    found[tensorflow_page.HERE] = tensorflow_page.fitted(rows).byte_s * tensorflow_page.BYTES_PER_S
    for algorithm in sums.FOUR_NODES:
        shares = [sums.fitted(algorithm, name)[1] for name in sums.SHAPED]
        found[f"links shaped by tc, {algorithm}"] = float(np.exp(-np.log(shares).mean()))
    return found


def learned(found: dict[str, float]) -> Links:
    """The factor for a network that is known by name alone."""
    logs = np.log(list(found.values()))
    return Links(float(logs.mean()), float(logs.std(ddof=1) * np.sqrt(1 + 1 / len(logs))))


def elsewhere(cluster: str) -> float:
    """The factor on other clusters than this one: their geometric mean."""
    return float(np.exp(learned({name: times for name, times in factors().items() if name != cluster}).mean))
