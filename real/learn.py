"""Train a job in simulated time: `python -m real.learn --protocol amb --workload mnist --until accuracy=0.9`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from real.options import add_learning_options
from real.options import training as training_of
from sim import command, options, report, simulated_options
from sim.base.errors import WrongSetting
from sim.base.files import check_outputs, write_text, write_whole
from sim.base.progress import Progress, advance, duration
from sim.studies import questions

if TYPE_CHECKING:
    from real.learning.learned import Learned
    from real.learning.learning import Estimate
    from real.learning.trainer import Trainer
    from real.training.trainee import Training
    from sim.job.scenario import Scenario

PROGRAM = "real.learn"
STEPS, MOST_STEPS = 100, 1000  # of a run, and at most until a target
EVALUATE_EVERY = 10  # in simulated time, with --test-size
SAID_S = 10.0  # of an estimate above which it is printed


def parser() -> command.Parser:
    """The command line."""
    made = command.Parser(
        prog=PROGRAM,
        description="Train a job in simulated time: real gradients, in the order and at the times of the simulation.",
        parents=[options.job_options(), simulated_options.place_options()],
    )
    group = made.add_argument_group("the answer")
    group.add_argument(
        "--until", metavar="TARGET", help="end each run when accuracy=0.9, or loss=0.3, is reached on the test samples"
    )
    group.add_argument(
        "--what-if",
        action="append",
        default=[],
        metavar="NAME=VALUE,...",
        help="compare with a changed job on the same random numbers, as sim.run does; may be repeated",
    )
    group.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    group.add_argument(
        "-o", "--output", metavar="FILE", help="write a row for each evaluation of each run, .csv or .parquet"
    )
    group.add_argument(
        "--steps-table",
        metavar="FILE",
        help="write each run's updates until the target, and its batch of all workers, for sim.plan --until, .csv",
    )
    group.add_argument("--trace", metavar="FILE", help="write the activities of the first run, .parquet or .jsonl")
    group.add_argument("--report", metavar="FILE", help="the answer as a page for a browser, .html")
    group.add_argument("--plot", metavar="FILE", help="draw accuracy and loss of all runs, .png, .pdf or .svg")
    group.add_argument("--quiet", action="store_true", help="print no progress")
    add_learning_options(made)
    made.set_defaults(
        steps=None, evaluate_every=None, warmup=0, threads=len(os.sched_getaffinity(0)), master_on_cpu=False
    )
    return made


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    check_files(given)
    given.steps = given.steps if given.steps is not None else MOST_STEPS if given.until else STEPS
    every = given.evaluate_every
    given.evaluate_every = EVALUATE_EVERY if every is None else every
    from sim.recording.curves import Target

    target = None if given.until is None else Target.read(given.until)
    read = options.Readers()
    scenario = simulated_options.scenario(given, read)
    from sim.studies import changes

    if priced := [text for text in given.what_if if changes.price(text)]:
        raise WrongSetting("--what-if price", priced[0], "a change without price=USD: sim.run compares costs")
    changed = questions.changed(given, read)
    from real.learning import answer, learning
    from sim.plans import until

    training, runs = training_of(given), options.replications(given, None) or learning.RUNS
    jobs = [scenario, *(job for _, job in changed)]
    for job in jobs:
        learning.check_trainable(job, training)
        if given.steps_table and (why := until.no_law(job.protocol)):
            allowed = (
                f"a file with a synchronous protocol of a fixed batch, as --protocol fmb; of {job.protocol.name}, {why}"
            )
            raise WrongSetting("--steps-table", given.steps_table, allowed)
    trainers = trainers_of(jobs, training)
    if not given.quiet:
        announce(learning.estimate(list(zip(jobs, trainers, strict=True)), runs))
    with nullcontext() if given.quiet else Progress("training in simulated time", runs * sum(map(learning.work, jobs))):
        base, *others = [
            learning.learn(
                job,
                training,
                target,
                runs,
                trainer=trainer,
                evaluate_every=every,
                want_trace=bool(given.trace) and job is scenario,
                done=advance,
            )
            for job, trainer in zip(jobs, trainers, strict=True)
        ]
    compared = [(text, other) for (text, _), other in zip(changed, others, strict=True)]
    write_outputs(given, base, compared, command.line(PROGRAM, argv))
    if given.json:
        print(json.dumps(answer.as_json(base, compared)))
    else:
        answer.show(base, compared)
    return 0


def trainers_of(jobs: list[Scenario], training: Training) -> list[Trainer]:
    """What computes each job; jobs of one model and random seed share it."""
    from real.learning.trainer import Trainer

    made: dict[tuple[str, int], Trainer] = {}
    for job in jobs:
        key = job.workload.model_dump_json(), job.seed
        made[key] = made.get(key) or Trainer(job.workload, job.seed, training)
    return [made[job.workload.model_dump_json(), job.seed] for job in jobs]


def check_files(given: argparse.Namespace) -> None:
    """Refuse output files that could not be written, before anything is trained.

    Raises:
        WrongSetting: naming the option.
        MissingExtra: what writes one of them is not installed.
    """
    from sim.recording import traces
    from sim.recording.panels import ENDINGS

    endings = {
        "output": (".csv", ".parquet"),
        "steps_table": (".csv",),
        "plot": ENDINGS,
        "report": options.OUTPUTS["report"],
        "trace": (),
    }
    if given.steps_table and not given.until:
        raise WrongSetting("--steps-table", given.steps_table, "a file with --until, whose target it is of")
    written = [(f"--{name.replace('_', '-')}", getattr(given, name), some) for name, some in endings.items()]
    check_outputs(written, options.inputs(given))
    if given.trace:
        traces.check_path(given.trace)


def announce(needed: Estimate) -> None:
    """Print what training takes, where that is long."""
    if needed.seconds > SAID_S:
        size = f"{needed.bytes / 1e6:,.0f} MB" if needed.bytes < 1e9 else f"{needed.bytes / 1e9:,.1f} GB"
        print(f"at most about {duration(needed.seconds)} and {size}", file=sys.stderr, flush=True)


def write_outputs(given: argparse.Namespace, base: Learned, compared: list[tuple[str, Learned]], asked: str) -> None:
    """The files that were asked for; `asked` is the command line."""
    from real.learning import answer

    if base.trace is not None:
        base.trace.write(given.trace)
    if given.output:
        frame = answer.frame(base, compared)
        write_whole(
            given.output,
            lambda file: frame.to_csv(file, index=False) if file.suffix == ".csv" else frame.to_parquet(file),
        )
    if given.steps_table:
        table = answer.steps_table(base, compared)
        write_text(given.steps_table, table)
        if table.count("\n") == 1:
            said = f"{given.steps_table} has no rows: no run reached {given.until.replace('=', ' ')}"
            print(f"{command.called(PROGRAM)}: {said}", file=sys.stderr)
    if given.report:
        title = f"{base.scenario.protocol.name}, {base.scenario.workload.name}: trained in simulated time"
        shown = partial(answer.show, base, compared)
        report.write(given.report, title, shown, asked, answer.as_json(base, compared))
    if given.plot:
        answer.plot(given.plot, base, compared, asked)


if __name__ == "__main__":
    command.run(PROGRAM, main)
