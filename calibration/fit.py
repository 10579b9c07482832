"""Fit a profile to traces: `python -m calibration.fit TRACE... -o profile.toml`; then `sim.run --cluster profile.toml`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.importers import IMPORTERS
from calibration.importers.about import LINK, About
from sim import command
from sim.base.errors import WrongSetting, printable
from sim.base.files import check_ending, check_outputs

if TYPE_CHECKING:
    from argparse import Namespace

    from calibration.profiles import Source
    from sim.platform.cluster import Cluster

TIMELINE, STEPS, NCCL, TORCH, SCALING = "horovod-timeline", "steps", "nccl-tests", "torch", "scaling"
PROFILES = (TIMELINE, NCCL, TORCH, SCALING)  # sources of which files make a profile, without traces
OF_SOURCES = {
    "ranks": (TIMELINE, STEPS, NCCL, TORCH),
    "gpus_per_host": (TIMELINE, STEPS, NCCL, TORCH),
    "batch": (TIMELINE, STEPS, TORCH),
    "protocol": (STEPS, TORCH, SCALING),
    "set": (STEPS, TORCH),
    "workload": (*IMPORTERS, TIMELINE, TORCH, SCALING),
    "stragglers": tuple(IMPORTERS),
}
SEVERAL = (TORCH, NCCL)  # those of PROFILES that several files make
LINKED = (TORCH, SCALING)  # those of PROFILES that know no link
NOTHING = About()


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        WrongSetting: a file that cannot be read, or holds nothing to fit.
    """
    given = parser().parse_args(argv)
    from calibration import profiles

    check_outputs([("--output", given.output)], [*given.traces, given.probe, given.workload, given.stragglers])
    check_ending("--output", given.output, (".toml",))
    _check_source(given)
    made = _by_itself(given) if given.source in PROFILES else _of_traces(given)
    if given.hosts is not None:
        from sim.platform import other_sizes

        made = other_sizes.on_hosts(made, given.hosts)
    profiles.write(made, given.output)
    _report(given, made)
    return 0


def _check_source(given: Namespace) -> None:
    """Refuse options that the source has no use for.

    Raises:
        WrongSetting: naming the option.
    """
    for name, needs in OF_SOURCES.items():
        if (value := getattr(given, name)) and value != "none" and given.source not in needs:
            raise WrongSetting(f"--{name.replace('_', '-')}", value, f"nothing without --from {' or '.join(needs)}")
    if given.source not in PROFILES:
        return
    if len(given.traces) > 1 and given.source not in SEVERAL:
        raise WrongSetting(f"--from {given.source}", " ".join(given.traces), "one file")
    for name in ("probe", "shared_cores", *(() if given.source in LINKED else ("link",))):
        if value := getattr(given, name):
            raise WrongSetting(f"--{name.replace('_', '-')}", value, f"nothing with --from {given.source}")


def _of_traces(given: Namespace) -> Cluster:
    from calibration import probes, profiles, recorded

    about = _about(given)
    probe = probes.read(given.probe) if given.probe else None
    if about.link and probe and probe.network:
        raise WrongSetting("--link", given.link, "no link beside that which --probe measured")
    sources = [s for path in given.traces for s in read(path, given.source, about)]
    if recorded.are_recorded(sources):
        for option in ("probe", "shared_cores"):
            if value := getattr(given, option):
                raise WrongSetting(f"--{option.replace('_', '-')}", value, "nothing with runs of trainsim.Recorder")
        return recorded.profile(sources, given.name or Path(given.output).stem, about.link)
    made = profiles.make(sources, given.name or Path(given.output).stem, probe, given.shared_cores, about.link)
    if given.source != STEPS:
        return made
    from calibration import seating

    return seating.seated(made, given.gpus_per_host)


def _about(given: Namespace) -> About:
    from sim.platform import other_sizes

    said = other_sizes.link(given.link, LINK) if given.link else None
    workload = given.workload or NOTHING.workload
    return About(workload, given.stragglers, given.protocol, tuple(given.set), given.batch, said, given.ranks)


def _by_itself(given: Namespace) -> Cluster:
    """The profile that files make without traces."""
    from calibration import nccl_links, timelines, torch_traces
    from calibration.scaling import profiled

    path, name, about = given.traces[0], given.name or Path(given.output).stem, _about(given)
    if given.source == NCCL:
        return nccl_links.profile(given.traces, name, given.ranks, given.gpus_per_host)
    if given.source == SCALING:
        return profiled.profile(path, name, about.workload, about.protocol, about.link)
    if given.source == TORCH:
        if not given.workload:
            raise WrongSetting("--workload", None, "what was trained: a name, or a TOML file")
        return torch_traces.profile(given.traces, name, about, given.ranks, given.gpus_per_host)
    return timelines.profile(path, name, about.workload, given.ranks, given.batch, given.gpus_per_host)


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
    if source == STEPS:
        return [_of_steps(path, about)]
    importer = import_module(f"calibration.importers.{IMPORTERS[source]}")
    runs, left_out = importer.read(path, about), tuple(importer.left_out(path))
    return [Source(f"{Path(path).name}: {run.header.cluster}", run, left_out if run is runs[0] else ()) for run in runs]


def _of_steps(path: str, about: About) -> Source:
    from calibration.importers import steps
    from calibration.profiles import Source
    from sim.model import workload as workloads

    logged, name = steps.logged(path, about), Path(path).name
    said = [] if logged.samples else about.batch_note(workloads.read(about.workload))
    rest = "computing" if logged.compute_s is None else "update"
    said.append(
        f"all of a step that messages do not explain is {rest}: simulated, steps are as long as those logged by construction"
    )
    return Source(f"{name}: {name}", steps.trace_of(logged, about, name), (*logged.notes, *said))


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(prog="calibration.fit", description="Learn what a cluster's ranks cost from recorded runs.")
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="traces; with --from, other files or folders")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the profile to write, .toml")
    parser.add_argument("--probe", metavar="FILE", help="JSON of real.probe: cores, links, oversleep")
    parser.add_argument(
        "--from", dest="source", choices=["trace", *IMPORTERS, *PROFILES], default="trace", help="format of TRACE"
    )
    parser.add_argument("--name", help="name of the cluster (default: that of the output file)")
    parser.add_argument("--link", metavar="'25 Gbit/s, 20 us'", help="the link between hosts, if it was not measured")
    parser.add_argument("--hosts", type=int, metavar="N", help="number of such hosts in the profile")
    parser.add_argument(
        "--shared-cores",
        type=int,
        metavar="N",
        help="cores of the machine that has all hosts on it as containers or namespaces",
    )
    imported = parser.add_argument_group("for imported logs, which lack this")
    imported.add_argument("--workload", metavar="NAME", help=f"the trained model (default: {NOTHING.workload})")
    imported.add_argument("--stragglers", default="none", metavar="LAW", help="induced sleeps, such as niagara")
    imported.add_argument(
        "--ranks",
        type=int,
        metavar="N",
        help="number of ranks of a timeline, a test, a trace or a table of steps (default: those that it names)",
    )
    imported.add_argument(
        "--gpus-per-host",
        type=int,
        metavar="N",
        help="ranks on each host, of a log that does not say them (default: 1)",
    )
    imported.add_argument(
        "--batch", type=int, metavar="N", help="samples per rank and step (default: as logged, or the workload's)"
    )
    imported.add_argument(
        "--protocol",
        metavar="NAME",
        help="protocol of a table of steps: allreduce (the default), fmb, horovod, ...; of scaling: horovod, allreduce",
    )
    imported.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of that protocol")
    return parser


def _report(given: Namespace, made: Cluster) -> None:
    runs = len(made.provenance.traces)
    print(f"wrote {given.output}: {', '.join(made.costs) or 'links'}, from {runs} run{'s' * (runs != 1)}")
    for note in made.provenance.notes:
        print(f"  {printable(note)}")
    sys.stdout.flush()


if __name__ == "__main__":
    command.run("calibration.fit", main)
