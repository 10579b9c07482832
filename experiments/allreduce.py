"""Allreduce as others measured it: one bandwidth fitted on one measurement, the other measurements predicted.

Horovod on 4 hosts of 4 GPUs: the bandwidth is fitted on VGG-16 for each transport; Inception V3 and ResNet-101 are predicted. 128 and
512 GPUs are predicted with the bandwidth of RDMA at 16. Given: images/s of one GPU, 64 images a step. Assumed, not fitted: a Link's
default latency and overhead, 2 % noise of each step, gradients ready at even intervals after the forward pass, the ring for NCCL and
MPI, and Horovod's buffer and cycle of that time (64 MiB, 5 ms). Its control plane was then a message to rank 0 for each gradient of
each rank. Over TCP each takes the Link's overhead. ResNet-101 has many gradients, barely hidden by computing, and these messages
delay it. Over RDMA they are left out, because at 512 GPUs they would exceed the documented step.

Gradients summed by NCCL on 4 nodes behind shaped links, in three ways: its allreduce, one server (a reduce and a broadcast) and
sharded ones (all-to-all and allgather of grouped sends). The share of the nominal bandwidth of each is fitted on one network; the
other networks are predicted. Each node's egress is delayed (its author's script: tc netem), and a latency is therefore one way.
NCCL's chunks and TCP's windows are as documented. At 50 ms the chunks cost an allreduce its time. A window of TCP that explained it
would forbid the reduce and broadcast of the same page, which carry 104 MB/s there.

One row cannot be predicted: a server took 14.1 s for 1024 MiB at 1 Gbit/s and 10 ms, although 2 GiB need 17.2 s on the wire. If the
reduce and the broadcast overlapped, they would also do so at 50 ms and with 256 MiB. But they took 20.6 s at 50 ms, and 5.55 s with
256 MiB, against 4.3 s on the wire. Another row contradicts its neighbours. By the straight line through both sizes, sharded servers
take 0.6 s
for no bytes at 5 ms, but 0.25 s at 10 ms and 0.2 s at 50 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, log2
from typing import TYPE_CHECKING, NamedTuple

from experiments.kit import pages
from sim import protocols
from sim.answers.outcome import Outcome
from sim.base.progress import Progress, advance
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link
from sim.platform.tcp import Tcp
from sim.simulation import simulate

if TYPE_CHECKING:
    from pathlib import Path

BATCH, GPUS_A_HOST, NOISE = 64, 4, LogNormal(cv=0.02)
FITTED = "vgg16"
WORK = 26.0  # of all simulations together, for the time left: seconds on 2 cores
# Images/s on servers of 4 Pascal GPUs, RoCE 25 Gbit/s: Horovod README, September 2017. One GPU, then 16.
ONE_GPU = {"inception_v3": 134.4, "resnet101": 119.4, "vgg16": 130.9}
SIXTEEN_GPUS = {
    "TCP, MPI": {"inception_v3": 2073.3, "resnet101": 1338.3, "vgg16": 616.8},
    "RDMA, MPI": {"inception_v3": 2073.1, "resnet101": 1446.3, "vgg16": 618.0},
    "TCP, NCCL": {"inception_v3": 1990.7, "resnet101": 1685.1, "vgg16": 1308.7},
    "RDMA, NCCL": {"inception_v3": 2022.6, "resnet101": 1746.2, "vgg16": 1787.4},
}
# Share of that many times one GPU, by number of GPUs, servers as above: Horovod documentation, benchmarks.
SCALING = {
    128: {"inception_v3": 0.90, "resnet101": 0.90, "vgg16": 0.79},
    512: {"inception_v3": 0.90, "resnet101": 0.90, "vgg16": 0.68},
}
GPU_LINK = Link(
    latency_s=0.0, overhead_s=5e-6, bandwidth_bytes_per_s=10e9
)  # within a host; slower hops are between hosts


@dataclass(frozen=True)
class Network:
    """Four nodes behind shaped links."""

    latency_s: float
    bandwidth_bytes_per_s: float


NETWORKS = {
    "1 ms, 5 Gbit/s": Network(1e-3, 5e9 / 8),
    "5 ms, 2 Gbit/s": Network(5e-3, 2e9 / 8),
    "10 ms, 1 Gbit/s": Network(10e-3, 1e9 / 8),
    "50 ms, 1 Gbit/s": Network(50e-3, 1e9 / 8),
}
# Seconds that the sum of 256 and of 1024 MiB takes on each of them, by algorithm: B. Yuan, public results page.
MEBIBYTES = (256, 1024)
SECONDS = {
    "nccl": ((0.71, 3.15), (1.77, 7.23), (4.06, 16.87), (7.57, 29.83)),
    "reduce-broadcast": ((1.09, 3.88), (2.86, 10.14), (5.55, 14.10), (6.65, 20.56)),
    "alltoall-allgather": ((0.80, 2.92), (2.35, 7.58), (4.23, 16.18), (4.77, 18.48)),
}
SOCKETS = 2 * 16  # NCCL's documentation: on AWS 2 threads of 8 sockets each, for each of 2 channels
# The script's seconds end with a barrier: gloo's takes log2(nodes) messages one after another.
FITTED_NETWORK = "1 ms, 5 Gbit/s"


def images_per_s(
    model: str, bandwidth_bytes_per_s: float, hosts: int = 4, steps: int = 2, by_name: bool = False
) -> float:
    """The job of Horovod on hosts of 4 GPUs, a rank a GPU. Over TCP its control messages, one `by_name` for each gradient, take time."""
    return _throughput(model, Link(bandwidth_bytes_per_s=bandwidth_bytes_per_s), hosts, GPUS_A_HOST, steps, by_name)


def scaling(model: str, bandwidth_bytes_per_s: float, gpus: int) -> float:
    """Images/s of so many GPUs over as many times one GPU's.

    Ranks are hosts, so that 512 GPUs can be simulated. A ring of n GPUs on h hosts has 2 (n - 1) rounds of m / n bytes. That is a
    ring of h whose messages have (n - 1) / (h - 1) times the overhead and as much of the time for bytes. A round lasts as long as a
    host's port is busy: three hops in four are within hosts, and hide the latency of the fourth. Without noise 16 and 32 GPUs
    simulated one by one are equally fast within 0.3 %. With noise a host's step is one draw and not the slowest of four: with 64 GPUs
    VGG-16 is 1 % too fast, Inception V3 4 %.
    """
    hosts = gpus // GPUS_A_HOST
    rounds = (gpus - 1) / (hosts - 1)
    link = Link(bandwidth_bytes_per_s=bandwidth_bytes_per_s * gpus / hosts / rounds)
    link = link.model_copy(update={"latency_s": 0.0, "overhead_s": link.overhead_s * rounds})
    return _throughput(model, link, hosts, 1, steps=1) / hosts / ONE_GPU[model]


def _throughput(model: str, link: Link, hosts: int, ranks_a_host: int, steps: int, by_name: bool = False) -> float:
    """A GPU computes, a core beside it handles messages."""
    costs = {model: Costs(compute=Line(base_s=BATCH / ONE_GPU[model]), noise=NOISE)}
    host = Host(count=hosts, cores=ranks_a_host, gpus=ranks_a_host)
    cluster = Cluster(hosts=(host,), network=link, local=GPU_LINK, costs=costs)
    settings = ["algorithm=ring", f"fusion_bytes={64 * 2**20}", "cycle_s=0.005", "order=uniform", f"by_name={by_name}"]
    job: dict = {"workers": hosts * ranks_a_host, "batch": BATCH, "steps": steps, "warmup": 0, "cluster": cluster}
    scenario = Scenario(protocols.make("horovod", settings), workload.read(model), **job)
    return float(_simulated(scenario).throughput()[0])


def _simulated(scenario: Scenario) -> Outcome:
    found = simulate(scenario, "event", 1)
    advance(found.wall_s, f"{scenario.workload.name}, {scenario.workers} ranks")
    return found.outcome


def fitted_bandwidth(measured_images_per_s: float, by_name: bool = False, model: str = FITTED) -> float:
    """The bandwidth with which 16 GPUs are as fast as measured, bytes/s."""
    from scipy.optimize import brentq

    def off(logarithm: float) -> float:
        return images_per_s(model, exp(logarithm), by_name=by_name) / measured_images_per_s - 1

    return exp(brentq(off, log(1e8), log(1e10), xtol=5e-3))


def allreduce_s(network: Network, mebibytes: int, share: float, algorithm: str = "nccl", nodes: int = 4) -> float:
    """Seconds on so many nodes that get a `share` of the nominal bandwidth."""
    items = mebibytes * 2**20 // ITEM_BYTES
    model = Workload(name="vector", variables=[Variable(name="vector", shape=(items - 1,))])
    bandwidth_bytes_per_s = network.bandwidth_bytes_per_s * share
    link = Link(latency_s=network.latency_s, bandwidth_bytes_per_s=bandwidth_bytes_per_s, tcp=Tcp(connections=SOCKETS))
    cluster = Cluster(hosts=(Host(count=nodes),), network=link)
    protocol = protocols.make("allreduce", [f"algorithm={algorithm}"])
    scenario = Scenario(protocol, model, nodes, steps=1, warmup=0, cluster=cluster)
    return float(_simulated(scenario).step_s[0, 0]) + log2(nodes) * network.latency_s


class Sum(NamedTuple):
    """One measurement of them."""

    algorithm: str
    network: str
    mebibytes: int
    seconds: float

    @property
    def fitted(self) -> bool:
        """Whether it is one of the two that the share of its algorithm is fitted on."""
        return self.network == FITTED_NETWORK

    def predicted_s(self, share: float) -> float:
        """Its seconds with a `share` of the nominal bandwidth."""
        return allreduce_s(NETWORKS[self.network], self.mebibytes, share, self.algorithm)


def measured_sums() -> list[Sum]:
    """All of them, algorithm by algorithm."""
    return [
        Sum(algorithm, network, size, took_s)
        for algorithm, by_network in SECONDS.items()
        for network, by_size in zip(NETWORKS, by_network, strict=True)
        for size, took_s in zip(MEBIBYTES, by_size, strict=True)
    ]


def fitted_share(algorithm: str) -> float:
    """The share of the nominal bandwidth with which both sizes are nearest to measured, in ratio."""
    from scipy.optimize import minimize_scalar

    measured = [one for one in measured_sums() if one.fitted and one.algorithm == algorithm]

    def off(share: float) -> float:
        return sum(log(one.predicted_s(share) / one.seconds) ** 2 for one in measured)

    return float(minimize_scalar(off, bounds=(0.1, 1), method="bounded", options={"xatol": 1e-3}).x)


def over_tcp(transport: str) -> bool:
    """Whether a transport of SIXTEEN_GPUS passes through the kernel."""
    return transport.startswith("TCP")


def run(out: Path, seed: int = 0) -> None:
    """Print the three tables."""
    with Progress("simulating", WORK):
        of = {name: fitted_bandwidth(measured[FITTED], over_tcp(name)) for name, measured in SIXTEEN_GPUS.items()}
        tables = _sixteen(of), _many(of["RDMA, NCCL"]), _networks()
    pages.show(*tables, sep="\n\n")


def _sixteen(bandwidths: dict[str, float]):
    table = pages.table("16 GPUs, images/s", "transport", "fitted, Gbit/s", "model", "measured", "predicted", "error")
    for name, measured in SIXTEEN_GPUS.items():
        for model, speed in measured.items():
            said = images_per_s(model, bandwidths[name], by_name=over_tcp(name))
            error = "fitted" if model == FITTED else f"{said / speed - 1:+.1%}"
            table.add_row(name, f"{bandwidths[name] * 8e-9:.2f}", model, f"{speed:.0f}", f"{said:.0f}", error)
    return table


def _many(bandwidth_bytes_per_s: float):
    table = pages.table("Share of ideal scaling, RDMA", "GPUs", "model", "documented", "predicted", "error")
    for gpus, documented in SCALING.items():
        for model, share in documented.items():
            said = scaling(model, bandwidth_bytes_per_s, gpus)
            table.add_row(str(gpus), model, f"{share:.0%}", f"{said:.1%}", f"{said / share - 1:+.1%}")
    return table


def _networks():
    shares = {algorithm: fitted_share(algorithm) for algorithm in SECONDS}
    fitted = ", ".join(f"{algorithm} {share:.1%}" for algorithm, share in shares.items())
    title = f"Sums on 4 nodes, share of the nominal bandwidth: {fitted}"
    table = pages.table(title, "algorithm", "network", "MiB", "measured, s", "predicted, s", "error")
    for one in measured_sums():
        said = one.predicted_s(shares[one.algorithm])
        error = f"{said / one.seconds - 1:+.1%}" + (" (fitted)" if one.fitted else "")
        table.add_row(one.algorithm, one.network, str(one.mebibytes), f"{one.seconds:.2f}", f"{said:.2f}", error)
    return table
