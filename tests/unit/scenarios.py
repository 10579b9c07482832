"""Scenarios without a random number: every protocol on many clusters, whose hosts all differ in speed."""

from sim import protocols
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link, Tcp

SPEEDS = tuple(1 - i / 37 for i in range(9))  # no two hosts alike, or events at one moment could come in either order
CREDIT = Link(sustained_bytes_per_s=2e7)
FAIR = Link(
    fair=True,
    latency_s=1e-4,
    bandwidth_bytes_per_s=5e7,
    unfairness=0.2,
    ramp_bytes=1e5,
    burst_bytes=1e5,
    eager_bytes=65536,
    queue_bytes=1e5,
    buffer_bytes=1e5,
)
LONG = Link(latency_s=1e-3, bandwidth_bytes_per_s=1e8, tcp=Tcp())
WAKES = Link(latency_s=1e-5, overhead_s=2e-5, bandwidth_bytes_per_s=1e9, wakes=True)


def hosts(slots: int = 1, **of_host) -> tuple[Host, ...]:
    return tuple(Host(name=f"h{i}", speed=speed, slots=slots, **of_host) for i, speed in enumerate(SPEEDS))


# Protocols that any number of workers and of layers can follow.
ANYWHERE = [name for name in protocols.PROTOCOLS if name not in ("pipeline", "hierarchical")]
CLUSTERS = {
    "one core each": Cluster(hosts=hosts()),
    "four GPUs": Cluster(hosts=hosts(4, cores=8, gpus=4)),
    "two cores": Cluster(hosts=hosts(2, cores=2)),
    "fair shares": Cluster(hosts=hosts(cores=2), network=FAIR),
    "polls": Cluster(hosts=hosts(9, cores=2, contention=0.05), poll_s=4e-5, oversleep_s=6e-5),
    "long way": Cluster(hosts=hosts(cores=2), network=LONG),
    "whole messages": Cluster(hosts=hosts(cores=2), network=Link(store_and_forward=True)),
    "credits": Cluster(hosts=hosts(cores=2), network=CREDIT),
    "woken": Cluster(hosts=hosts(2, cores=2), local=WAKES),
}
SETTINGS = (
    ("fmb",),
    ("amb", "time_limit_s=0.02"),
    ("amb-dg", "time_limit_s=0.02"),
    ("kbatch-async", "gradients=2"),
    ("ps-async",),
    ("ps-sync",),
    ("ps-sync", "barrier=true"),
    ("ps-backup",),
    ("ps-backup", "barrier=true"),
    ("ps-ssp",),
    ("ps-layers",),
    ("allreduce",),
    ("allreduce", "algorithm=ring", "fused=false"),
    ("allreduce", "algorithm=nccl"),
    ("allreduce", "algorithm=tree"),
    ("allreduce", "algorithm=alltoall-allgather"),
    ("allreduce", "algorithm=hierarchical"),
    ("allreduce", "algorithm=reduce-broadcast"),
    ("hybrid",),
    ("horovod",),
    ("horovod", "by_name=true"),
    ("horovod", "order=uniform", "fusion_bytes=100000"),
)


def bare(name: str) -> workload.Workload:
    """A workload whose work takes the same time each time, but longer after a wait."""
    of = workload.read(name)
    costs = Costs(
        input=Line(base_s=1e-4),
        compute=Line(base_s=1e-4, slope_s=3e-5, cold_s=2e-3),
        update=Line(base_s=2e-4, slope_s=1e-9, cold_s=1e-3),
        pack=Line(base_s=1e-5, slope_s=1e-9),
        reduce=Line(base_s=2e-5, slope_s=1e-9),
    )
    return of.model_copy(update={"costs": costs})
