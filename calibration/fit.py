"""Fit a profile to traces: `python -m calibration.fit TRACE... -o profile.toml`; then `sim.run --cluster profile.toml`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from calibration import log_options
from calibration.importers import IMPORTERS
from calibration.importers.about import About
from calibration.sources import SCALING, TORCH, parsed
from sim import command
from sim.base.errors import WrongSetting, printable
from sim.base.files import check_outputs
from sim.base.home import installed

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from calibration.profiles import Source
    from sim.platform.cluster import Cluster


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
    from calibration import joined
    from sim.platform import other_sizes

    named = parsed(given.traces, given.source)
    kinds = {one.kind for one in named}
    log_options.check(given, kinds)
    if kinds & {TORCH, SCALING} and not given.workload:
        raise WrongSetting("--workload", None, "what was trained: a name, or a TOML file")
    made, link = joined.profile(given, named), log_options.about(given).link
    if link is None or SCALING in kinds:  # whose fit says it
        return made
    return made.known(f"the link was given, not measured: {other_sizes.told(link)}")


def read(path: str, source: str = "trace", about: About = log_options.NOTHING) -> list[Source]:
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
    called = Path(path).name
    names = [called if run.header.cluster == called else f"{called}: {run.header.cluster}" for run in runs]
    return [Source(name, run, tuple(notes)) for name, run in zip(names, runs, strict=True)]


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
