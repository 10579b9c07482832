"""What of a scenario lets ranks take time by arithmetic, without an event for each thing that they do."""

from __future__ import annotations

from sim.job.scenario import Scenario


def by_arithmetic(scenario: Scenario) -> bool:
    """Whether nothing that ranks share makes their work longer."""
    link, local = scenario.network, scenario.local
    simple = scenario.cores_suffice and not link.fair and not (local.wakes and local.latency_s)
    return simple and not scenario.protocol.layerwise


def queues(scenario: Scenario) -> bool:
    """Whether a port passes one message after another, each in the time that its size takes."""
    link = scenario.network
    return not (link.fair or link.sustained_bytes_per_s or link.tcp or link.store_and_forward)
