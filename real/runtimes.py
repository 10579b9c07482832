"""The registry of runtimes, and which of them executes a run. A new runtime is a file with an entry, and a line here."""

from __future__ import annotations

import argparse

from real.language.entry import OwnText
from real.libraries.entries import ByCollectives, ByHorovod
from real.options import scenario as scenario_of
from real.options import training
from real.runtime import Job, Runner, Runtime
from real.servers.entry import ByServers
from sim.base.errors import WrongSetting
from sim.protocols import PROTOCOLS, Protocol

# The first that has a protocol runs it, unless it comes from another or another is asked for.
RUNTIMES: dict[str, Runtime] = {
    "mpi": OwnText(),
    "horovod": ByHorovod(),
    "tensorflow collectives": ByCollectives(),
    "tensorflow servers": ByServers(),
}
WORLDS = tuple(dict.fromkeys(runtime.world for runtime in RUNTIMES.values()))  # what --runtime may say
ABOUT = ", ".join(dict.fromkeys(f"{runtime.world} ({runtime.about})" for runtime in RUNTIMES.values()))


def runtime_of(given: argparse.Namespace) -> Runtime:
    """The runtime that was asked for, or else the one that the protocol comes from.

    Raises:
        WrongSetting: it has not this protocol, or not with these settings, or is not installed.
    """
    scenario = scenario_of(given)
    runtime = _asked(given.runtime, scenario.protocol, given.engine)
    if given.engine not in runtime.engines:
        raise WrongSetting("--engine", given.engine, f"{', '.join(runtime.engines)} with --runtime {runtime.world}")
    runtime.check(scenario)
    runtime.check_options(given)
    return runtime


def stands_in(given: argparse.Namespace) -> list[str]:
    """A line where our text ran in place of a runtime that is not installed; none if nothing is missing."""
    protocol = scenario_of(given).protocol
    chosen = [] if given.runtime else [runtime for runtime in RUNTIMES.values() if given.engine in runtime.engines]
    missing = [runtime.missing(protocol) for runtime in chosen]
    return [f"{said}; our text of it ran over MPI" for said in missing if said]


class Runners:
    """The runners of a launch's runs: one for each runtime and kind of training, made when it is first needed.

    Args:
        comm: all ranks of the launch; None of a process alone.
        cells: the runs, as options of real.run.
        progress: whether each says how far it is.
    """

    def __init__(self, comm, cells: list[argparse.Namespace], progress: bool):
        self._comm, self._progress = comm, progress
        self._made: dict[tuple, Runner] = {}
        self._joined = {runtime: runtime.joined(comm, jobs) for runtime, jobs in jobs_of(cells).items()}

    def of(self, cell: argparse.Namespace) -> Runner:
        """The runner of a run. Collective."""
        key = runtime, how = runtime_of(cell), training(cell)
        if key not in self._made:
            self._made[key] = self._joined[runtime].runner(how, self._progress)
        return self._made[key]

    def probe(self) -> dict:
        """The measurements that runtimes make of themselves. Collective."""
        return {name: found for joined in self._joined.values() for name, found in joined.probe().items()}

    def end(self) -> None:
        """End this process if it has had a runtime that cannot be stopped. Collective."""
        if self._comm is not None and not all(joined.ends for joined in self._joined.values()):
            from mpi4py import MPI

            from real.launching.polling import barrier
            from real.servers.task_runner import leave

            barrier(self._comm)
            MPI.Finalize()
            leave()


def jobs_of(cells: list[argparse.Namespace]) -> dict[Runtime, list[Job]]:
    """The jobs of some runs, by their runtimes; of those that have any, in the order of the registry."""
    found: dict[Runtime, list[Job]] = {runtime: [] for runtime in RUNTIMES.values()}
    for cell in cells:
        found[runtime_of(cell)].append(Job(scenario_of(cell), training(cell)))
    return {runtime: jobs for runtime, jobs in found.items() if jobs}


def _asked(world: str | None, protocol: Protocol, engine: str) -> Runtime:
    """The runtime of that name; if none is named, one that computes with the engine: the protocol's home, or the first."""
    able = [runtime for runtime in RUNTIMES.values() if runtime.has(protocol)]
    found = [runtime for runtime in able if runtime.world == world or (world is None and engine in runtime.engines)]
    if not found:
        raise _not_by(str(world), protocol)
    return next((runtime for runtime in found if runtime.is_home_of(protocol)), found[0])


def _not_by(world: str, protocol: Protocol) -> WrongSetting:
    able = dict.fromkeys(runtime.world for runtime in RUNTIMES.values() if runtime.has(protocol))
    has = [name for name, one in PROTOCOLS.items() if any(r.world == world and r.has(one()) for r in RUNTIMES.values())]
    allowed = f"{' or '.join(able)} with --protocol {protocol.name}; {world} has {', '.join(has)}"
    return WrongSetting("--runtime", world, allowed)
