"""Seconds that a sum over 4 nodes takes, fitted by algorithm and network, and predicted for 8 nodes.

A sum takes seconds whatever its size, messages one after another over a network whose latency is known, and bytes. A ring of n nodes has
2 (n - 1) messages, and a node sends 2 (n - 1) / n of all bytes; a reduce and a broadcast pass all bytes down a chain of n - 1 hops, twice,
whatever n is; all-to-all and allgather send as much as a ring, in two messages. Fitted are, on the two sizes of 4 nodes, the first and
seconds of a byte, which are at least those of the wire.

Source: B. Yuan, public results page; NCCL on AWS, links shaped by tc.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.allreduce import MEBIBYTES, SECONDS, Network
from experiments.allreduce import NETWORKS as SHAPED
from experiments.extrapolation.held import Held

NOWHERE = Network(0.0, float("inf"))  # as if: nobody says what the network that is not shaped is
NETWORKS = {**SHAPED, "not shaped": NOWHERE}
NOT_SHAPED = {"nccl": (0.37, 1.42), "reduce-broadcast": (0.57, 1.97), "alltoall-allgather": (0.42, 1.63)}  # 4 nodes
EIGHT_NODES = {  # seconds of 256 and 1024 MiB, in the order of NETWORKS
    "nccl": ((0.87, 3.81), (2.5, 8.23), (5.14, 17.21), (8.27, 33.46), (0.45, 1.95)),
    "reduce-broadcast": ((1.1, 4.28), (3.29, 10.66), (5.87, 21.26), (7.73, 23.52), (0.59, 2.09)),
    "alltoall-allgather": ((0.87, 3.4), (2.6, 9.52), (5.16, 20.17), (6.07, 21.69), (0.53, 3.12)),
}


def messages(algorithm: str, nodes: int) -> int:
    """One after another."""
    return {"nccl": 2 * (nodes - 1), "reduce-broadcast": 2 * (nodes - 1), "alltoall-allgather": 2}[algorithm]


def sent_bytes(algorithm: str, nodes: int, mebibytes: int) -> float:
    """That a node sends."""
    return 2**20 * mebibytes * (2.0 if algorithm == "reduce-broadcast" else 2 * (nodes - 1) / nodes)


def predicted_s(algorithm: str, network: Network, nodes: int, mebibytes: int, constants: tuple[float, float]) -> float:
    """Seconds of a sum.

    Args:
        constants: seconds whatever the size, and of a byte.
    """
    fixed_s, byte_s = constants
    return (
        fixed_s + messages(algorithm, nodes) * network.latency_s + sent_bytes(algorithm, nodes, mebibytes) * byte_s
    )


def fitted(algorithm: str, network: Network, seconds: tuple[float, ...]) -> tuple[tuple[float, float], float]:
    """The constants that meet the seconds of 4 nodes best, in ratio, and how far off they are there."""
    from scipy.optimize import least_squares

    wire_s = 1 / network.bandwidth_bytes_per_s
    scale = np.array([seconds[0], seconds[-1] / sent_bytes(algorithm, 4, MEBIBYTES[-1])])

    def off(at) -> list[float]:
        said = [predicted_s(algorithm, network, 4, size, tuple(at * scale)) for size in MEBIBYTES]
        return [float(np.log(one / took)) for one, took in zip(said, seconds, strict=True)]

    low = np.array([0.0, wire_s]) / scale
    found = least_squares(off, np.maximum(low + 1e-6, [0.1, 0.9]), bounds=(low, [np.inf, np.inf]))
    return tuple(map(float, found.x * scale)), float(np.sqrt(np.square(found.fun).mean()))


def held_out() -> Iterator[Held]:
    """The sums of 8 nodes."""
    for algorithm, by_network in EIGHT_NODES.items():
        of_four = (*SECONDS[algorithm], NOT_SHAPED[algorithm])
        for (name, network), measured, four in zip(NETWORKS.items(), by_network, of_four, strict=True):
            constants, residual = fitted(algorithm, network, four)
            for size, measured_s, four_s in zip(MEBIBYTES, measured, four, strict=True):
                said_s = predicted_s(algorithm, network, 8, size, constants)
                row = f"{algorithm}, {name}, {size} MiB"
                yield Held("sums", "4 nodes, then 8", row, 1.0, measured_s, said_s, 0.0, residual, four_s)
