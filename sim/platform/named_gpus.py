"""Costs on GPUs that are known by name: peak rates and the share that training reaches, or steps that were measured on one of them."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

from sim.answers import interval
from sim.model import nominal
from sim.model.sizes import ITEM_BYTES
from sim.platform import measured_steps

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.model.costs import Costs
    from sim.model.workload import Workload
    from sim.platform.cluster import Cluster, Host
    from sim.platform.gpu import Gpu


def reference(cluster: Cluster, workload: Workload) -> Gpu | None:
    """The GPU that costs are of: the first one that has a name. None where there is none, or costs are measured."""
    first = next((host.gpu for host in cluster.hosts if host.gpu), None)
    if first is None or "costs" in workload.model_fields_set or cluster.costs_of(workload) is not None:
        return None
    return first


def costs(cluster: Cluster, workload: Workload) -> Costs | None:
    """Costs on the GPU of reference; None without one.

    The error of the rate is that of the least known GPU of the cluster.
    """
    gpu = reference(cluster, workload)
    if gpu is None:
        return None
    if workload.step:
        return _of_steps(cluster, workload, gpu)
    if not workload.is_nominal or workload.flops_per_sample is None:
        return workload.costs.model_copy(update=nominal.of_memory(gpu.memory_bytes_per_s))
    spread = max(host.gpu.reached(workload.precision).spread or 0.0 for host in cluster.hosts if host.gpu)
    reached = flops_per_s(gpu, workload)
    return nominal.on_gpu(workload.flops_per_sample, workload.parameters, reached, gpu.memory_bytes_per_s, spread)


def _of_steps(cluster: Cluster, workload: Workload, gpu: Gpu) -> Costs:
    """Costs by measured steps, which contain their update: it takes no further time."""
    gpus = {host.gpu.name: host.gpu for host in cluster.hosts if host.gpu}
    spread = max(measured_steps.on(one, workload, cluster).spread for one in gpus.values())
    memory = nominal.of_memory(gpu.memory_bytes_per_s)
    found = measured_steps.on(gpu, workload, cluster).costs(workload.parameters)
    return found.model_copy(update={**memory, "update": found.update, "error": spread})


def flops_per_s(gpu: Gpu, workload: Workload) -> float:
    """Operations a second that training reaches on a GPU, in the middle of models."""
    rate = gpu.reached(workload.precision)
    return rate.peak * (rate.share or 1.0)


def relative(cluster: Cluster, workload: Workload, computes: bool, batch: int) -> list[Host]:
    """The cluster's hosts with their speeds relative to the GPU of reference; as they are without one.

    Args:
        computes: whether workers sit on them, or servers alone.
        batch: samples, at which speeds of GPUs are compared whose steps were measured.
    """
    gpu = reference(cluster, workload)
    if gpu is None:
        return list(cluster.hosts)
    speeds = [_speed(host, gpu, cluster, workload, computes, batch) for host in cluster.hosts]
    return [
        host.model_copy(update={"speed": host.speed * times}) for host, times in zip(cluster.hosts, speeds, strict=True)
    ]


def _speed(host: Host, gpu: Gpu, cluster: Cluster, workload: Workload, computes: bool, batch: int) -> float:
    """Relative to this GPU. A server's work is over parameters: where there is no GPU, a core's memory says how fast."""
    if host.gpu == gpu:
        return 1.0
    if host.gpu and workload.step:
        ours, theirs = (
            measured_steps.on(one, workload, cluster).costs(workload.parameters).compute(batch)
            for one in (gpu, host.gpu)
        )
        return ours / theirs
    if host.gpu:
        return flops_per_s(host.gpu, workload) / flops_per_s(gpu, workload)
    if host.gpus or computes:
        return nominal.CORE_FLOPS / flops_per_s(gpu, workload)
    return nominal.CORE_BYTES_PER_S / gpu.memory_bytes_per_s


def covers(scenario: Scenario) -> bool:
    """Whether the answer's error is that of a GPU's rate: all workers have such GPUs, and nothing was measured there."""
    if reference(scenario.cluster, scenario.workload) is None:
        return False
    if not (scenario.workload.is_nominal or (scenario.workload.step and scenario.costs.error)):
        return False
    return all(scenario.machines[index].gpu for index in scenario.hosts[scenario.servers :])


def check(scenario: Scenario) -> None:
    """Refuse a cluster on which a workload cannot be computed, or nothing says how fast.

    Raises:
        WrongSetting: a format of numbers that a GPU does not have, or steps that were not measured there; see
            sim.platform.measured_steps.
    """
    cluster, workload = scenario.cluster, scenario.workload
    measured_steps.check(scenario)
    if reference(cluster, workload) is None:
        return
    for gpu in {host.gpu.name: host.gpu for host in cluster.hosts if host.gpu}.values():
        gpu.reached(workload.precision)


def note(scenario: Scenario) -> str:
    """The uncertainty of computing, as text."""
    cluster, workload = scenario.cluster, scenario.workload
    gpus = {host.gpu.name: host.gpu for host in cluster.hosts if host.gpu}
    formats = {name: gpu.format_of(workload.precision) for name, gpu in gpus.items()}
    said = " or ".join(f"{name} ({formats[name]})" for name in gpus)
    known = costs(cluster, workload)
    factor = exp(interval.of_normal(known.error if known else 0.0))
    unknown = [name for name, gpu in gpus.items() if not gpu.is_known(workload.precision)]
    why = f", as no model's rate on {' or '.join(unknown)} in this format was at hand" if unknown else ""
    held_bytes = 2 * ITEM_BYTES * workload.parameters
    small = [name for name, gpu in gpus.items() if 0 < gpu.memory_bytes < held_bytes]
    full = (
        f"; parameters and gradients take {held_bytes / 1e9:,.0f} GB, more than {' or '.join(small)} has"
        if small
        else ""
    )
    return f"no measurement of {workload.name} on {said}: computing is within a factor {factor:.1f}, nine times in ten{why}{full}"
