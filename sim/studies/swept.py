"""`sim.run --sweep NAME=A,B`: the job with every value of what is swept, in rows of a file, as sim.sweep makes them."""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sim import options, simulated_options
from sim.base.commas import parts
from sim.base.errors import WrongSetting
from sim.studies import changes

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.sweeps.jobs import How, Job

OPTION = "--sweep"
MOST = 10**6
ALONE = ("trace", "timeline", "horovod_timeline", "what_if", "why", "failures")  # options that are of one job
MOST_LINES = 40


def run(given: argparse.Namespace, read: options.Readers, command: str = "") -> pa.Table:
    """Simulate what was asked for, and write the file, the picture and the page; the rows. `command` is the line that asks for it.

    Raises:
        WrongSetting: a name that there is not, a value that a sweep cannot have, or an option that is of one job.
        RunFailed: no scenario could be simulated.
    """
    from sim.sweep import said, swept
    from sim.sweeps import pictures, pools

    for name in ALONE:
        if getattr(given, name):
            raise WrongSetting(f"--{name.replace('_', '-')}", getattr(given, name), "nothing with --sweep")
    if given.variable_partitions == options.SEARCH:
        raise WrongSetting("--variable-partitions", options.SEARCH, "numbers: a sweep tries those that it is given")
    if given.resume and given.output is None:
        raise WrongSetting("--output", None, "the name of the .parquet file to go on with")
    values = parsed(given.sweep)
    wanted = jobs(given, values, read)
    with TemporaryDirectory() as folder:
        path = given.output or str(Path(folder) / "rows.parquet")
        found = swept(wanted, path, pools.of_command(None), given.resume)
    line = said(found, given)
    if given.plot:
        pictures.draw(found.to_pandas(), list(values), given.plot)
    if given.report:
        from sim import reports
        from sim.reports.sweep import sweep_page

        reports.write(given.report, sweep_page(found, command))
    if not given.json:
        show(found, list(values))
        first = changes.Change(OPTION, {name: texts[0] for name, texts in values.items()})
        if note := simulated_options.assumed(changes.said(first, given), read):
            print(f"note: {note}")
        print(line)
    return found


def parsed(texts: list[str]) -> dict[str, list[str]]:
    """The values of each name, in the order of the options.

    Raises:
        WrongSetting: no name or no value, or a name that is there twice.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, several = text.partition("=")
        name, values = name.strip(), [one.strip() for one in parts(several)]
        if not (name and equals and all(values)):
            raise WrongSetting(OPTION, text, "NAME=VALUE,VALUE")
        if name in found:
            raise WrongSetting(OPTION, text, f"each name once: {name} was given before")
        found[name] = values
    return found


def jobs(given: argparse.Namespace, values: dict[str, list[str]], read: options.Readers) -> list[Job]:
    """A job for each combination of values; one that cannot be has its error.

    Raises:
        WrongSetting: a name that no combination has, too many of them, or a time or number of runs that cannot be.
    """
    from math import prod

    from sim.sweeps.jobs import How

    count = prod(map(len, values.values()))
    if count > MOST:
        raise WrongSetting(OPTION, f"{count:,} scenarios", f"at most {MOST:,}")
    how = How(given.world, options.replications(given, None), simulated_options.within_s(given))
    combined = [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
    found = [_job(given, one, how, read) for one in combined]
    errors = [job.error for job in found]
    if all(errors):
        raise WrongSetting(OPTION, " ".join(given.sweep), f"possible scenarios; the first: {errors[0]}")
    return found


def _job(given: argparse.Namespace, chosen: dict[str, str], how: How, read: options.Readers) -> Job:
    from sim.sweeps import columns, jobs

    said = {f"{columns.SWEPT}{name}": value for name, value in chosen.items()}
    change = changes.Change(OPTION, chosen)
    try:
        scenario = changes.applied(change, given, read)
    except WrongSetting as error:
        return jobs.that_cannot_be(said, how, str(error))
    assumed = simulated_options.assumed(changes.said(change, given), read, scenario.workers)
    return jobs.of_scenario(scenario, how, said, assumed)


def show(rows: pa.Table, names: list[str]) -> None:
    """Print a line for each scenario."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from sim.answers.summary import number, seconds
    from sim.sweeps.columns import SWEPT

    table = Table(box=None, pad_edge=False, header_style="dim")
    good = [row for row in rows.to_pylist() if row["error"] is None]
    priced = bool(good) and all(row["usd_per_million_samples"] for row in good)
    for heading in (*names, "samples/s", "9 in 10 runs", "mean step", *(["USD a million"] if priced else [])):
        table.add_column(heading, justify="right")
    for row in rows.slice(0, MOST_LINES).to_pylist():
        low, high, mean_s = row["samples_per_s_low"], row["samples_per_s_high"], row["step_mean_s"]
        cells = [str(row[f"{SWEPT}{name}"]) for name in names]
        spread = "unknown" if low is None else f"{number(low)} to {number(high)}"
        cells += [number(row["samples_per_s"]), spread, "unknown" if mean_s is None else seconds(mean_s)]
        cells += [number(row["usd_per_million_samples"])] if priced else []
        empty = [""] * (len(cells) - len(names) - 1)
        table.add_row(*map(Text, cells if row["error"] is None else [*cells[: len(names)], "cannot be", *empty]))
    Console(highlight=False).print(table)
    if len(rows) > MOST_LINES:
        print(f"and {len(rows) - MOST_LINES} more")
