"""Does a profile still predict its cluster? `python -m calibration.check profile.toml TRACE...` simulates each run again and compares.

Repeats of one job are judged by their mean. It exits with 1 if the error of the mean step of any job exceeds the tolerance. It can
therefore run every night.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from calibration import log_options
from sim import command
from sim.base.errors import WrongSetting
from sim.base.printing import table
from sim.base.ranges import check

if TYPE_CHECKING:
    from calibration.comparison import Checked
    from sim.platform.cluster import Cluster

TOLERANCE = 0.1  # of the mean step
SCHEMA = "check/4"  # in check/3, jobs had the distance of the distributions of steps
HEADINGS = ("job", "measured", "predicted", "error", "floor", "in interval", "differs most")
FILES = (".parquet", ".jsonl", ".csv")  # of runs
UNKNOWN = "-"  # where a mean alone was measured
LEFT = (HEADINGS[0], HEADINGS[-1])
NUMBER = re.compile(r"[-_.]\d+$")  # of a repeat


def parser() -> command.Parser:
    """The command line."""
    found = command.Parser(
        prog="calibration.check",
        description="Compare runs, logs and tests with what a profile predicts of them.",
        parents=[log_options.options()],
    )
    found.add_argument("profile", metavar="PROFILE", help="a profile, .toml")
    found.add_argument(
        "traces",
        nargs="+",
        metavar="TRACE",
        help="traces of runs that were not fitted, or whatever calibration.fit takes: FILE with --from, SOURCE=FILE[,batch=N][,ranks=N]",
    )
    found.add_argument(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        metavar="SHARE",
        help="largest error of a job's mean step; beyond it the exit code is 1",
    )
    found.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command; 1 if a job is off by more than the tolerance.

    Raises:
        WrongSetting: a file that cannot be read, or a run that the profile's cluster cannot have.
    """
    given = parser().parse_args(argv)
    check("--tolerance", given.tolerance, 0, 10)
    found, notes = checked(given)
    wrong = [one for one in found if abs(one.error) > given.tolerance]
    if given.json:
        table = {"schema": SCHEMA, "tolerance": given.tolerance, "jobs": [asdict(one) for one in found]}
        print(json.dumps(table | {"notes": notes}))
    else:
        _show(found, given.tolerance, len(wrong), notes)
    return 1 if wrong else 0


def checked(given: argparse.Namespace, profile: Cluster | None = None) -> tuple[list[Checked], list[str]]:
    """Each job beside its prediction, and notes, for options as `parser` gives them.

    Args:
        profile: in place of the file that they name.

    Raises:
        WrongSetting: see `main`.
    """
    from calibration import sources, sources_checked
    from sim.platform import cluster

    named = sources.parsed(given.traces, given.source)
    kinds = {one.kind for one in named}
    log_options.check(given, kinds)
    known = profile or cluster.read(given.profile, setting="PROFILE")
    given = argparse.Namespace(**vars(given) | {"workload": given.workload or known.fitted()})
    if kinds & {sources.TORCH, sources.SCALING, sources.TIMELINE} and not given.workload:
        raise WrongSetting("--workload", None, "what was trained: a name, or a TOML file")
    return sources_checked.found(known, named, lambda one: log_options.about(given, one), given.gpus_per_host)


def _show(found: list[Checked], tolerance: float, wrong: int, notes: list[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(table(HEADINGS, map(cells, found), LEFT))
    mean, jobs = fmean(abs(one.error) for one in found), f"{len(found)} job{'s' * (len(found) != 1)}"
    said = f"{wrong} of {jobs} beyond the tolerance" if wrong else f"all of {jobs} within the tolerance"
    console.print(Text(f"mean absolute error of a step {mean:.1%}; {said} of {tolerance:.0%}"))
    for note in notes:
        console.print(Text(f"note: {note}", "yellow"))


def cells(one: Checked) -> Iterator[str]:
    """The texts of a row, below HEADINGS."""
    from sim.answers.summary import seconds

    yield from (_called(one.runs), seconds(one.measured_s), seconds(one.predicted_s), f"{one.error:+.1%}")
    yield UNKNOWN if one.floor is None else f"{one.floor:.1%}"
    yield UNKNOWN if one.covered is None else f"{one.covered} of {len(one.runs)}"
    name, difference_s = next(iter(one.activities_s.items()), (UNKNOWN, 0.0))
    yield f"{name} {'+' if difference_s >= 0 else '-'}{seconds(abs(difference_s))}" if one.activities_s else UNKNOWN


def _called(runs: tuple[str, ...]) -> str:
    """The name of a run; of several, that of the first without its number, and how many they are.

    >>> _called(("night/check-0-1.parquet", "night/check-0-2.parquet"))
    'check-0 x 2'
    """
    path = Path(runs[0])
    name = path.stem if path.suffix in FILES else path.name if path.is_dir() else runs[0]
    return name if len(runs) == 1 else f"{NUMBER.sub('', name)} x {len(runs)}"


if __name__ == "__main__":
    command.run("calibration.check", main)
