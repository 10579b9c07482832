"""One run of a job that trains a real model in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from real.learning.values import ModelValues
from real.learning.versions import Versions
from sim.base.activity import Activity
from sim.base.errors import RunFailed
from sim.language.event import EventWorld
from sim.language.event.observed import ObservedWorld
from sim.protocols.base import text_of
from sim.runs.job import job_of
from sim.runs.outcome import activities_of

if TYPE_CHECKING:
    from real.learning.trainer import Trainer
    from sim.job.scenario import Scenario

Made = Callable[[Versions, int, float, int], bool]


class Over(RunFailed):
    """Training is over before the text is; a world passes it on."""


def train(
    scenario: Scenario,
    replication: int,
    trainer: Trainer,
    made: Made = lambda *version: False,
    want_trace: bool = False,
) -> tuple[Versions, list[Activity]]:
    """Train a job: what it has learned, and what ranks have done, if that is asked for.

    Args:
        replication: the number of the run, which draws its times and the order of its data; that has the scenario's `sleeps_of`, if any.
        made: called with each version (see real.learning.versions.Versions); whether training is over with it.

    Raises:
        RunFailed: the ranks wait for one another for ever, or do what no world can run.
    """
    is_over = False

    def told(*version) -> None:
        nonlocal is_over
        if not is_over and made(*version):
            is_over = True
            world.at(world.time_s, (job.ranks, 0, 0), end)  # behind all that happens now

    def end() -> None:
        raise Over

    text, run = text_of(scenario), scenario.sleeps_of
    job, versions = job_of(scenario, text, replication), Versions(told, text.each)
    run = replication if run is None else run
    values = ModelValues(job, text, trainer, run, versions, places_of(scenario), scenario.worker_number)
    world = (ObservedWorld if want_trace else EventWorld)(job, text, values)
    versions.samples = world.samples.of
    with suppress(Over):
        world.run()
    return versions, activities_of(scenario, world) if isinstance(world, ObservedWorld) else []


def places_of(scenario: Scenario) -> np.ndarray | None:
    """Where the weights of a job's layers are in the model's flat vector, shape (parameters,); None: they are in its order.

    Servers hold weights side by side; where rows travel, layers are in the order of sim.runs.job.
    """
    text = text_of(scenario)
    if text.layerwise or (text.servers < 2 and not scenario.traffic.in_parts):
        return None
    model = scenario.workload.variables
    ends = np.cumsum([0, *(variable.size for variable in model)])
    of = {variable: np.arange(*ends[k : k + 2]) for k, variable in enumerate(model)}
    found = [of[variable] for variable in (*scenario.summed, *scenario.gathered_variables)]
    if scenario.served:
        served = np.concatenate([of[variable] for variable in scenario.served])
        found += [served[piece] for pieces in scenario.traffic.server_slices for piece in pieces]
    return np.concatenate(found)
