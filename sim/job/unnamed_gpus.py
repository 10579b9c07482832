"""GPUs without a name or rates: their work over parameters is that of a GPU's memory, not of a core's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.model import nominal
from sim.model.costs import Line

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.model.costs import Costs

SERVED = ("reduce", "update")  # a server's work


def compute(scenario: Scenario) -> bool:
    """Whether all workers compute on such GPUs, by costs that were not measured there as a whole."""
    measured = "costs" in scenario.workload.model_fields_set or scenario.cluster.costs_of(scenario.workload) is not None
    hosts = (scenario.machines[index] for index in set(scenario.computing_hosts))
    return not measured and all(host.gpus and host.gpu is None for host in hosts)


def costs(scenario: Scenario) -> Costs | None:
    """The workload's own costs, but for the work over parameters; None of other jobs.

    A measured step contains its update, and a server's work is a core's where its host has no GPU. The hosts' speed is of computing.
    Sums of an allreduce take nothing where the links' times contain them.
    """
    if not compute(scenario):
        return None
    memory = nominal.of_memory(nominal.GPU_BYTES_PER_S / scenario.machines[scenario.computing_hosts[0]].speed)
    if any(not scenario.machines[index].gpus for index in scenario.hosts[: scenario.servers]):
        memory = {name: line for name, line in memory.items() if name not in SERVED}
    known = scenario.cluster.provenance
    if known and known.sums_in_links and scenario.summed:
        memory["reduce"] = Line()
    if scenario.workload.step:
        memory.pop("update", None)
    return scenario.workload.costs.model_copy(update=memory)


def note(scenario: Scenario) -> str:
    """How fast their memory is taken to be, as text; empty for other jobs."""
    rate = f"{nominal.GPU_BYTES_PER_S / 1e9:g} GB/s"
    return f"; the memory of GPUs without a name is taken to pass {rate}" if compute(scenario) else ""
