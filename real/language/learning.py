"""A run of a text that trains a real model in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from real.language.values import ModelValues
from real.language.versions import Versions
from sim.base.errors import RunFailed
from sim.event.language import job_of
from sim.language.event import EventWorld
from sim.protocols.in_language import InLanguage

if TYPE_CHECKING:
    from real.learning.trainer import Trainer
    from sim.job.scenario import Scenario


class Over(RunFailed):
    """Training is over before the text is; a world passes it on."""


def train(
    scenario: Scenario, replication: int, trainer: Trainer, made: Callable[[Versions, int, float, int], bool]
) -> Versions:
    """Train a job whose protocol is a text of the language.

    Args:
        replication: the number of the run, which draws its times and the order of its data; that has the scenario's `sleeps_of`, if any.
        made: called with each version (see real.language.versions.Versions); whether training is over with it.

    Raises:
        RunFailed: the ranks wait for one another for ever, or do what no world can run.
    """

    def told(*version) -> None:
        if made(*version):
            raise Over

    assert isinstance(scenario.protocol, InLanguage)
    text, run = scenario.protocol.text(scenario.servers), scenario.sleeps_of
    job, versions = job_of(scenario, text, replication), Versions(told)
    values = ModelValues(job, text, trainer, replication if run is None else run, versions)
    world = EventWorld(job, text, values)
    versions.samples = world.samples.of
    with suppress(Over):
        world.run()
    return versions
