"""The work of a training that ends at a target: samples by the global batch, from a table of steps to that target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sim.answers.interval import LEVEL
from sim.base.errors import WrongSetting
from sim.efficiency import table
from sim.protocols.ps_sync import BarrierServers

if TYPE_CHECKING:
    from sim.efficiency.law import Steps
    from sim.job.scenario import Scenario
    from sim.protocols.base import Protocol


class Work(NamedTuple):
    """What a configuration has to do until the target.

    Args:
        batch: samples of an update.
        steps: updates.
        beyond: doublings of the batch beyond the table.
    """

    batch: int
    steps: Steps
    beyond: float

    @property
    def samples(self) -> float:
        """The median."""
        return self.batch * self.steps.median

    @property
    def error(self) -> float:
        """Standard deviation of the logarithm of samples, of the normal law with the same interval."""
        from scipy.special import ndtri

        return math.log(self.steps.high / self.steps.median) / float(ndtri((1 + LEVEL) / 2))

    def as_json(self) -> dict:
        """The work as in a plan's rows."""
        return {
            "global_batch": self.batch,
            "steps": {"low": self.steps.low, "mid": self.steps.median, "high": self.steps.high},
            "doublings_beyond": self.beyond,
        }


class Until:
    """The target of a table.

    Args:
        path: of the table, columns batch and steps.

    Raises:
        WrongSetting: see sim.efficiency.table.
    """

    def __init__(self, path: str):
        self.law = table.read(path)

    def work(self, job: Scenario) -> Work:
        """The work of a job, whose global batch is that of the gradients in an update."""
        batch = job.batch * job.protocol.gradients_per_update(job.workers)
        return Work(batch, self.law.steps(batch), self.law.beyond(batch))


def check(protocol: Protocol) -> None:
    """Refuse a protocol of which steps of one global batch on the newest parameters say nothing.

    Raises:
        WrongSetting: naming `protocols`.
    """
    if protocol.limits_computing:
        why = "the batch differs from step to step"
    elif protocol.counts_updates and not isinstance(protocol, BarrierServers):
        why = "gradients are of older parameters"
    else:
        return
    allowed = (
        f"synchronous protocols with a fixed batch, with --until; of {protocol.name}, {why}: trainsim learn trains it"
    )
    raise WrongSetting("protocols", protocol.name, allowed)
