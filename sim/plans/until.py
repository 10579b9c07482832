"""The work of a training that ends at a target: samples by the global batch, from steps to that target, a table's or published ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sim.base import tables
from sim.base.errors import WrongSetting
from sim.base.interval import LEVEL
from sim.efficiency import law, published

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

    @classmethod
    def of(cls, job: Scenario, steps: law.Law) -> Work:
        """The work of a job, whose global batch is that of the gradients in an update."""
        return cls(job.global_batch, steps.steps(job.global_batch), steps.beyond(job.global_batch))

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


def law_of(target: str, model: str) -> law.Law:
    """The law of steps to a target.

    Args:
        target: the path of a table, columns batch and steps; or METRIC=NUMBER, which published runs of the model reached.
        model: its name.

    Raises:
        WrongSetting: see sim.efficiency.law.read and published.
    """
    return published.read(model, target, law.OPTION) if by_name(target) else law.read(target)


def by_name(target: str) -> bool:
    """Whether it is METRIC=NUMBER, and not the path of a table."""
    return "=" in target and not target.endswith(tables.ENDINGS)


def in_words(target: str) -> str:
    """The target, in a sentence."""
    return target.replace("=", " ") if by_name(target) else f"the target of {target}"


def check(protocol: Protocol) -> None:
    """Refuse a protocol of which steps of one global batch on the newest parameters say nothing.

    Raises:
        WrongSetting: naming `protocols`.
    """
    if why := no_law(protocol):
        allowed = f"synchronous protocols with a fixed batch, with --until; of {protocol.name}, {why}: trainsim learn trains it"
        raise WrongSetting("protocols", protocol.name, allowed)


def no_law(protocol: Protocol) -> str:
    """The reason why the law of steps is not a protocol's; empty if it is."""
    if protocol.limits_computing:
        return "the batch differs from step to step"
    if protocol.stale:
        return "gradients may be of older parameters than others"
    return ""
