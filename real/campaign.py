"""Many runs in one launch: `python -m real.campaign cells.json`, each cell a list of real.run's options with its own --trace.

A process that imports TensorFlow takes seconds and half a gigabyte, and the processor drifts between launches. Runs that are compared
therefore share one launch, in the order given. Smaller cells use the first ranks; the others sleep.

A trace is written when its cell has ended. --resume continues an interrupted campaign.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from real import needs
from real.engines import engine_of
from real.launching import mpirun as launch
from real.launching import testbed
from real.options import scenario as scenario_of
from real.options import training
from real.probe import ranks_for
from real.run import check_training, parse
from real.runtimes import Runners, jobs_of, runtime_of
from sim import command, options
from sim.base import home
from sim.base.errors import RunFailed, WrongSetting
from sim.base.files import check_outputs, reading
from sim.base.progress import Progress

if TYPE_CHECKING:
    from sim.job.header import Header

PROGRAM = "real.campaign"
PROBE_BYTES = 0.1e9  # of a rank that only probes


def read_cells(path: str) -> list[argparse.Namespace]:
    """The cells of a campaign file, each parsed as a real.run command line.

    Raises:
        WrongSetting: no such file, or not a list of lists of options with a --trace each.
    """
    with reading("campaign file", path):
        text = Path(path).read_bytes()
    try:
        cells = [_cell(words, f"{PROGRAM}: {path}: cell {n}") for n, words in enumerate(json.loads(text), 1)]
    except (ValueError, TypeError, RecursionError) as error:
        raise WrongSetting("campaign file", path, "a JSON list of lists of real.run's options") from error
    if not cells or not all(cell.trace for cell in cells):
        raise WrongSetting("campaign file", path, "at least one cell, and a --trace in each")
    return cells


def _cell(words: list, prog: str) -> argparse.Namespace:
    if not isinstance(words, list):
        raise TypeError(words)
    return parse([str(word) for word in words], prog)


def parser() -> command.Parser:
    """The command line."""
    parser = command.Parser(prog="real.campaign", description="Many real runs in one launch.")
    parser.add_argument(
        "cells", metavar="FILE", help="JSON: a list of runs, each a list of options of real.run with a --trace"
    )
    parser.add_argument(
        "--probe", metavar="FILE", help="first probe the link between ranks 0 and 1, and write it; .json"
    )
    parser.add_argument(
        "--resume", action="store_true", help="skip runs whose traces exist, and the probe if it exists"
    )
    testbed.add_option(parser)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    argv = sys.argv[1:] if argv is None else argv
    given = parser().parse_args(argv)
    cells = read_cells(given.cells)
    if launch.joined():
        from real.launching import ranks

        return ranks.join(PROGRAM, lambda comm: work(cells, given.probe, comm, given.resume))
    read = [given.cells, *(path for cell in cells for path in options.inputs(cell))]
    written = [("--probe", given.probe, (".json",)), *(one for cell in cells for one in options.outputs(cell))]
    check_outputs(written, read)
    for cell in cells:
        check_cell(cell)
    if given.testbed:
        testbed.rate(given.testbed)
    if given.resume:
        cells, probe = left(cells, given.probe)
        print(f"{command.called('real.campaign')}: cells left to run: {len(cells)}", file=sys.stderr)
        if not cells and not probe:
            return 0
    ranks_needed = max(ranks_for(given.testbed) if given.probe else 1, ranks_of(cells))
    check_machine(cells, ranks_needed)
    with testbed.asked(given.testbed, ranks_needed) as hosts:
        try:
            launch.launch(launch.command(ranks_needed, "real.campaign", argv, hosts=hosts))
        except RunFailed as error:
            raise RunFailed(f"{error}; --resume goes on after the cells that are done") from error
    return 0


def left(cells: list[argparse.Namespace], probe: str | None) -> tuple[list[argparse.Namespace], str | None]:
    """The rest of a campaign: the cells without a trace, and the probe if its file is missing."""
    return [cell for cell in cells if not _done(cell)], None if probe and Path(probe).exists() else probe


def _done(cell: argparse.Namespace) -> bool:
    from sim.recording import traces

    try:
        found = traces.read(cell.trace).header
    except WrongSetting:  # none there, or none that can be read
        return False
    return found.complete and found.job == header_of(cell).job


def header_of(cell: argparse.Namespace) -> Header:
    """The header of a cell's trace, without the facts that only a run knows."""
    scenario = scenario_of(cell)
    return scenario.header(runtime_of(cell).world, training=training(cell).recorded(scenario.workload))


def check_machine(cells: list[argparse.Namespace], ranks: int) -> None:
    """Refuse what this machine has not installed, or no memory for.

    Raises:
        WrongSetting: naming what is missing.
    """
    engines = [engine_of(name) for name in dict.fromkeys(cell.engine for cell in cells)]
    home.need(*(engine.package for engine in engines), "mpi4py")
    needs.check(ranks, max([PROBE_BYTES, *(engine.memory_bytes for engine in engines)]))


def check_cell(cell: argparse.Namespace) -> None:
    """Refuse what the ranks would refuse.

    Raises:
        WrongSetting: naming the option.
    """
    from sim.simulation import try_out

    for option in ("replications", "testbed"):
        if getattr(cell, option) is not None:
            allowed = "nothing in a campaign, whose cells are single runs of one launch"
            raise WrongSetting(f"--{option}", getattr(cell, option), allowed)
    options.check_files(cell)
    check_training(cell)
    scenario = scenario_of(cell)
    try_out(scenario)
    if cell.variable_partitions == options.SEARCH:
        allowed = "a number in a campaign, whose cells are single runs"
        raise WrongSetting("--variable-partitions", options.SEARCH, allowed)
    if scenario.workers < 1:
        raise WrongSetting("--workers", cell.workers, "1 or more in a campaign")
    runtime_of(cell).check_shared(scenario)


def ranks_of(cells: list[argparse.Namespace]) -> int:
    """The number of ranks that the largest cell needs."""
    return max((runtime.ranks([job.scenario for job in jobs]) for runtime, jobs in jobs_of(cells).items()), default=1)


def work(cells: list[argparse.Namespace], probe: str | None, comm, resume: bool = False) -> int:
    """The work of each rank."""
    from real.launching.polling import barrier
    from real.probe import measure, write
    from real.recording import growing_trace as parts

    if resume:
        cells, probe = comm.bcast(left(cells, probe) if comm.rank == 0 else None)  # the files are on its host
    runners = Runners(comm, cells, progress=False)
    if probe:
        measured = measure(comm) | runners.probe()
        if comm.rank == 0:
            write(measured, probe)
    scenarios = [scenario_of(cell) for cell in cells]
    under_way = Progress("cells", sum(scenario.rounds for scenario in scenarios))
    for number, (cell, scenario) in enumerate(zip(cells, scenarios, strict=True), 1):
        say(comm, f"cell {number} of {len(cells)}{under_way.left}: {describe(cell)}")
        trace = runners.of(cell).run(scenario, parts=parts.folder(cell.trace), parameters=cell.parameters)
        barrier(comm)
        if trace is not None:
            trace.write(cell.trace)
            parts.remove(cell.trace)
        under_way.advance(scenario.rounds)
    runners.end()
    return 0


def describe(cell: argparse.Namespace) -> str:
    """A cell in a line."""
    settings = " ".join(cell.set)
    ranks = f"servers {cell.servers}, workers {cell.workers}" if cell.servers > 1 else f"workers {cell.workers}"
    runtime = f"by {cell.runtime} " if cell.runtime else ""
    return f"{cell.protocol} {runtime}{settings} {ranks}, batch {cell.batch}, stragglers {cell.stragglers}, seed {cell.seed}"


def say(comm, line: str) -> None:
    """Progress, once."""
    if comm.rank == 0:
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    command.run("real.campaign", main)
