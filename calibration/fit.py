"""Fit a profile to traces: `python -m calibration.fit TRACE... -o profile.toml`; then `sim.run --cluster profile.toml`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.importers import IMPORTERS
from calibration.importers.about import About, link
from sim import command
from sim.base.errors import WrongSetting
from sim.base.files import check_outputs

if TYPE_CHECKING:
    from argparse import Namespace

    from calibration.profiles import Source
    from sim.platform.cluster import Cluster

TIMELINE, STEPS, SCALING = "horovod-timeline", "steps", "scaling"
OF_SOURCES = {"ranks": (TIMELINE,), "batch": (TIMELINE, STEPS), "protocol": (STEPS, SCALING), "set": (STEPS,)}
NOTHING = About()


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        WrongSetting: a file that cannot be read, or holds nothing to fit.
    """
    from calibration import profiles

    given = parser().parse_args(argv)
    check_outputs([("--output", given.output)], [*given.traces, given.probe, given.workload, given.stragglers])
    made = {TIMELINE: _of_timeline, SCALING: _of_scaling}.get(given.source, _of_traces)(given)
    profiles.write(made, given.output)
    _report(given, made)
    return 0


def _of_traces(given: Namespace) -> Cluster:
    from calibration import probes, profiles

    _check_options(given)
    about = About(
        given.workload,
        given.stragglers,
        given.protocol,
        tuple(given.set),
        given.batch,
        link(given.link) if given.link else None,
    )
    probe = probes.read(given.probe) if given.probe else None
    if about.link and probe and probe.network:
        raise WrongSetting("--link", given.link, "no link beside that which --probe measured")
    sources = [s for path in given.traces for s in read(path, given.source, about)]
    made = profiles.make(sources, given.name or Path(given.output).stem, probe, given.shared_cores, about.link)
    return made if given.hosts is None else profiles.on_hosts(made, given.hosts)


def _check_options(given: Namespace) -> None:
    """Refuse options that only other formats have.

    Raises:
        WrongSetting: one was given.
    """
    for name, needs in OF_SOURCES.items():
        if (value := getattr(given, name)) and given.source not in needs:
            raise WrongSetting(f"--{name}", value, f"nothing without --from {' or '.join(needs)}")


def _of_scaling(given: Namespace) -> Cluster:
    from calibration import profiles
    from calibration.scaling.profiled import profile

    _check_options(given)
    if len(given.traces) > 1 or given.probe or given.shared_cores:
        allowed = "one table, and neither --probe nor --shared-cores"
        raise WrongSetting(f"--from {SCALING}", " ".join(given.traces), allowed)
    name, between = given.name or Path(given.output).stem, link(given.link) if given.link else None
    made = profile(given.traces[0], name, given.workload, given.protocol, between)
    return made if given.hosts is None else profiles.on_hosts(made, given.hosts)


def _of_timeline(given: Namespace) -> Cluster:
    from calibration import timelines

    if len(given.traces) > 1 or given.probe or given.shared_cores:
        allowed = "one timeline, and neither --probe nor --shared-cores"
        raise WrongSetting(f"--from {TIMELINE}", " ".join(given.traces), allowed)
    name = given.name or Path(given.output).stem
    return timelines.profile(given.traces[0], name, given.workload, given.ranks, given.batch)


def read(path: str, source: str = "trace", about: About = NOTHING) -> list[Source]:
    """The runs in a file or a folder, by the format `source`.

    Args:
        about: what a log does not say of itself.

    Raises:
        WrongSetting: what the reader of that format says.
    """
    from calibration.profiles import Source
    from sim import stragglers as laws
    from sim.recording import traces

    if source == "trace":
        return [Source(Path(path).name, traces.read(path))]
    laws.read(about.stragglers)  # a wrong name is said before anything is read
    runs = IMPORTERS[source](path, about)
    return [Source(f"{Path(path).name}: {run.header.cluster}", run) for run in runs]


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(prog="calibration.fit", description="Learn what a cluster's ranks cost from recorded runs.")
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="traces, or with --from other files or folders")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the profile, TOML")
    parser.add_argument("--probe", metavar="FILE", help="JSON of real.probe: cores, links, oversleep")
    parser.add_argument(
        "--from", dest="source", choices=["trace", *IMPORTERS, TIMELINE, SCALING], default="trace", help="what TRACE is"
    )
    parser.add_argument("--name", help="of the cluster (default: the output's without its ending)")
    parser.add_argument("--link", metavar="'25 Gbit/s, 20 us'", help="between the hosts, where nothing measured it")
    parser.add_argument("--hosts", type=int, metavar="N", help="put so many hosts like these into the profile")
    parser.add_argument(
        "--shared-cores",
        type=int,
        metavar="N",
        help="of the one machine that has all hosts on it, as containers or namespaces",
    )
    imported = parser.add_argument_group("of imported logs, which do not say")
    imported.add_argument("--workload", default="cifar10", metavar="NAME", help="what was trained")
    imported.add_argument("--stragglers", default="none", metavar="LAW", help="sleeps induced, as niagara")
    imported.add_argument("--ranks", type=int, metavar="N", help="of a timeline's run (default: those that marked it)")
    imported.add_argument(
        "--batch", type=int, metavar="N", help="of each rank (default: what is logged, or the workload's)"
    )
    imported.add_argument(
        "--protocol",
        metavar="NAME",
        help="of a table of steps: allreduce (the default), fmb, horovod, ...; of scaling: horovod, allreduce",
    )
    imported.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of that protocol")
    return parser


def _report(given: Namespace, made: Cluster) -> None:
    runs = len(made.provenance.traces)
    print(f"wrote {given.output}: {', '.join(made.costs)}, from {runs} run{'s' * (runs != 1)}")
    for note in made.provenance.notes:
        print(f"  {note}")
    sys.stdout.flush()


if __name__ == "__main__":
    command.run("calibration.fit", main)
