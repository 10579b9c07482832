"""Horovod's page of 2017: 16 GPUs on 4 hosts by four transports, one bandwidth fitted on one model, other models simulated.

Given: images/s of one GPU, 64 images a step. Assumed, not fitted: a Link's default latency and overhead, 2 % noise of each step,
gradients ready at even intervals after the forward pass, the ring for NCCL and MPI, and Horovod's buffer and cycle of that time
(64 MiB, 5 ms). Its control plane was then a message to rank 0 for each gradient of each rank. Over TCP each takes the Link's overhead.
ResNet-101 has many gradients, barely hidden by computing, and these messages delay it. Over RDMA they are left out, because at 512 GPUs
they would exceed the documented step.
"""

from __future__ import annotations

from math import exp, log

from experiments import figures
from sim import protocols
from sim.base.progress import advance
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.simulation import simulate

BATCH, HOSTS, GPUS_A_HOST, NOISE = 64, 4, 4, LogNormal(cv=0.02)
FITTED = "vgg16"


def _images_per_s(gpus: int) -> dict[str, dict[str, float]]:
    """By transport and model."""
    rows = figures.table("sizes/horovod_page")
    some = rows[rows.gpus == gpus]
    return {name: dict(zip(of.model, of.samples_per_s, strict=True)) for name, of in some.groupby("system", sort=False)}


SIXTEEN_GPUS, (ONE_GPU, *_) = _images_per_s(16), _images_per_s(1).values()
# Within a host; slower hops are between hosts.
GPU_LINK = Link(latency_s=0.0, overhead_s=5e-6, bandwidth_bytes_per_s=10e9)


def images_per_s(model: str, bandwidth_bytes_per_s: float, steps: int = 2, by_name: bool = False) -> float:
    """The job of Horovod on 4 hosts of 4 GPUs, a rank a GPU, beside which a core handles messages.

    Over TCP its control messages, one `by_name` for each gradient, take time.
    """
    costs = {model: Costs(compute=Line(base_s=BATCH / ONE_GPU[model]), noise=NOISE)}
    host = Host(count=HOSTS, cores=GPUS_A_HOST, gpus=GPUS_A_HOST)
    network = Link(bandwidth_bytes_per_s=bandwidth_bytes_per_s)
    cluster = Cluster(hosts=(host,), network=network, local=GPU_LINK, costs=costs)
    settings = ["algorithm=ring", f"fusion_bytes={64 * 2**20}", "cycle_s=0.005", "order=uniform", f"by_name={by_name}"]
    job: dict = {"workers": HOSTS * GPUS_A_HOST, "batch": BATCH, "steps": steps, "warmup": 0, "cluster": cluster}
    scenario = Scenario(protocols.make("horovod", settings), workload.read(model), **job)
    found = simulate(scenario, "event", 1)
    advance(found.wall_s, f"{model}, {scenario.workers} ranks")
    return float(found.outcome.throughput()[0])


def fitted_bandwidth(measured_images_per_s: float, by_name: bool = False) -> float:
    """The bandwidth with which 16 GPUs are as fast as measured, bytes/s."""
    from scipy.optimize import brentq

    def off(logarithm: float) -> float:
        return images_per_s(FITTED, exp(logarithm), by_name=by_name) / measured_images_per_s - 1

    return exp(brentq(off, log(1e8), log(1e10), xtol=5e-3))


def over_tcp(transport: str) -> bool:
    """Whether a transport of SIXTEEN_GPUS passes through the kernel."""
    return transport.startswith("TCP")
