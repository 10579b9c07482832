"""`python -m experiments.run` lists the experiments by the question each answers; with a name it runs one."""

from __future__ import annotations

import shlex
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import NamedTuple

from experiments.kit import kept, pages
from sim import command
from sim.base.errors import WrongSetting
from sim.base.files import check_folder, check_output
from sim.base.home import installed
from sim.base.ranges import JOB, check_integer


class Question(NamedTuple):
    """An experiment's question, its duration on 2 cores, and the measurements that its model is fitted on."""

    asked: str
    takes: str
    fitted: str = ""


UNTRIED = "untried"  # no result is kept of it, because it needs a machine that was not at hand, or was not quiet

QUESTIONS = {
    "validate": Question(
        "How close are predictions to real runs on this machine?",
        "35 to 40 min",
        "fmb and amb with 1 and 2 workers, some of fmb with sleeps; other models likewise, and amb-dg with 1 worker",
    ),
    "servers": Question(
        "How close are predictions to TensorFlow's own parameter servers on this machine?",
        "14 min",
        "1 worker with 1 server, with sleeps and without; a probe of a second server; fmb with 1 and 2 workers",
    ),
    "collectives": Question(
        "How close are predictions to allreduce by MPI, Horovod and TensorFlow on this machine?",
        "10 min",
        "1 and 2 ranks without stragglers; fmb with 1 and 2 workers",
    ),
    "testbed": Question(
        "Do a probe of two hosts and runs of one worker predict 3 and 4 hosts, and what wins, at 100 Mbit/s to 1 Gbit/s?",
        "40 min",
        "a probe of a link; over it 1 worker with a master or a server, and 2 workers in a ring; fmb with 1 and 2 workers",
    ),
    "learning": Question(
        "How long does training take to an accuracy, predicted and measured?",
        "15 to 20 min",
        "other batches: of each model fmb and amb with 1 and 2 workers, some of fmb with sleeps, and amb-dg with 1",
    ),
    "seeds": Question(
        "Do simulated workers reach the accuracies that the seeds report?",
        "4 to 5 min",
        "the seconds of a step alone, which accuracies hardly depend on",
    ),
    "published": Question(
        "Does a fit on fixed minibatches predict the anytime run of 10 EC2 machines?",
        "5 s",
        "the fmb runs and the cost of a partition; the amb run is only compared",
    ),
    "parallax": Question(
        "Are Parallax's systems in their published order, on images and on words?",
        "10 s",
        "one machine: Horovod on ResNet-50, the hybrid and Horovod on LM1B; two machines: TensorFlow's servers on LM1B",
    ),
    "partitions": Question(
        "How long does a step take in how many partitions, for real and simulated?",
        "2 to 3 min",
        "1 worker, other minibatches, whole, in 1, 16 and 48 partitions",
    ),
    "master-bandwidth": Question(
        "How long does a master send and receive, by size and workers, for real and simulated?",
        "1 to 2 min",
        "1 worker, and 2 with the first model, other minibatches",
    ),
    "gpu": Question(
        "How close are predictions to real runs on this machine's GPU, which ranks share?",
        UNTRIED,
        "fmb with 1, 2 and 4 workers, amb with 1, one run with sleeps; other batches than are predicted",
    ),
    "decisions": Question(
        "Do predictions pick the faster of two measured configurations, and is P(target) met as often as it says?",
        "4 min",
        "what each of the experiments it reads has fitted; pairs of two fitted rows are left out",
    ),
    "evidence": Question(
        "How good is it beyond what was measured, on rows of published tables that were held out in turn?",
        "15 to 20 min",
        "of each table all rows but those that are held out",
    ),
    "growth": Question(
        "Which constants has the law of steps beyond a table, by sources for choices alone?",
        "5 to 10 min",
        "of each table all rows but those that are held out",
    ),
    "platforms": Question(
        "TensorFlow, Horovod, MPI texts and Parallax on one model: how fast, how accurate, and do they agree?",
        "5 min",
        "other batches: 1 worker and, by MPI, 2",
    ),
    "ddp": Question(
        "How close are predictions to PyTorch's own DistributedDataParallel, in steps and processes that were not fitted?",
        "4 to 6 min",
        "2 processes, two minibatches, of one of them also in one bucket",
    ),
    "proofs": Question(
        "Does each text take what its closed form says, train what its definition says and, with --workers 4, run so over MPI?",
        "5 s",
        "nothing; real runs, which take 5 min more, on texts that only compute and only sum",
    ),
    "benchmark": Question(
        "How do TensorFlow's own servers scale on this machine, and with how many servers best?",
        "5 to 9 min",
        "nothing: it measures",
    ),
    "speed": Question(
        "How fast does the simulator simulate, beside SimPy as its documentation writes it, and SimGrid; how long do answers take?",
        "12 min",
        "nothing: it measures",
    ),
    "sweeps": Question(
        "How long do a sweep of 10,000 scenarios and a plan over 20,000 configurations take?",
        "10 min",
        "nothing: it measures",
    ),
}
# Options that not all experiments have.
FURTHER = ("demo", "resume", "workers", "protocol", "workload", "data", "steps", "device", "held_out")


def parser() -> command.Parser:
    """The command line."""
    lines = "\n".join(f"  {line}" for line in listed())
    parser = command.Parser(
        prog="experiments.run",
        description=f"Run an experiment:\n\n{lines}",
    )
    parser.add_argument("name", nargs="?", choices=tuple(QUESTIONS), help="the experiment; without one, list them")
    parser.add_argument("--out", default="results", metavar="FOLDER", help="folder for results and traces")
    parser.add_argument("--keep", metavar="FILE", help="write what is printed as data too, .json (docs/data)")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random seed of the sleeps and of the order of runs"
    )
    some = parser.add_argument_group("options of some experiments; the others refuse them")
    some.add_argument("--demo", action="store_true", default=None, help="fewer and shorter runs, for some minutes")
    some.add_argument(
        "--resume", action="store_true", default=None, help="continue where it was interrupted, then report"
    )
    some.add_argument("--workers", type=int, metavar="N", help="the largest number of workers")
    some.add_argument("--protocol", metavar="NAME", help="the protocol")
    some.add_argument("--workload", metavar="NAME|FILE", help="the model")
    some.add_argument("--data", metavar="NAME|PATH", help="real data: digits, or files")
    some.add_argument("--steps", type=int, metavar="N", help="steps to measure, after warm-up")
    some.add_argument("--device", choices=("gpu", "cpu"), help="what computes (default: gpu)")
    some.add_argument(
        "--held-out",
        action="store_true",
        default=None,
        help="predict the sources, too, that are kept out of every choice: only once all choices are made",
    )
    return parser


def listed() -> list[str]:
    """A line for each experiment."""
    wide = max(map(len, QUESTIONS))
    return [f"{name:{wide}}  {question.takes:12}  {question.asked}" for name, question in QUESTIONS.items()]


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    given = parser().parse_args(argv)
    if given.name is None:
        print(*listed(), sep="\n")
        return 0
    experiment = import_module(installed(f"experiments.{given.name.replace('-', '_')}")).run
    further = {name: value for name in FURTHER if (value := getattr(given, name)) is not None}
    for name in sorted(further.keys() - signature(experiment).parameters.keys()):
        option = f"--{name.replace('_', '-')}"
        raise WrongSetting(option, further[name], f"another experiment: {given.name} has no such option")
    for name in ("seed", "workers", "steps"):
        if (value := getattr(given, name)) is not None:
            check_integer(f"--{name}", value, *JOB[name])
    check_output("--keep", given.keep, (".json",))
    out = Path(given.out) / given.name
    if not given.out:
        raise WrongSetting("--out", "", "the name of a folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongSetting("--out", given.out, f"a folder that can be written ({error.strerror})") from error
    check_folder("--out", given.out, out)
    with pages.keeping() as shown:
        experiment(out, given.seed, **further)
    found = kept.of(shown, given.name, _asked(argv), QUESTIONS[given.name].fitted, out)
    for path in (out / f"{given.name}.json", *filter(None, [given.keep])):
        kept.write(found, Path(path))
    return 0


def _asked(argv: list[str] | None) -> str:
    """The command, but for where its results go."""
    words = iter(sys.argv[1:] if argv is None else argv)
    asked = ["python", "-m", installed("experiments.run")]
    for word in words:
        if word in ("--keep", "--out"):
            next(words)
        elif not word.startswith(("--keep=", "--out=")):
            asked.append(word)
    return shlex.join(asked)


if __name__ == "__main__":
    command.run("experiments.run", main)
