"""Calibrate this machine or cluster in one command: `python -m real.calibrate --workload mlp -o profile.toml`.

It probes, makes the runs of real.calibration_plan in one launch, and has calibration.fit make a profile of some of them and
calibration.check compare it with the others. Alone it launches mpirun; under mpirun or srun it joins. All measurements stay in a
folder beside the profile. --resume continues an interrupted calibration.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from real import calibration_plan as plan
from real import campaign, engines
from real.calibration_plan import Asked
from real.launching import mpirun as launch
from real.probe import ranks_for
from real.run import parse
from sim import command
from sim.base.errors import WrongSetting, of_system
from sim.base.files import check_outputs
from sim.base.home import installed
from sim.base.ranges import JOB, MOST, MOST_RANKS, check_integer

if TYPE_CHECKING:
    from argparse import Namespace

    from real.cells import Cell

PROGRAM = "real.calibrate"
WORKERS = 2
PROTOCOLS = ("fmb", "amb")
PROBE, PILOT, FIT, CHECK = "probe.json", "pilot", "fit", "check"
MOST_REPEATS = 100


def parser() -> command.Parser:
    """The command line."""
    found = command.Parser(prog=PROGRAM, description="Measure, fit a profile and check it, in one command.")
    found.add_argument("-o", "--output", required=True, metavar="FILE", help="the profile, TOML")
    found.add_argument("--workload", metavar="NAME|FILE", default="toy_fc", help="a model that real.run can train")
    found.add_argument(
        "--protocol",
        action="append",
        metavar="NAME",
        help=f"a protocol that the profile will predict; may be repeated (default: {' and '.join(PROTOCOLS)})",
    )
    found.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help=f"largest number of workers that runs (default: {WORKERS}; under mpirun or srun all ranks but one)",
    )
    found.add_argument(
        "--batch",
        type=int,
        metavar="N",
        help="samples per worker and step; half of it runs too (default: the workload's)",
    )
    found.add_argument("--steps", type=int, default=40, metavar="N", help="measured steps of each run")
    found.add_argument("--repeats", type=int, default=3, metavar="N", help="runs of each fitted job")
    found.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random seed of sleeps and of the order of runs"
    )
    found.add_argument(
        "--data", metavar="NAME|PATH", help="training data, as of real.run (default: data that fit the workload)"
    )
    found.add_argument("--engine", choices=tuple(engines.ENGINES), help="library that computes (default: tensorflow)")
    found.add_argument("--device", choices=("cpu", "gpu"), help="where it computes (default: cpu)")
    found.add_argument(
        "--runs", metavar="FOLDER", help="folder of the measurements (default: beside the profile, NAME.runs)"
    )
    found.add_argument(
        "--tolerance",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="largest error of a mean step; beyond it the exit code is 1",
    )
    found.add_argument("--resume", action="store_true", help="skip runs that are in the folder")
    return found


def main(argv: list[str] | None = None) -> int:
    """Run the command; 1 if the profile misses a run that it is checked on.

    Raises:
        WrongSetting: naming the option.
    """
    argv = sys.argv[1:] if argv is None else argv
    given = parser().parse_args(argv)
    if launch.joined():
        from real.launching import ranks

        return ranks.join(PROGRAM, lambda comm: work(given, comm))
    asked = asked_of(given, WORKERS if given.workers is None else given.workers)
    check(given, asked)
    if given.resume and not unfinished(asked, folder_of(given)):
        return concluded(given, asked)
    cells = parsed(asked)
    ranks_needed = max(ranks_for(None), campaign.ranks_of(cells))
    campaign.check_machine(cells, ranks_needed)
    launch.launch(launch.command(ranks_needed, PROGRAM, argv))
    return concluded(given, asked)


def asked_of(given: Namespace, workers: int) -> Asked:
    """The plan that the options ask for.

    Raises:
        WrongSetting: naming the option.
    """
    from sim.model import workload

    check_integer("--workers", workers, 1, MOST_RANKS)
    check_integer("--steps", given.steps, 2, MOST)
    check_integer("--seed", given.seed, *JOB["seed"])
    check_integer("--repeats", given.repeats, 1, MOST_REPEATS)
    batch = workload.read(given.workload).batch if given.batch is None else given.batch
    names = tuple(dict.fromkeys(given.protocol or PROTOCOLS))
    training = {"data": given.data, "engine": given.engine, "device": given.device}
    return Asked(given.workload, workers, names, batch, given.steps, given.repeats, given.seed, **training)


def check(given: Namespace, asked: Asked) -> None:
    """Refuse what could not be run, fitted or written, before anything is measured.

    Raises:
        WrongSetting: naming the option.
    """
    from sim.base import ranges

    ranges.check("--tolerance", given.tolerance, 0, 10)
    check_outputs([("--output", given.output, (".toml",))], [given.workload, given.data])
    folder = folder_of(given)
    if not (folder.is_dir() or (folder.parent.is_dir() and not folder.exists())):
        raise WrongSetting("--runs", str(folder), "a folder, or a free name in one")
    for cell in plan.checked(asked, 1.0):
        campaign.check_cell(_parsed(cell, None))
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise WrongSetting("--runs", str(folder), f"a folder that can be written ({of_system(error)})") from error


def folder_of(given: Namespace) -> Path:
    """The folder of the runs."""
    return Path(given.runs) if given.runs else Path(given.output).with_suffix(".runs")


def named(asked: Asked, compute_s: float) -> list[tuple[str, Cell]]:
    """All runs by name, in the order in which they are made."""
    from real.cells import interleaved

    return interleaved(plan.named(asked, compute_s), asked.seed)


def parsed(asked: Asked, folder: Path | None = None, compute_s: float = 1.0) -> list[Namespace]:
    """The runs as a campaign has them; without a folder they have no traces yet."""
    return [_parsed(cell, folder and folder / f"{name}.parquet") for name, cell in named(asked, compute_s)]


def _parsed(cell: Cell, trace: Path | None) -> Namespace:
    return parse([*cell.real_words(), *(["--trace", str(trace)] if trace else [])], PROGRAM)


def unfinished(asked: Asked, folder: Path) -> bool:
    """Whether anything is still to be measured."""
    if campaign.left(_pilots(asked, folder), str(folder / PROBE)) != ([], None):
        return True
    compute_s = plan.computing_s(asked, pilot_steps_s(asked, folder))
    return bool(campaign.left(parsed(asked, folder, compute_s), None)[0])


def _pilots(asked: Asked, folder: Path) -> list[Namespace]:
    return [_parsed(cell, folder / f"{PILOT}-{i}.parquet") for i, cell in enumerate(plan.pilots(asked))]


def work(given: Namespace, comm) -> int:
    """The work of each rank. Where the user's own launcher started the ranks, the first one also fits and checks."""
    from real.launching.polling import barrier

    asked = asked_of(given, comm.size - 1 if given.workers is None else given.workers)
    if comm.rank == 0:
        check(given, asked)
    folder, probe = folder_of(given), folder_of(given) / PROBE
    barrier(comm)
    campaign.work(_pilots(asked, folder), str(probe), comm, given.resume)
    steps_s = comm.bcast(pilot_steps_s(asked, folder) if comm.rank == 0 else None)
    cells = parsed(asked, folder, plan.computing_s(asked, steps_s))
    left = comm.bcast(campaign.left(cells, None)[0] if comm.rank == 0 and given.resume else cells)
    campaign.say(comm, f"{PROGRAM}: {len(left)} of {len(cells)} runs left, of up to {asked.workers} workers")
    if left:
        campaign.work(left, None, comm)
    if "TRAINSIM_LAUNCHED" in os.environ:
        return 0
    code = concluded(given, asked) if comm.rank == 0 else None
    barrier(comm)
    return comm.bcast(code) if comm.rank == 0 else (comm.bcast(None) and 0)


def pilot_steps_s(asked: Asked, folder: Path) -> tuple[float, float]:
    """Seconds of a step of each pilot."""
    from sim.answers import outcome
    from sim.recording import traces

    count = len(plan.pilots(asked))
    first, second = (
        float(outcome.of_trace(traces.read(str(folder / f"{PILOT}-{i}.parquet"))).step_s.mean()) for i in range(count)
    )
    return first, second


def concluded(given: Namespace, asked: Asked) -> int:
    """Fit the profile and check it; the exit code. Both print on stdout and stderr."""
    folder = folder_of(given)
    names = [name for name, _ in named(asked, 1.0)]
    fits, checks = ([str(folder / f"{n}.parquet") for n in names if n.startswith(kind)] for kind in (FIT, CHECK))
    called = ["--name", Path(given.output).stem]
    code = _run("calibration.fit", *sorted(fits), "--probe", str(folder / PROBE), *called, "-o", given.output)
    if code:
        return code
    for number, cell in enumerate(plan.checked(asked, 1.0)):
        job = f"{cell.protocol}, {cell.workers} workers, batch {cell.batch}, stragglers {cell.stragglers}"
        print(f"{CHECK}-{number}: {job}", flush=True)
    return _run("calibration.check", given.output, *sorted(checks), "--tolerance", str(given.tolerance))


def _run(module: str, *words: str) -> int:
    """Run another command here; its exit code."""
    return import_module(installed(module)).main(list(words))


if __name__ == "__main__":
    command.run(PROGRAM, main)
