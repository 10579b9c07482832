"""Parameter servers on three clusters (Bugliarello, 2017): two constants of up to 8 GPUs, and the simulator at 64 and 128.

The model is sim.texts.ps_layers. Variables are placed as the benchmark's source does (variable_mgr.py of tf_cnn_benchmarks, 2017):
greedy by bytes for parameter_server; round-robin for distributed_replicated, whose servers hold trained variables alone. Servers sit on
the workers' hosts. One copy of a gradient leaves a host of several GPUs and one of a parameter comes to it (the source's add_n and its
caching devices). Ports are as documented, and gRPC hands whole tensors over through them. A platform's own inputs are its documented
network and its measured speed of one GPU.

Consequence: the largest variable (8.2 MB) is on one server, whose port sends it to every worker. On 8 GPUs computation hides that; on
64 or 128 hosts it does not. 8 GPUs that share a host need one copy.

Source: E. Bugliarello, "Distributed TensorFlow: A performance evaluation", CSCS, September 2017: InceptionV3, TensorFlow 1.1.0,
synthetic data, 64 images a GPU and step, servers on the workers' hosts, the best number of servers.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from sim import protocols
from sim.base.progress import advance
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model.costs import Costs, Line
from sim.model.workload import NAMED
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate

GBIT = 1e9 / 8  # bytes
MODEL, BATCH, STEPS = "inception_v3", 64, 2
TAKES_S = 0.5  # a simulation on the average, for the time left
NOISE_CV = 0.01  # of a worker's computation from step to step; the slowest decides


class Platform(NamedTuple):
    """A kind of host, by what is documented about it.

    Args:
        single: images/s of InceptionV3 on one GPU, measured; the model's only other input from the platform.
        line_bytes_per_s: of its port.
        sustained_bytes_per_s: see sim.platform.cluster.Link; None where nothing limits the port in the long run.
    """

    name: str
    single: float
    gpus: int
    cores: int
    line_bytes_per_s: float
    sustained_bytes_per_s: float | None = None


PLATFORMS = {
    platform.name: platform
    for platform in (
        # Cray Aries, 10 GB/s into a node (Alverson et al., Cray XC Series Network, 2012); gRPC gets less.
        Platform("Piz Daint", 138.23, 1, 12, 10e9),
        # Bursts of 10 Gbit/s on credit, in the long run the share by vCPUs (4 of 32) of a p2.8xlarge's 10: inferred, EC2 says "High".
        # Another type of 4 vCPUs was measured at 1.24 and 10.04 Gbit/s (cloudonaut.io, EC2 network performance cheat sheet, 2018).
        Platform("p2.xlarge", 30.55, 1, 4, 10 * GBIT, 1.25 * GBIT),
        Platform("p2.8xlarge", 30.55, 8, 32, 10 * GBIT),  # EC2 instance types
    )
}


class Row(NamedTuple):
    """One measurement; `replicated` is variable_update=distributed_replicated, else parameter_server."""

    platform: str
    gpus: int
    servers: int
    replicated: bool
    images_per_s: float

    @property
    def measured_s(self) -> float:
        """Seconds of a step."""
        return BATCH * self.gpus / self.images_per_s


ROWS = (
    Row("Piz Daint", 2, 1, False, 264.57),
    Row("Piz Daint", 4, 3, True, 523.38),
    Row("Piz Daint", 8, 2, False, 1018.18),
    Row("Piz Daint", 64, 40, False, 7118.31),
    Row("Piz Daint", 128, 116, False, 9219.70),
    Row("p2.xlarge", 2, 2, True, 57.45),
    Row("p2.xlarge", 4, 4, True, 114.57),
    Row("p2.xlarge", 8, 8, True, 228.41),
    Row("p2.xlarge", 64, 64, False, 996.32),
    Row("p2.xlarge", 128, 128, False, 1077.59),
    Row("p2.8xlarge", 2, 1, True, 58.38),
    Row("p2.8xlarge", 4, 1, True, 116.34),
    Row("p2.8xlarge", 8, 1, True, 230.75),
    Row("p2.8xlarge", 64, 8, True, 1731.31),
    Row("p2.8xlarge", 128, 16, True, 3333.20),
)


# Equal for all platforms, fitted on the rows of up to 8 GPUs: the share by which a GPU computes longer when its variables are not its own,
# and the most that TensorFlow's gRPC gets through a host's port, however fast the network.
COST_OF_DISTRIBUTION, PORT_BYTES_PER_S = 0.045, 2.04e9


def predicted_s(row: Row, platform: Platform | None = None) -> float:
    """Seconds of a step, on the row's platform if no other one is given."""
    platform = platform or PLATFORMS[row.platform]
    costs = Costs(
        compute=Line(base_s=BATCH / platform.single * (1 + COST_OF_DISTRIBUTION)), noise=LogNormal(cv=NOISE_CV)
    )
    network = Link(
        bandwidth_bytes_per_s=min(PORT_BYTES_PER_S, platform.line_bytes_per_s),
        sustained_bytes_per_s=platform.sustained_bytes_per_s,
        store_and_forward=True,
    )
    host = Host(count=ceil(row.gpus / platform.gpus), cores=platform.cores, gpus=platform.gpus)
    job = Scenario(
        protocols.make("ps-layers", [f"barrier={not row.replicated}", "local_aggregation=true"]),
        NAMED[MODEL].without_untrained() if row.replicated else NAMED[MODEL],
        workers=row.gpus,
        servers=row.servers,
        servers_on="workers",
        placement="round-robin" if row.replicated else "greedy",
        steps=STEPS,
        warmup=1,
        batch=BATCH,
        cluster=Cluster(name=platform.name, hosts=(host,), network=network, costs={MODEL: costs}),
    )
    found = simulate(job, replications=1).outcome.throughput()[0]
    advance(TAKES_S, f"{row.platform}, {row.gpus} GPUs")
    return BATCH * row.gpus / float(found)
