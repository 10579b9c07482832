"""Seconds that a sum over 4 nodes takes, fitted by algorithm and network, and predicted for 8 nodes, by the simulator.

The algorithms are those of experiments.allreduce. Two constants are fitted on the two sizes of 4 nodes: seconds that a sum takes
whatever its size, and its share of the nominal bandwidth, at most 1. Both are taken to be the same on 8 nodes.

Source: B. Yuan, public results page; NCCL on AWS, links shaped by tc.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import log

from experiments.allreduce import MEBIBYTES, SECONDS, Network, allreduce_s
from experiments.allreduce import NETWORKS as SHAPED
from experiments.extrapolation.held import Held

NETWORKS = {**SHAPED, "not shaped": Network(100e-6, 10e9 / 8)}  # AWS, "up to 10 Gbit/s": assumed
NOT_SHAPED = {"nccl": (0.37, 1.42), "reduce-broadcast": (0.57, 1.97), "alltoall-allgather": (0.42, 1.63)}  # 4 nodes
EIGHT_NODES = {  # seconds of 256 and 1024 MiB, in the order of NETWORKS
    "nccl": ((0.87, 3.81), (2.5, 8.23), (5.14, 17.21), (8.27, 33.46), (0.45, 1.95)),
    "reduce-broadcast": ((1.1, 4.28), (3.29, 10.66), (5.87, 21.26), (7.73, 23.52), (0.59, 2.09)),
    "alltoall-allgather": ((0.87, 3.4), (2.6, 9.52), (5.16, 20.17), (6.07, 21.69), (0.53, 3.12)),
}


@cache
def fitted(algorithm: str, name: str) -> tuple[float, float, float]:
    """Constant seconds and share of the bandwidth that fit both sums of 4 nodes best, in ratio; and their error."""
    from scipy.optimize import least_squares

    of_four = dict(zip(NETWORKS, (*SECONDS[algorithm], NOT_SHAPED[algorithm]), strict=True))[name]

    def off(at) -> list[float]:
        said = [at[0] + allreduce_s(NETWORKS[name], size, at[1], algorithm) for size in MEBIBYTES]
        return [log(one / took) for one, took in zip(said, of_four, strict=True)]

    bounds = ([0.0, 0.05], [10.0, 1.0])
    found = least_squares(off, [0.02, 0.8], bounds=bounds, diff_step=0.02, ftol=1e-3, max_nfev=8)
    return float(found.x[0]), float(found.x[1]), float((found.fun @ found.fun / 2) ** 0.5)


def held_out() -> Iterator[Held]:
    """The sums of 8 nodes."""
    for algorithm, by_network in EIGHT_NODES.items():
        of_four = (*SECONDS[algorithm], NOT_SHAPED[algorithm])
        for (name, network), measured, four in zip(NETWORKS.items(), by_network, of_four, strict=True):
            fixed_s, share, residual = fitted(algorithm, name)
            for size, measured_s, four_s in zip(MEBIBYTES, measured, four, strict=True):
                said_s = fixed_s + allreduce_s(network, size, share, algorithm, nodes=8)
                row = f"{algorithm}, {name}, {size} MiB"
                yield Held("sums", "4 nodes, then 8", row, 1.0, measured_s, said_s, residual, four_s)
