"""Simulate many scenarios, on all cores or many hosts: `python -m sim.sweep GRID.toml -o grid.parquet`."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from sim import command, options
from sim.base.errors import RunFailed, WrongSetting
from sim.base.files import check_outputs, text_of
from sim.base.printing import table
from sim.base.progress import Progress

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd
    import pyarrow as pa

    from sim.job.scenario import Scenario
    from sim.sweeps.jobs import Job
    from sim.sweeps.pools import Pool

HEADINGS = ("samples/s", "9 in 10 runs", "mean step")
MOST_LINES = 40
TOLD_BY_OTHERS = ("digest", "workload_digest", "model", "law", "cluster_told", "assumed")  # columns


def sweep(
    scenarios: Iterable[Scenario],
    out: str,
    executor: Executor | None = None,
    *,
    processes: int | None = None,
    world: str = "auto",
    replications: int | None = None,
    within_s: float = math.inf,
    resume: bool = False,
) -> pd.DataFrame:
    """Simulate scenarios, and keep a row of each in a parquet file.

    A script calls it below `if __name__ == "__main__":`, because the processes that it starts import the script.

    Args:
        scenarios: one or more.
        out: the file; while the sweep is under way its rows are in the folder `out`.parts.
        executor: that simulates: any of concurrent.futures, or mpi4py.futures.MPIPoolExecutor; processes of its own if None.
        processes: their number, without an executor; one a core if None; 1 is this process alone.
        world, replications, within_s: of each scenario, see trainsim.simulate.
        resume: go on with a file, or parts, that are there.

    Returns:
        The rows, in the order of the scenarios, equal ones once; sim.sweeps.results describes the columns. A scenario that cannot be
        simulated is a row with `error`.

    Raises:
        WrongSetting: an option or an argument cannot be, or the file exists without `resume` or is of another sweep.
        RunFailed: the rows cannot be written; those of the parts are kept.
    """
    import concurrent.futures

    from sim.job.scenario import Scenario
    from sim.simulation import check_asked
    from sim.sweeps import jobs, pools

    check_asked(world, replications, within_s)
    out = text_of("out", out)
    if executor is not None and not isinstance(executor, concurrent.futures.Executor):
        raise WrongSetting("executor", executor, "one of concurrent.futures, mpi4py.futures.MPIPoolExecutor, or None")
    listed = list(scenarios) if isinstance(scenarios, Iterable) else []
    if not listed or not all(isinstance(one, Scenario) for one in listed):
        raise WrongSetting("scenarios", scenarios, "one Scenario or more, in a list")
    wanted = [jobs.of_scenario(one, jobs.How(world, replications, within_s)) for one in listed]
    pool = pools.of_size(processes) if executor is None else pools.Given(executor)
    return swept(wanted, out, pool, resume).to_pandas()


def swept(wanted: list[Job], out: str, pool: Pool, resume: bool) -> pa.Table:
    """Simulate what has no row yet; all rows. Ctrl-C leaves a file of those that there are.

    Raises:
        WrongSetting, RunFailed: see `sweep`; or measured steps that do not name their GPU, on several kinds of GPU.
    """
    from sim.job import measured_steps
    from sim.sweeps.results import Results

    measured_steps.check_one_kind(job.scenario for job in wanted if job.scenario)
    results = Results(out, wanted)
    there = results.begin(resume)
    left = list({job.digest: job for job in wanted if job.digest not in there}.values())
    try:
        with Progress("simulating scenarios", len(left)) as progress, closing(_rows(left, pool)) as found:
            for rows in found:
                results.add(rows)
                progress.advance(len(rows))
    except KeyboardInterrupt:
        results.finish()
        raise
    except BaseException:
        results.keep()
        raise
    return results.finish()


def _rows(wanted: list[Job], pool: Pool) -> Generator[list[dict]]:
    """Rows as they come, first those of scenarios that cannot be."""
    from sim.sweeps import pools

    possible = [job for job in wanted if job.error is None]
    yield [{"digest": job.digest, "error": job.error} for job in wanted if job.error is not None]
    if possible:
        with pool as opened:
            yield from pools.rows(possible, opened)


def parser() -> command.Parser:
    """The command line."""
    from sim.sweeps import grid

    parser = command.Parser(
        prog="sim.sweep",
        description="Simulate many scenarios. Options that have several values, as in --workers 4,8,16, are crossed.",
        parents=[grid.crossed_options()],
    )
    about = "a TOML file of options and lists of values; options of the command line win"
    parser.add_argument("GRID", nargs="?", help=about)
    about = "the result, a row for each scenario, .parquet"
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=about)
    table = """
        --workers-processes  N  int  number of processes; 1: this one alone (default: one for each core)
        --resume  -  flag  continue a sweep that was interrupted
    """
    command.add_options(parser, table)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Raises:
        RunFailed: no scenario could be simulated.
    """
    given = parser().parse_args(argv)
    from sim.sweeps import grid, jobs, pools

    check_outputs([("--output", given.output)], [given.GRID])
    tables, line = grid.read(given.GRID) if given.GRID else [{}], grid.table_of(given)
    read = options.Readers()
    wanted = [jobs.of_options(one, read) for one in grid.crossed([table | line for table in tables], read)]
    pool = pools.of_command(given.workers_processes)
    rows = swept(wanted, given.output, pool, given.resume)
    ended = said(rows, given.output)
    show(rows)
    print(ended)
    return 0


def said(rows: pa.Table, file: str) -> str:
    """The outcome of the sweep in one line.

    Raises:
        RunFailed: no scenario could be simulated.
    """
    errors = [error for error in rows["error"].to_pylist() if error is not None]
    if len(errors) == len(rows):
        raise RunFailed(f"no scenario of {len(rows)} could be simulated; {file} says why, first: {errors[0]}")
    failed = f", {len(errors)} could not be (see the column error)" if errors else ""
    return f"{file}: {len(rows) - len(errors)} of {len(rows)} scenarios simulated{failed}"


def show(rows: pa.Table) -> None:
    """Print a line for each scenario."""
    from rich.console import Console

    from sim.answers.summary import number, seconds
    from sim.sweeps.results import SETTING

    names, found = varied(rows), list[list[str]]()
    few = rows.slice(0, MOST_LINES).to_pylist()
    priced = any(row["usd_per_million_samples"] for row in few)
    headings = [*(name.removeprefix(SETTING) for name in names), *HEADINGS, *(["USD a million"] if priced else [])]
    for row in few:
        low, high, mean_s = row["samples_per_s_low"], row["samples_per_s_high"], row["step_mean_s"]
        cells = ["cannot be"]
        if row["error"] is None:
            spread = "unknown" if low is None else f"{number(low)} to {number(high)}"
            cells = [number(row["samples_per_s"]), spread, "unknown" if mean_s is None else seconds(mean_s)]
            cells += [number(row["usd_per_million_samples"])] * priced
        found.append([*("" if row[name] is None else str(row[name]) for name in names), *cells])
    Console(highlight=False).print(table(headings, found, (), headings))
    if len(rows) > MOST_LINES:
        print(f"and {len(rows) - MOST_LINES} more")


def varied(rows: pa.Table) -> list[str]:
    """The columns of the question in which rows differ that have them; impossible ones are compared if there is nothing else to compare."""
    from sim.sweeps.results import ASKED, SETTING

    possible = rows.filter(rows["error"].is_null())
    rows = possible if len(possible) > 1 else rows
    asked = [name for name in rows.column_names if name in ASKED or name.startswith(SETTING)]
    return [name for name in asked if name not in TOLD_BY_OTHERS and len(rows[name].unique().drop_null()) > 1]


if __name__ == "__main__":
    command.run("sim.sweep", main)
