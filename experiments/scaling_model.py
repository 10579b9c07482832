"""A published cluster as the simulator has it: three constants, and a row of a table as a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from experiments.scaling_tables import Platform, Row
from sim.base.progress import advance
from sim.simulation import simulate

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

BATCH = 64
STEPS = 6  # measured; one more is warm-up


@dataclass(frozen=True)
class Constants:
    """Fitted constants, equal for all platforms.

    Args:
        cost_of_distribution: share by which a GPU computes longer when its variables are not its own.
        noise: coefficient of variation of a worker's computation from step to step; the slowest decides.
        port_bytes_per_s: the most that TensorFlow's gRPC gets through a host's port, however fast the network.
    """

    cost_of_distribution: float
    noise: float
    port_bytes_per_s: float

    def __str__(self) -> str:
        return (
            f"distribution costs {self.cost_of_distribution:.1%} of computation; noise, cv {self.noise:.1%}; "
            f"gRPC carries at most {self.port_bytes_per_s / 1e9:.2f} GB/s a host"
        )


def job(
    row: Row, platform: Platform, constants: Constants, model: str = "inception_v3", steps: int = STEPS, **options
) -> Scenario:
    """The measured job; `options` replace those of the protocol and the scenario."""
    from sim.job.scenario import Scenario
    from sim.laws import LogNormal
    from sim.model.costs import Costs, Line
    from sim.model.workload import NAMED
    from sim.platform.cluster import Cluster, Host, Link
    from sim.protocols.ps_layers import LayerwiseServers

    compute_s = BATCH / platform.single * (1 + constants.cost_of_distribution)
    costs = Costs(compute=Line(base_s=compute_s), noise=LogNormal(cv=constants.noise))
    network = Link(
        bandwidth_bytes_per_s=min(platform.line_bytes_per_s, constants.port_bytes_per_s),
        sustained_bytes_per_s=platform.sustained_bytes_per_s,
        store_and_forward=True,
    )
    host = Host(count=ceil(row.gpus / platform.gpus), cores=platform.cores, gpus=platform.gpus)
    settings = {"barrier": not row.replicated, "local_aggregation": True}
    protocol = LayerwiseServers(**{name: options.pop(name, value) for name, value in settings.items()})
    more = {"placement": "round-robin" if row.replicated else "greedy", "servers_on": "workers", **options}
    return Scenario(
        protocol,
        NAMED[model].without_untrained() if row.replicated else NAMED[model],
        workers=row.gpus,
        servers=row.servers,
        steps=steps,
        warmup=1,
        batch=BATCH,
        cluster=Cluster(name=platform.name, hosts=(host,), network=network, costs={model: costs}),
        **more,
    )


def throughput(scenario: Scenario) -> float:
    """Images per second of one simulated run."""
    found = float(simulate(scenario, "event", 1).outcome.throughput()[0])
    advance(
        scenario.workers * scenario.rounds * len(scenario.traffic.placed),
        f"{scenario.workload.name}, {scenario.workers} GPUs",
    )
    return found
