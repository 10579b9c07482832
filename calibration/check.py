"""Does a profile still predict its cluster? `python -m calibration.check profile.toml TRACE...` simulates each run again and compares.

It exits with 1 if the mean step of any run is further off than the tolerance, so that it can run every night.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from sim import command
from sim.base.errors import WrongSetting
from sim.base.ranges import check

if TYPE_CHECKING:
    from sim.platform.cluster import Cluster
    from sim.recording.traces import Trace

TOLERANCE = 0.1  # of the mean step
REPLICATIONS = 6
HEADINGS = ("run", "measured", "predicted", "error", "interval", "KS", "largest difference")
WAITING = "wait"  # comes of everything else


@dataclass(frozen=True)
class Checked:
    """One run beside its prediction.

    Args:
        run: what it is called.
        measured_s, predicted_s: the mean step, seconds.
        error: of the prediction, a share of the measured mean.
        covered: whether the measured throughput is in the prediction's interval; None where it has none.
        distance, p_value: of the two-sample Kolmogorov-Smirnov test of the steps' lengths. The test takes steps for independent, which
            those of one run are not, so a small p alone says little.
        activities_s: predicted less measured seconds of each activity in a step of a rank, the largest difference first.
    """

    run: str
    measured_s: float
    predicted_s: float
    error: float
    covered: bool | None
    distance: float
    p_value: float
    activities_s: dict[str, float]


def parser() -> command.Parser:
    """The command line."""
    found = command.Parser(prog="calibration.check", description="Compare runs with what a profile predicts of them.")
    found.add_argument("profile", metavar="PROFILE", help="a profile, .toml")
    found.add_argument("traces", nargs="+", metavar="TRACE", help="traces of runs that were not fitted")
    found.add_argument(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        metavar="SHARE",
        help="largest error of a mean step; beyond it the exit code is 1",
    )
    found.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command; 1 if a run is off by more than the tolerance.

    Raises:
        WrongSetting: a file that cannot be read, or a run that the profile's cluster cannot have.
    """
    given = parser().parse_args(argv)
    from sim.base.progress import each
    from sim.platform import cluster
    from sim.recording import traces

    check("--tolerance", given.tolerance, 0, 10)
    profile = cluster.read(given.profile)
    runs = [(path, traces.read(path)) for path in given.traces]
    found = [checked(profile, trace, path) for path, trace in each(runs, "simulating", label=lambda run: run[0])]
    wrong = [one for one in found if abs(one.error) > given.tolerance]
    if given.json:
        print(json.dumps({"schema": "check/1", "tolerance": given.tolerance, "runs": [asdict(one) for one in found]}))
    else:
        _show(found, given.tolerance, len(wrong))
    return 1 if wrong else 0


def checked(profile: Cluster, trace: Trace, name: str) -> Checked:
    """A run beside what the profile predicts of it.

    Raises:
        WrongSetting: the profile does not know the model, or its cluster cannot have such a run.
    """
    from scipy.stats import ks_2samp

    from calibration import checks
    from calibration.estimators import residuals
    from sim.answers import outcome
    from sim.job import replay
    from sim.simulation import simulate

    checks.check(trace, name)
    head = residuals.played(trace)
    with replay.said_of(name):
        scenario = residuals.scenario_of(head, residuals.as_placed(profile, head))
        if profile.costs_of(scenario.workload) is None:
            known = ", ".join(profile.costs) or "nothing"
            raise WrongSetting("workload", head.workload, f"a model that the profile has costs of: {known}")
        found = simulate(scenario, replications=REPLICATIONS, want_trace=True)
    assert found.trace is not None  # it was asked for
    measured = outcome.of_trace(trace)
    test = ks_2samp(measured.step_s[0], found.step_s.ravel(), method="asymp")
    measured_s, predicted_s = float(measured.step_s.mean()), found.answer()["step_s"]["mean"]
    pair = found.interval
    covered = None if pair is None else bool(pair[0] <= measured.throughput()[0] <= pair[1])
    differences = _differences(trace, found.trace)
    error = predicted_s / measured_s - 1
    return Checked(
        name, measured_s, predicted_s, error, covered, float(test.statistic), float(test.pvalue), differences
    )


def activities_s(trace: Trace) -> dict[str, float]:
    """Seconds of each activity but waiting, in a measured step of a rank on average."""
    head, rows = trace.header, trace.rows
    rows = rows[(rows["step"] >= head.warmup * head.updates_per_step) & (rows["activity"] != WAITING)]
    steps = max(1, rows["step"].nunique()) / head.updates_per_step
    seconds = (rows["end_s"] - rows["start_s"]).groupby(rows["activity"]).sum()
    return {str(name): float(total) for name, total in (seconds / steps / head.ranks).items()}


def _differences(measured: Trace, predicted: Trace) -> dict[str, float]:
    there, here = activities_s(measured), activities_s(predicted)
    by_name = {name: here.get(name, 0.0) - there.get(name, 0.0) for name in sorted({*here, *there})}
    return dict(sorted(by_name.items(), key=lambda item: -abs(item[1])))


def _show(found: list[Checked], tolerance: float, wrong: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in (HEADINGS[0], HEADINGS[-1]) else "right")
    for one in found:
        table.add_row(*map(Text, _cells(one)))
    console = Console(highlight=False)
    console.print(table)
    mean = fmean(abs(one.error) for one in found)
    said = f"{wrong} of {len(found)} beyond the tolerance" if wrong else f"all of {len(found)} within the tolerance"
    console.print(Text(f"mean absolute error of a step {mean:.1%}; {said} of {tolerance:.0%}"))


def _cells(one: Checked) -> Iterator[str]:
    from sim.answers.summary import seconds

    name, difference_s = next(iter(one.activities_s.items()))
    covered = {None: "none", True: "holds it", False: "misses it"}[one.covered]
    yield from (Path(one.run).name, seconds(one.measured_s), seconds(one.predicted_s), f"{one.error:+.1%}", covered)
    yield f"{one.distance:.2f}"
    sign = "+" if difference_s >= 0 else "-"
    yield f"{name} {sign}{seconds(abs(difference_s))}"


if __name__ == "__main__":
    command.run("calibration.check", main)
