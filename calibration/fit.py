"""Fit a profile to traces: `python -m calibration.fit TRACE... -o profile.toml`; then `sim.run --cluster profile.toml`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from calibration import log_options
from calibration.importers import IMPORTERS
from calibration.importers.about import About
from calibration.sources import NCCL, SCALING, SEVERAL, STEPS, TORCH, TRACE, Named, parsed
from sim import command
from sim.base.errors import WrongSetting, printable
from sim.base.files import check_outputs
from sim.base.home import installed

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from calibration.probes import Probe
    from calibration.profiles import Source
    from sim.platform.cluster import Cluster

NOTHING = log_options.NOTHING


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        WrongSetting: a file that cannot be read, or holds nothing to fit.
    """
    given = parser().parse_args(argv)
    from calibration import profiles

    inputs = [*given.traces, given.probe, given.workload, given.stragglers]
    check_outputs([("--output", given.output, (".toml",))], inputs)
    made = fitted(given)
    profiles.write(made, given.output)
    print(f"wrote {given.output}:", "\n".join(summary(made)), flush=True)
    return 0


def fitted(given: Namespace) -> Cluster:
    """The profile that options ask for, as `parser` gives them.

    Raises:
        WrongSetting: an option that no source has a use for, or a file that cannot be read or holds nothing to fit.
    """
    from sim.platform import other_sizes

    named = parsed(given.traces, given.source)
    kinds = {one.kind for one in named}
    log_options.check(given, kinds)
    made, link = _made(given, named), log_options.about(given).link
    if link is None or SCALING in kinds:  # whose fit says it
        return made
    return made.known(f"the link was given, not measured: {other_sizes.told(link)}")


def _made(given: Namespace, named: list[Named]) -> Cluster:
    """The profile, by the kinds of its sources."""
    from calibration import joined, probes

    kinds, name = {one.kind for one in named}, given.name or Path(given.output).stem
    if kinds & {TORCH, SCALING} and not given.workload:
        raise WrongSetting("--workload", None, "what was trained: a name, or a TOML file")
    probe = probes.read(given.probe) if given.probe else None
    if kinds <= {TRACE, *IMPORTERS}:
        return _of_traces(given, named, name, probe)
    alike = len({one._replace(path="") for one in named}) == 1 and named[0].kind in SEVERAL
    if len(named) == 1 or alike:
        return _by_itself(given, named, name)
    if given.shared_cores:
        raise WrongSetting("--shared-cores", given.shared_cores, "nothing with sources of several kinds")
    return joined.profile(named, name, lambda one: log_options.about(given, one), given.gpus_per_host, probe)


def _of_traces(given: Namespace, named: list[Named], name: str, probe: Probe | None) -> Cluster:
    from calibration import profiles, recorded, seating

    link = log_options.about(given).link
    if link and probe and probe.network:
        raise WrongSetting("--link", given.link, "no link beside that which --probe measured")
    sources = [s for one in named for s in read(one.path, one.kind, log_options.about(given, one))]
    if recorded.are_recorded(sources):
        for option in ("probe", "shared_cores"):
            if value := getattr(given, option):
                raise WrongSetting(f"--{option.replace('_', '-')}", value, "nothing with runs of trainsim.Recorder")
        return recorded.profile(sources, name, link)
    made = profiles.make(sources, name, probe, given.shared_cores, link)
    return seating.seated(made, given.gpus_per_host) if {one.kind for one in named} == {STEPS} else made


def _by_itself(given: Namespace, named: list[Named], name: str) -> Cluster:
    """The profile that files of one kind make without traces."""
    from calibration import nccl_links, timelines, torch_traces
    from calibration.scaling import profiled

    paths, about = [one.path for one in named], log_options.about(given, named[0])
    if named[0].kind == NCCL:
        return nccl_links.profile(paths, name, about.ranks, given.gpus_per_host)
    if named[0].kind == SCALING:
        return profiled.profile(paths[0], name, about.workload, about.protocol, about.link)
    torch = named[0].kind == TORCH
    run = torch_traces.recorded(paths, about) if torch else timelines.recorded(paths[0], about)
    return torch_traces.of_runs([run], name, given.gpus_per_host)


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
    importer = import_module(installed(f"calibration.importers.{IMPORTERS[source]}"))
    runs, notes = importer.read(path, about)
    called, found = Path(path).name, []
    for run in runs:
        own = run.header.cluster
        found.append(Source(called if own == called else f"{called}: {own}", run, () if found else tuple(notes)))
    return found


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(
        prog="calibration.fit",
        description="Learn what a cluster's ranks cost from recorded runs, logs and tests; sources of several kinds are joined.",
        parents=[log_options.options()],
    )
    parser.add_argument(
        "traces",
        nargs="+",
        metavar="TRACE",
        help="traces; other files or folders with --from, or as SOURCE=FILE[,batch=N][,ranks=N]",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the profile to write, .toml")
    parser.add_argument("--probe", metavar="FILE", help="JSON of real.probe: cores, links, oversleep")
    parser.add_argument("--name", help="name of the cluster (default: that of the output file)")
    parser.add_argument(
        "--link",
        metavar="'25 Gbit/s, 20 us'",
        help="the link between hosts, if it was not measured; of --from scaling, its name",
    )
    parser.add_argument(
        "--shared-cores",
        type=int,
        metavar="N",
        help="cores of the machine that has all hosts on it as containers or namespaces",
    )
    return parser


def summary(made: Cluster) -> Iterator[str]:
    """What was fitted, from how many runs, and what is to be known of it, in lines."""
    known = made.provenance
    runs = len(known.traces) if known else 0
    yield f"{', '.join(made.costs) or 'links'}, from {runs} run{'s' * (runs != 1)}"
    yield from (f"  {printable(note)}" for note in (known.notes if known else ()))


if __name__ == "__main__":
    command.run("calibration.fit", main)
