"""Costs on GPUs: of those known by name, peak rates and the share that training reaches, or steps that were measured on one of them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import exp, hypot, log
from typing import TYPE_CHECKING

from sim.base import interval
from sim.job import measured_steps
from sim.model import nominal
from sim.model.costs import Line
from sim.platform.gpu import LARGE, OTHERS_OF, SLOPE, SLOPE_SPREAD

if TYPE_CHECKING:
    from sim.base.ranges import Precision
    from sim.job.scenario import Scenario
    from sim.model.costs import Costs, Line
    from sim.model.workload import Workload
    from sim.platform.cluster import Host
    from sim.platform.gpu import Gpu, Rate


def reference(scenario: Scenario) -> Gpu | None:
    """The GPU that costs are of: that of most workers; of equally many, the slowest. None without named ones, or if costs are measured.

    Neither the order of hosts nor hosts without a rank decide.
    """
    if scenario.has_measured_costs:
        return None
    workers = Counter(gpu for gpu in gpus(scenario) if gpu)

    def last(gpu: Gpu) -> tuple[int, float, float, str]:
        return -workers[gpu], -_sample_s(gpu, scenario), gpu.memory_bytes_per_s, gpu.name

    return min(workers, key=last) if len(workers) > 1 else next(iter(workers), None)


def gpus(scenario: Scenario) -> list[Gpu | None]:
    """The GPU of each worker, as far as it has a name or rates."""
    return [scenario.kinds[index].gpu for index in scenario.computing_hosts]


def named(scenario: Scenario) -> dict[str, Gpu]:
    """Those of workers by their names."""
    return {gpu.name: gpu for gpu in gpus(scenario) if gpu}


def costs(scenario: Scenario) -> Costs | None:
    """Costs on the GPU of reference; None without one.

    The error of the rate is that of the least known GPU of a worker.
    """
    gpu, workload = reference(scenario), scenario.workload
    if gpu is None:
        return None
    memory = nominal.of_memory(gpu.memory_bytes_per_s)
    if workload.step:  # which contain their update: it takes no further time
        each = (measured_steps.on(one, workload, scenario.cluster).spread for one in named(scenario).values())
        found = measured_steps.on(gpu, workload, scenario.cluster).costs(workload.parameters)
        return found.model_copy(update={**memory, "update": found.update, "error": max(each)})
    if not workload.is_nominal or workload.flops_per_sample is None:
        return workload.costs.model_copy(update=memory)
    spread = max(_rate(one, workload).spread or 0.0 for one in named(scenario).values())
    reached = flops_per_s(gpu, workload)
    return nominal.on_gpu(workload.flops_per_sample, workload.parameters, reached, gpu.memory_bytes_per_s, spread)


def _sample_s(gpu: Gpu, scenario: Scenario) -> float:
    """Seconds of a gradient, by which GPUs are compared: of the batch if steps were measured, or of an operation."""
    workload = scenario.workload
    if workload.step:
        of_steps = measured_steps.on(gpu, workload, scenario.cluster).costs(workload.parameters)
        return float(of_steps.compute(scenario.batch))
    return 1 / flops_per_s(gpu, workload)


def flops_per_s(gpu: Gpu, workload: Workload) -> float:
    """Operations a second that training reaches on a GPU, in the middle of models of its class."""
    return (rate := _rate(gpu, workload)).peak * (rate.share or 1.0)


def format_of(gpu: Gpu, workload: Workload) -> Precision:
    """The format of arithmetic; that of steps that were measured does not follow from the class of the model."""
    return gpu.format_of(workload.precision, workload.kind if workload.is_nominal else None)


def _rate(gpu: Gpu, workload: Workload) -> Rate:
    """What the workload reaches: a small decoder uses less of a GPU than others, and how much less depends on the code."""
    rate, small = gpu.reached(used := format_of(gpu, workload), workload.kind), log(workload.parameters / LARGE)
    if small >= 0 or ("decoder", used) not in OTHERS_OF or workload.kind != "decoder":
        return rate
    share, spread = (rate.share or 1.0) * exp(SLOPE * small), hypot(rate.spread or 0.0, SLOPE_SPREAD * small)
    return rate.model_copy(update={"share": share, "spread": spread})


def machines(scenario: Scenario) -> list[Host]:
    """The kind of each machine, up to the last that has a rank, with its speed relative to the GPU of reference; as it is without one."""
    gpu, used = reference(scenario), set(scenario.computing_hosts)
    if gpu is None:
        return scenario.kinds

    @cache
    def of(place: int, computes: bool) -> Host:
        host = scenario.cluster.hosts[place]
        return host.model_copy(update={"speed": host.speed * _speed(host, gpu, scenario, computes)})

    return [of(place, index in used) for index, place in enumerate(scenario.places)]


def _speed(host: Host, gpu: Gpu, scenario: Scenario, computes: bool) -> float:
    """Relative to this GPU. A server's work is over parameters: memory says how fast."""
    if host.gpu == gpu:
        return 1.0
    if host.gpu and computes:
        return _sample_s(gpu, scenario) / _sample_s(host.gpu, scenario)
    if host.gpu:
        return host.gpu.memory_bytes_per_s / gpu.memory_bytes_per_s
    if host.gpus or computes:
        return nominal.CORE_FLOPS / flops_per_s(gpu, scenario.workload)
    return 1.0 if cores_serve(scenario) else nominal.TO_ADD * nominal.CORE_BYTES_PER_S / gpu.memory_bytes_per_s


def cores_serve(scenario: Scenario) -> bool:
    """Whether sums and updates are work of servers on hosts without GPUs alone, where workers compute on GPUs."""
    protocol, hosts = scenario.protocol, scenario.hosts[: scenario.servers]
    if not hosts or scenario.summed or scenario.gathered_variables or protocol.local_aggregation:
        return False
    compute = all(scenario.kinds[index].gpus for index in scenario.computing_hosts)
    return compute and not any(scenario.kinds[index].gpus for index in hosts)


def of_cores(scenario: Scenario) -> dict[str, Line | None]:
    """Costs of the servers' work on a nominal core, where `cores_serve`; whatever the workers' GPU is called."""
    workload = scenario.workload
    core = nominal.nominal(workload.flops_per_sample or 0.0, workload.parameters)
    names = ["reduce", "reduce_rows", "update"] + ["evaluate"] * (workload.flops_per_sample is not None)
    return {name: getattr(core, name) for name in names}


def covers(scenario: Scenario) -> bool:
    """Whether the answer's error is that of a GPU's rate: all workers have such GPUs, and nothing was measured there."""
    if reference(scenario) is None or None in gpus(scenario):
        return False
    return scenario.workload.is_nominal or bool(scenario.workload.step and scenario.costs.error)


def check(scenario: Scenario) -> None:
    """Refuse a cluster on which a workload cannot be computed, or nothing says how fast.

    Raises:
        WrongSetting: a format of numbers that a GPU does not have, or steps that were not measured there; see
            sim.job.measured_steps.
    """
    measured_steps.check(scenario)
    if reference(scenario) is None:
        return
    for gpu in named(scenario).values():
        _rate(gpu, scenario.workload)


def note(scenario: Scenario) -> str:
    """The uncertainty of computing, as text."""
    workload, known, of_name = scenario.workload, costs(scenario), named(scenario)
    said = " or ".join(f"{name} ({format_of(gpu, workload)})" for name, gpu in of_name.items())
    factor = exp(interval.of_normal(known.error if known else 0.0))
    unknown = [name for name, gpu in of_name.items() if not gpu.is_known(format_of(gpu, workload), workload.kind)]
    why = f", as no model's rate on {' or '.join(unknown)} in this format was at hand" if unknown else ""
    guessed = workload.kind == "decoder" and not workload.architecture
    taken = "; taken as a decoder with fused attention: say architecture" if guessed else ""
    return f"no measurement of {workload.name} on {said}: computing is within a factor {factor:.1f}, nine times in ten{why}{taken}"


def are_unnamed(scenario: Scenario) -> bool:
    """Whether all workers compute on GPUs without a name or rates, by costs that were not measured there as a whole."""
    hosts = (scenario.machines[index] for index in set(scenario.computing_hosts))
    return not scenario.has_measured_costs and all(host.gpus and host.gpu is None for host in hosts)


def costs_of_unnamed(scenario: Scenario) -> Costs | None:
    """The workload's own costs, but for the work over parameters, which is that of a GPU's memory; None of other jobs.

    A measured step contains its update, and a server's work is a core's where its host has no GPU. The hosts' speed is of computing.
    Sums of an allreduce take nothing where the links' times contain them.
    """
    if not are_unnamed(scenario):
        return None
    memory = nominal.of_memory(nominal.GPU_BYTES_PER_S / scenario.machines[scenario.computing_hosts[0]].speed)
    if any(not scenario.machines[index].gpus for index in scenario.hosts[: scenario.servers]):
        memory = {name: line for name, line in memory.items() if name not in ("reduce", "update")}
    known = scenario.cluster.provenance
    if known and known.sums_in_links and scenario.summed:
        memory["reduce"] = Line()
    if scenario.workload.step:
        memory.pop("update", None)
    return scenario.workload.costs.model_copy(update=memory)


def note_on_unnamed(scenario: Scenario) -> str:
    """How fast their memory is taken to be, as text; empty for other jobs."""
    rate = f"{nominal.GPU_BYTES_PER_S / 1e9:g} GB/s"
    return f"; the memory of GPUs without a name is taken to pass {rate}" if are_unnamed(scenario) else ""
