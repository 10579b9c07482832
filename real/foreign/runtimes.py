"""Who executes a protocol for real: our text over MPI, or somebody else's runtime."""

from __future__ import annotations

import argparse

from real import launch
from real.options import scenario as scenario_of
from sim.errors import WrongSetting
from sim.scenario import Scenario

RUNTIMES = ("mpi", "horovod", "tensorflow")
SERVED = ("ps-async", "ps-sync", "ps-backup")  # TensorFlow's own servers have these, and run them unless told otherwise
HAVE = {
    "horovod": ("allreduce", "horovod"),
    "tensorflow": ("allreduce", *SERVED),
}
HOW_TO_GET_HOROVOD = "a Python with Horovod: `make horovod` builds it once and installs it"


def runtime_of(given: argparse.Namespace) -> str:
    """The runtime that was asked for, or else the one that the protocol comes from; one of RUNTIMES.

    Raises:
        WrongSetting: it has not this protocol, or not with these settings, or is not installed.
    """
    scenario = scenario_of(given)
    runtime = "tensorflow" if given.job else given.runtime or _own(scenario)
    check(scenario, runtime)
    if given.job and not scenario.protocol.has_servers:
        raise WrongSetting("--job", given.job, f"no such option with {scenario.protocol.name}: mpirun starts its ranks")
    if runtime != "mpi" and scenario.protocol.masterless:
        check_device(given.device)
    if given.horovod_timeline and runtime != "horovod":
        raise WrongSetting("--horovod-timeline", given.horovod_timeline, "no such file but with --runtime horovod")
    if runtime == "horovod" and not launch.found("horovod"):
        raise WrongSetting("--runtime", runtime, HOW_TO_GET_HOROVOD)
    return runtime


def served(given: argparse.Namespace) -> bool:
    """Whether TensorFlow's own servers run it."""
    return runtime_of(given) == "tensorflow" and scenario_of(given).protocol.has_servers


def library_of(given: argparse.Namespace) -> str | None:
    """The library that sums gradients in place of our text; horovod, tensorflow or none."""
    return runtime_of(given) if runtime_of(given) != "mpi" and scenario_of(given).protocol.masterless else None


def stands_in(given: argparse.Namespace) -> list[str]:
    """A line where our text runs in place of a runtime that is not installed, or none."""
    stands = given.runtime is None and (given.protocol, runtime_of(given)) == ("horovod", "mpi")
    return ["Horovod is not installed (`make horovod`); our text of it ran over MPI"] if stands else []


def check(scenario: Scenario, runtime: str) -> None:
    """Refuse what a runtime has not.

    Raises:
        WrongSetting: naming it.
    """
    protocol = scenario.protocol
    if runtime == "mpi":
        scenario.check_evaluation()
    if protocol.name not in HAVE.get(runtime, (protocol.name,)):
        raise WrongSetting("--runtime", runtime, f"mpi for {protocol.name}; {runtime} has {', '.join(HAVE[runtime])}")
    if runtime != "mpi" and scenario.gathered_variables:
        raise WrongSetting("--set sparse_as_dense", False, f"true with --runtime {runtime}")
    if runtime == "tensorflow" and getattr(protocol, "barrier", False) and protocol.name == "ps-backup":
        allowed = "false with --runtime tensorflow: backup workers need tokens that nobody waits for"
        raise WrongSetting("--set barrier", True, allowed)
    if runtime != "mpi" and getattr(protocol, "algorithm", "ring") not in ("auto", "ring"):
        raise WrongSetting(
            "--set algorithm", protocol.algorithm, f"ring, or auto, which is a ring with --runtime {runtime}"
        )


def check_device(device: str) -> None:
    """Refuse GPUs.

    Raises:
        WrongSetting: a GPU is asked for.
    """
    if device != "cpu":
        raise WrongSetting("--device", device, "cpu where a library sums gradients: Horovod is built with Gloo alone")


def _own(scenario: Scenario) -> str:
    protocol = scenario.protocol
    if protocol.name == "horovod" and launch.found("horovod"):
        return "horovod"
    textbook = getattr(protocol, "barrier", False)
    return "tensorflow" if protocol.name in SERVED and not textbook else "mpi"
