"""The jobs of a sweep: each a scenario and how it is simulated, with a digest by which its row is known again."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim import options, simulated_options
from sim.answers import summary
from sim.base.errors import WrongSetting
from sim.platform import other_sizes
from sim.sweeps.columns import ASKED, SETTING

if TYPE_CHECKING:
    from sim.job.scenario import Scenario


@dataclass(frozen=True)
class How:
    """The manner of simulating a scenario.

    Args:
        world: auto, event or engine.
        replications: their number; the usual number if None.
        within_s: seconds after which it is answered from the runs so far.
    """

    world: str = "auto"
    replications: int | None = None
    within_s: float = math.inf


@dataclass(frozen=True)
class Job:
    """A row of the sweep, before it is answered.

    Args:
        asked: its columns for the question; among them the digest.
        how: the manner of simulating it.
        scenario: None if it is impossible.
        error: the reason for that.
    """

    asked: dict
    how: How
    scenario: Scenario | None = None
    error: str | None = None

    @property
    def digest(self) -> str:
        """A digest of the scenario, and of how it is simulated."""
        return self.asked["digest"]


def of_scenario(scenario: Scenario, how: How, assumed: str | None = None) -> Job:
    """The job of a scenario.

    Args:
        assumed: the options that nobody gave, in a line; the same scenario has the same digest without them.
    """
    costs = {name: costs.model_dump(mode="json") for name, costs in scenario.cluster.costs.items()}
    asked = _with_digest(_told(scenario) | _of_how(how), costs)
    return Job(asked | {"assumed": assumed}, how, scenario)


def of_options(given: argparse.Namespace, read: options.Readers) -> Job:
    """The job that options describe, though there may be no such scenario.

    Raises:
        WrongSetting: a time, or a number of replications, that cannot be.
    """
    how = How(given.world, options.replications(given, None), simulated_options.within_s(given))
    try:
        scenario = simulated_options.scenario(given, read)
        return of_scenario(scenario, how, assumed=simulated_options.assumed(given, read, scenario.workers))
    except WrongSetting as error:
        plain = {name: value for name, value in vars(given).items() if name in ASKED}
        plain["workers"] = options.DEFAULT_WORKERS if given.workers is None else given.workers  # no number if all
        settings = {f"{SETTING}{name}": value for name, _, value in (one.partition("=") for one in given.set)}
        return Job(_with_digest(plain | _of_how(how) | settings), how, error=str(error))


def _told(scenario: Scenario) -> dict:
    """All of a scenario, a column for each thing: settings have one each, laws, models and clusters are JSON."""
    told = summary.told(scenario, "event")
    told |= {"cluster": scenario.cluster.name, "cluster_told": told["cluster"], "workload_digest": told.pop("digest")}
    told |= {"network": other_sizes.told(scenario.cluster.network)}
    settings = {f"{SETTING}{name}": value for name, value in told.pop("settings").items()}
    del told["training"]  # of real runs
    return {name: json.dumps(value) if isinstance(value, dict) else value for name, value in told.items()} | settings


def _of_how(how: How) -> dict:
    within_s = None if how.within_s == math.inf else how.within_s
    return {"world_asked": how.world, "runs_asked": how.replications, "within_s": within_s}


def _with_digest(asked: dict, *besides) -> dict:
    text = json.dumps([asked, *besides], sort_keys=True)
    return asked | {"digest": hashlib.sha256(text.encode()).hexdigest()[:16]}
