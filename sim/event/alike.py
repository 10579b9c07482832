"""Whether all workers of a scenario are alike, so that one text stands for them (sim.event.cohort)."""

from __future__ import annotations

from sim import verbs
from sim.event import plain
from sim.job.scenario import Scenario
from sim.protocols import is_ours
from sim.protocols.base import VERBS

LEAST_WORKERS = 16  # fewer are as fast one by one
DOES = frozenset(
    (
        "steps",
        "step",
        "now_s",
        "master",
        "workers",
        "send",
        "receive",
        "gather",
        "sleep",
        "compute",
        "compute_until",
        "take_up",
        "update",
        "evaluate",
    )
)  # primitives and verbs of a master with its cohort


def suits(scenario: Scenario) -> bool:
    """Whether all workers do the same at every moment that another rank sees, and nobody but the master sends to them.

    Each has a host, with a core and a port of its own, and waits for the master's parameters alone. Their order
    of arrival decides nothing, because the master adds up all gradients before it does anything else.
    """
    protocol = scenario.protocol
    if not is_ours(protocol) or protocol.has_servers or protocol.masterless or scenario.workers < LEAST_WORKERS:
        return False
    spoken = frozenset((*VERBS, *verbs.__all__)) - set(protocol.__dataclass_fields__)
    if not protocol.names & spoken <= DOES:
        return False
    if scenario.summed or scenario.gathered_variables or protocol.local_aggregation or protocol.delay_std_s:
        return False
    return plain.own_ports(scenario)
