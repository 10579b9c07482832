"""Seconds that a sum over 4 nodes takes, fitted by algorithm and network, and predicted for 8 nodes, by the simulator.

Three algorithms: NCCL's allreduce, one server (a reduce and a broadcast) and sharded ones (all-to-all and allgather of grouped sends).
Two constants are fitted on the two sizes of 4 nodes: seconds that a sum takes whatever its size, and its share of the nominal
bandwidth, at most 1. Both are taken to be the same on 8 nodes. Each node's egress is delayed (its author's script: tc netem), and a
latency is therefore one way. NCCL's chunks and TCP's windows are as documented. At 50 ms the chunks cost an allreduce its time. A window
of TCP that explained it would forbid the reduce and broadcast of the same page, which carry 104 MB/s there.

Source: B. Yuan, public results page; NCCL on AWS, links shaped by tc.
"""

from __future__ import annotations

from functools import cache
from math import log, log2
from typing import NamedTuple

from sim import protocols
from sim.base.progress import advance
from sim.job.scenario import Scenario
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link, Tcp
from sim.simulation import simulate


class Network(NamedTuple):
    """Four nodes behind shaped links."""

    latency_s: float
    bandwidth_bytes_per_s: float


SHAPED = {
    "1 ms, 5 Gbit/s": Network(1e-3, 5e9 / 8),
    "5 ms, 2 Gbit/s": Network(5e-3, 2e9 / 8),
    "10 ms, 1 Gbit/s": Network(10e-3, 1e9 / 8),
    "50 ms, 1 Gbit/s": Network(50e-3, 1e9 / 8),
}
NETWORKS = {**SHAPED, "not shaped": Network(100e-6, 10e9 / 8)}  # AWS, "up to 10 Gbit/s": assumed
MEBIBYTES = (256, 1024)
FOUR_NODES = {  # seconds that sums of these sizes take, in the order of NETWORKS
    "nccl": ((0.71, 3.15), (1.77, 7.23), (4.06, 16.87), (7.57, 29.83), (0.37, 1.42)),
    "reduce-broadcast": ((1.09, 3.88), (2.86, 10.14), (5.55, 14.10), (6.65, 20.56), (0.57, 1.97)),
    "alltoall-allgather": ((0.80, 2.92), (2.35, 7.58), (4.23, 16.18), (4.77, 18.48), (0.42, 1.63)),
}
EIGHT_NODES = {
    "nccl": ((0.87, 3.81), (2.5, 8.23), (5.14, 17.21), (8.27, 33.46), (0.45, 1.95)),
    "reduce-broadcast": ((1.1, 4.28), (3.29, 10.66), (5.87, 21.26), (7.73, 23.52), (0.59, 2.09)),
    "alltoall-allgather": ((0.87, 3.4), (2.6, 9.52), (5.16, 20.17), (6.07, 21.69), (0.53, 3.12)),
}
SOCKETS = 2 * 16  # NCCL's documentation: on AWS 2 threads of 8 sockets each, for each of 2 channels


def allreduce_s(network: Network, mebibytes: int, share: float, algorithm: str = "nccl", nodes: int = 4) -> float:
    """Seconds on so many nodes that get a `share` of the nominal bandwidth, and of a barrier: gloo's takes log2(nodes) messages in turn."""
    items = mebibytes * 2**20 // ITEM_BYTES
    model = Workload(name="vector", variables=(Variable(name="vector", shape=(items - 1,)),))
    bandwidth_bytes_per_s = network.bandwidth_bytes_per_s * share
    link = Link(latency_s=network.latency_s, bandwidth_bytes_per_s=bandwidth_bytes_per_s, tcp=Tcp(connections=SOCKETS))
    cluster = Cluster(hosts=(Host(count=nodes),), network=link)
    protocol = protocols.make("allreduce", [f"algorithm={algorithm}"])
    scenario = Scenario(protocol, model, nodes, steps=1, warmup=0, cluster=cluster)
    found = simulate(scenario, "event", 1)
    advance(found.wall_s, f"{algorithm}, {nodes} nodes")
    return float(found.outcome.step_s[0, 0]) + log2(nodes) * network.latency_s


@cache
def fitted(algorithm: str, name: str) -> tuple[float, float, float]:
    """Constant seconds and share of the bandwidth that fit both sums of 4 nodes best, in ratio; and their error."""
    from scipy.optimize import least_squares

    of_four = dict(zip(NETWORKS, FOUR_NODES[algorithm], strict=True))[name]

    def off(at) -> list[float]:
        said = [at[0] + allreduce_s(NETWORKS[name], size, at[1], algorithm) for size in MEBIBYTES]
        return [log(one / took) for one, took in zip(said, of_four, strict=True)]

    bounds = ([0.0, 0.05], [10.0, 1.0])
    found = least_squares(off, [0.02, 0.8], bounds=bounds, diff_step=0.02, ftol=1e-3, max_nfev=8)
    return float(found.x[0]), float(found.x[1]), float((found.fun @ found.fun / 2) ** 0.5)
