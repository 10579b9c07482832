"""The registry of runtimes, and which of them executes a run. A new runtime is a file with an entry, and a line here."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from real.language.entry import OwnText
from real.libraries.entries import ByCollectives, ByHorovod
from real.options import scenario as scenario_of
from real.runtime import Runtime
from real.servers.entry import ByServers
from sim.base.errors import WrongSetting
from sim.protocols import PROTOCOLS, Protocol

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

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
    protocol = scenario.protocol
    runtime = _by_hand(given.job, protocol) if given.job else _asked(given.runtime, protocol, given.engine)
    if given.engine not in runtime.engines:
        raise WrongSetting("--engine", given.engine, f"{', '.join(runtime.engines)} with --runtime {runtime.world}")
    runtime.check(scenario)
    if given.horovod_timeline and not runtime.timeline:
        worlds = " or ".join(one.world for one in RUNTIMES.values() if one.timeline)
        raise WrongSetting("--horovod-timeline", given.horovod_timeline, f"no such file but with --runtime {worlds}")
    runtime.check_options(given)
    return runtime


def stands_in(given: argparse.Namespace) -> list[str]:
    """A line where our text ran in place of a runtime that is not installed; none if nothing is missing."""
    protocol = scenario_of(given).protocol
    chosen = [] if given.runtime else [runtime for runtime in RUNTIMES.values() if given.engine in runtime.engines]
    missing = [runtime.missing(protocol) for runtime in chosen]
    return [f"{said}; our text of it ran over MPI" for said in missing if said]


def check_executed(runtime: Runtime, scenario: Scenario) -> None:
    """Refuse a scenario that a runtime cannot execute.

    Raises:
        WrongSetting: it has not this protocol, or not with these settings.
    """
    if not runtime.has(scenario.protocol):
        raise _not_by(runtime.world, scenario.protocol)
    runtime.check(scenario)


def _by_hand(job: str, protocol: Protocol) -> Runtime:
    for runtime in RUNTIMES.values():
        if runtime.by_hand and runtime.has(protocol):
            return runtime
    raise WrongSetting("--job", job, f"no such option with {protocol.name}: mpirun starts its ranks")


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
