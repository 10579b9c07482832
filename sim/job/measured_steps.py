"""Steps that were measured on one GPU: used as measured there, and on another GPU by the ratio of what training reaches on both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, hypot, log
from typing import TYPE_CHECKING, NamedTuple

from sim.base import interval
from sim.base.errors import WrongSetting
from sim.model import nominal
from sim.platform.gpu import Gpu

if TYPE_CHECKING:
    from sim.base.ranges import Precision
    from sim.job.scenario import Scenario
    from sim.model.costs import Costs
    from sim.model.workload import Step, Workload
    from sim.platform.cluster import Cluster, Host

ALLOWED = 'one kind of GPU, on which the steps were measured; or gpu = "A100" in each step; or flops_per_sample in place of step'


class Computing(NamedTuple):
    """The steps by which computing on a GPU is known.

    Args:
        steps: measured on one GPU in one format.
        gpu, precision: which; None where they do not say, and are taken as measured here.
        times: as long as there a step takes here.
        spread: standard deviation of the logarithm of `times`; 0 where the steps were measured here.
    """

    steps: Sequence[Step]
    gpu: Gpu | None
    precision: Precision | None
    times: float = 1.0
    spread: float = 0.0

    def costs(self, parameters: int) -> Costs:
        """Costs of a model with so many parameters; all but computing is nominal."""
        found = nominal.measured(self.steps, parameters)
        return found if self.times == 1 else found.with_computing(self.times)


def on(gpu: Gpu, workload: Workload, cluster: Cluster) -> Computing:
    """The steps that say most of a GPU: those of this very one, or else those with the least spread, and nearest in speed.

    Raises:
        WrongSetting: steps of a GPU, or in a format, that nobody knows.
    """
    found = [_carried(steps, gpu, workload, cluster) for steps in workload.steps_by_gpu]
    return min(found, key=lambda one: (one.spread, abs(log(one.times))))


def _carried(steps: Sequence[Step], gpu: Gpu, workload: Workload, cluster: Cluster) -> Computing:
    if steps[0].gpu is None:
        return Computing(steps, None, None)
    source = named(steps[0].gpu, cluster)
    there, here = (steps[0].precision or workload.precision), gpu.format_of(workload.precision)
    there = source.format_of(there)
    if (source.name, there) == (gpu.name, here):
        return Computing(steps, source, there)
    kind = workload.kind if there == here else None
    was, now = source.reached(there, kind), gpu.reached(here, kind)
    times = was.peak * (was.share or 1.0) / (now.peak * (now.share or 1.0))
    return Computing(steps, source, there, times, hypot(was.spread or 0.0, now.spread or 0.0))


def named(name: str, cluster: Cluster | None = None) -> Gpu:
    """The GPU of this name: of a host of the cluster, or of the catalogue, which has "NVIDIA A100-SXM4-40GB" as A100.

    Raises:
        WrongSetting: there is none, so that no rate of it is known.
    """
    from sim.platform import catalogue

    theirs = {host.gpu.name.lower(): host.gpu for host in cluster.hosts if host.gpu} if cluster else {}
    return theirs.get(name.lower()) or catalogue.gpu_of(name) or catalogue.find("gpus", name, "step: gpu")


def check(scenario: Scenario) -> None:
    """Refuse steps where nothing says how long they take on the hosts that compute.

    Raises:
        WrongSetting: steps of a GPU where a host has none by name, or steps that do not name theirs where hosts differ.
    """
    steps = scenario.workload.step
    if not steps or scenario.cluster.costs_of(scenario.workload) is not None:
        return
    plain = next((host.name for host in _computing(scenario) if host.gpu is None), None)
    if steps[0].gpu and plain:
        allowed = f"a GPU by its name, as the steps were measured on {steps[0].gpu}"
        raise WrongSetting(f"--cluster: hosts: gpu of {plain}", None, allowed)
    check_one_kind([scenario])


def check_one_kind(scenarios: Iterable[Scenario]) -> None:
    """Raise WrongSetting for jobs on several kinds of GPU whose measured times do not say which GPU they are of."""
    gpus: dict[object, dict[str, None]] = {}  # by whose times they are
    for scenario in scenarios:
        claimed = _claimed(scenario.cluster, scenario.workload)
        for host in _computing(scenario) if claimed else ():
            name = host.gpu.name if host.gpu else "GPUs without a name" if host.gpus else "none"
            gpus.setdefault(claimed, {})[name] = None
        if claimed and len(gpus[claimed]) > 1:
            raise WrongSetting("--cluster: hosts: gpu", ", ".join(gpus[claimed]), ALLOWED)


def _claimed(cluster: Cluster, workload: Workload) -> object:
    """Times that were measured on some GPU, which they do not name; None of others."""
    if (fitted := cluster.costs_of(workload)) is not None:
        return fitted
    return (workload.name, workload.step) if workload.step and workload.step[0].gpu is None else None


def _computing(scenario: Scenario) -> Sequence[Host]:
    """The hosts on which ranks compute; one of each kind, if all are of one."""
    hosts = scenario.cluster.hosts
    if len(hosts) == 1:
        return hosts
    return [scenario.machines[index] for index in sorted(set(scenario.computing_hosts))]


def used(scenario: Scenario) -> list[Step]:
    """The steps by which the computing of a job is known; empty if it is known otherwise."""
    workload, cluster = scenario.workload, scenario.cluster
    if not workload.step or workload.step[0].gpu is None:
        return list(workload.step)
    gpus = [host.gpu for host in _computing(scenario) if host.gpu]
    return [step for gpu in gpus for step in on(gpu, workload, cluster).steps]


def note(scenario: Scenario) -> str:
    """Where the steps of a job were measured, and how they were carried over, as text."""
    workload, cluster = scenario.workload, scenario.cluster
    if workload.step[0].gpu is None:
        speeds = [host.speed for host in _computing(scenario)]
        slowest, fastest = min(speeds), max(speeds)
        where = "on these hosts"
        if (slowest, fastest) != (1, 1):
            where = f"at speed 1, and these hosts have {slowest:g}{f' to {fastest:g}' * (fastest > slowest)}"
        return f'the step of {workload.name} is taken as measured {where}: say gpu = "NAME" in it'
    gpus = {host.gpu.name: host.gpu for host in _computing(scenario) if host.gpu}
    return "; ".join(_said(on(gpu, workload, cluster), gpu, workload) for gpu in gpus.values())


def _said(one: Computing, gpu: Gpu, workload: Workload) -> str:
    here = f"{gpu.name} ({gpu.format_of(workload.precision)})"
    there = f"{one.gpu and one.gpu.name} ({one.precision})"
    if here == there:
        return f"computing of {workload.name} as measured on {here}"
    factor = exp(interval.of_normal(one.spread))
    ratio = f"{one.times:.3g} times those on {there}, the ratio of the rates that training reaches"
    return (
        f"no step of {workload.name} was measured on {here}: {ratio}; within a factor {factor:.1f}, nine times in ten"
    )
