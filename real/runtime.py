"""Runtimes execute protocols for real: our own text over MPI, or somebody else's library."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from real.launching.testbed import Hosts
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


class Joined:
    """A runtime in one process of a launch."""

    ends: bool = True  # whether its processes can end as others do; else they leave at once

    def runner(self, training: Training, progress: bool = True) -> Runner:
        """The runner of jobs with this training. Collective."""
        raise NotImplementedError

    def probe(self) -> dict:
        """Its measurements of itself for calibration, apart from any job. Collective."""
        return {}


Work = Callable[[argparse.Namespace, Callable[[], Runner]], int]


class Runtime:
    """An entry of the registry. Defaults are those of runtimes whose ranks mpirun starts.

    Attributes:
        world: its name as --runtime and the headers of traces have it.
        about: a few words about it, for --help.
        by_hand: its processes can be started one by one, by --job.
        timeline: it writes a file of --horovod-timeline.
        engines: of --engine, those that it computes with.
    """

    world: str
    about: str
    by_hand: bool = False
    timeline: bool = False
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

    def start(self, given: argparse.Namespace, argv: list[str], scenario: Scenario, hosts: Hosts | None) -> None:
        """Start all processes of a run of real.run's, and see them to their end."""
        from real.launching import mpirun as launch

        placed = scenario.cluster if given.cluster else None
        launch.launch(launch.command(scenario.ranks, "real.run", argv, placed, hosts))

    def mended(self, trace: Trace) -> Trace:
        """A trace that was put together from the parts of a run that ended early."""
        return trace

    def take_part(self, given: argparse.Namespace, work: Work) -> int:
        """Be one process of a run that somebody else has started: do `work(given, make)`, where `make()` gives the runner."""
        from real.launching import ranks

        def follow(comm: Any) -> int:
            given.workers = ranks.workers_of(given, comm.size)
            return work(given, self.maker(given, comm))

        return ranks.join("real.run", follow)

    def maker(self, given: argparse.Namespace, comm: Any) -> Callable[[], Runner]:
        """Makes the runner of a run of real.run; of a process alone if `comm` is None."""
        from real.options import scenario, training

        def make() -> Runner:
            how = training(given)
            joined = self.joined(comm, [Job(scenario(given), how)], given.horovod_timeline)
            return joined.runner(how, not given.quiet)

        return make

    def joined(self, comm: Any, jobs: list[Job], timeline: str | None = None) -> Joined:
        """This process's part in a launch that makes these runs. Collective.

        Args:
            comm: all ranks of the launch; None of a process alone.
            timeline: the file of --horovod-timeline.
        """
        raise NotImplementedError


def refuse_gpus(device: str) -> None:
    """Refuse GPUs where a library sums.

    Raises:
        WrongSetting: a GPU is asked for.
    """
    if device != "cpu":
        raise WrongSetting("--device", device, "cpu where a library sums gradients: Horovod is built with Gloo alone")


def refuse_rows(scenario: Scenario, world: str) -> None:
    """Refuse to gather rows of sparse variables.

    Raises:
        WrongSetting: it is asked for.
    """
    if scenario.gathered_variables:
        raise WrongSetting("--set sparse_as_dense", False, f"true with --runtime {world}")


def refuse_algorithms(protocol: OfTraining, world: str) -> None:
    """Refuse other ways of summing than a ring.

    Raises:
        WrongSetting: another is asked for.
    """
    algorithm = getattr(protocol, "algorithm", "ring")
    if algorithm not in ("auto", "ring"):
        raise WrongSetting("--set algorithm", algorithm, f"ring, or auto, which is a ring with --runtime {world}")
