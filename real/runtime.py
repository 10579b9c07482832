"""Runtimes execute protocols for real: our own text over MPI, or somebody else's library."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from real.training.trainee import Training
    from sim.job.scenario import Scenario
    from sim.protocols import Protocol as OfTraining
    from sim.recording.traces import Trace


class Job(NamedTuple):
    """A run that a launch is going to make."""

    scenario: Scenario
    training: Training


class Runner(Protocol):
    """Executes runs, one after another; one object in each process of a launch."""

    @property
    def answers(self) -> bool:
        """Whether this process has the traces, and answers the user."""

    def run(
        self, scenario: Scenario, replication: int = 0, parts: Path | None = None, parameters: str | None = None
    ) -> Trace | None:
        """One run; its trace in the process that answers, None in the others. Collective.

        Args:
            parts: folder for the growing trace; none if a crash may lose it.
            parameters: file for those that the run ends with.
        """


class Joined(NamedTuple):
    """A runtime in one process of a launch.

    Args:
        runner: of jobs with this training, and whether it prints its progress. Collective.
        probe: its measurements of itself for calibration, apart from any job. Collective.
        ends: whether its processes can end as others do; else they leave at once.
    """

    runner: Callable[[Training, bool], Runner]
    probe: Callable[[], dict] = dict
    ends: bool = True


class Runtime:
    """An entry of the registry.

    Attributes:
        world: its name as --runtime and the headers of traces have it.
        about: a few words about it, for --help.
        engines: of --engine, those that it computes with.
    """

    world: str
    about: str
    engines: tuple[str, ...] = ("tensorflow",)

    def has(self, protocol: OfTraining) -> bool:
        """Whether it can execute this protocol."""
        raise NotImplementedError

    def is_home_of(self, protocol: OfTraining) -> bool:
        """Whether the protocol comes from here, and runs here unless another runtime is asked for."""
        return False

    def missing(self, protocol: OfTraining) -> str:
        """The missing libraries for a protocol of this runtime; empty if all are installed."""
        return ""

    def check(self, scenario: Scenario) -> None:
        """Refuse settings of a protocol that it has.

        Raises:
            WrongSetting: naming the setting.
        """

    def check_shared(self, scenario: Scenario) -> None:
        """Refuse what it cannot do in a launch that makes other runs too.

        Raises:
            WrongSetting: naming the setting.
        """

    def check_options(self, given: argparse.Namespace) -> None:
        """Refuse options that are not of the scenario, or a runtime that is not installed.

        Raises:
            WrongSetting: naming the option.
        """

    def ranks(self, scenarios: list[Scenario]) -> int:
        """The number of processes that a launch of these runs needs; 0 for none."""
        return max((scenario.ranks for scenario in scenarios), default=0)

    def mended(self, trace: Trace) -> Trace:
        """A trace that was put together from the parts of a run that ended early."""
        return trace

    def joined(self, comm: Any, jobs: list[Job]) -> Joined:
        """This process's part in a launch that makes these runs. Collective.

        Args:
            comm: all ranks of the launch; None of a process alone.
        """
        raise NotImplementedError
