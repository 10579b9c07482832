"""The time of copies between a rank's host and its device."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.job.scenario import Scenario


def copies_s(scenario: Scenario) -> tuple[float, float]:
    """Seconds of a worker's copies to its device and back, for a gradient of a whole minibatch; 0 where nothing is copied."""
    if not scenario.traffic.stages:
        return 0.0, 0.0
    costs = scenario.costs
    return costs.to_device(scenario.traffic.to_device_bytes(scenario.batch)), costs.to_host(
        scenario.traffic.to_host_bytes
    )
