"""`python -m experiments.run` lists the experiments by the question each answers; with a name it runs one."""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import NamedTuple

from sim import command
from sim.base.errors import WrongSetting
from sim.base.files import check_folder
from sim.base.ranges import JOB, check_integer


class Question(NamedTuple):
    """What an experiment asks, and how long it takes on 2 cores."""

    asked: str
    takes: str


QUESTIONS = {
    "validate": Question("How close are predictions to real runs on this machine?", "35 to 40 min"),
    "servers": Question("How close are predictions to TensorFlow's own parameter servers on this machine?", "14 min"),
    "collectives": Question(
        "How close are predictions to allreduce by MPI, Horovod and TensorFlow on this machine?", "10 min"
    ),
    "testbed": Question(
        "Do a probe of two hosts and runs of one worker predict 3 and 4 hosts, and what wins, at 100 Mbit/s to 1 Gbit/s?",
        "40 min",
    ),
    "luck": Question("Do a simulated and a real run with one seed go through the same steps?", "2 to 4 min"),
    "published": Question("Does a fit on fixed minibatches predict the anytime run of 10 EC2 machines?", "5 s"),
    "parallax": Question("Are Parallax's systems in their published order, on images and on words?", "1 min"),
    "scaling": Question("Do 1 to 8 GPUs predict the published scaling of parameter servers to 128?", "4 min"),
    "allreduce": Question(
        "Does one fitted bandwidth predict allreduce of other models, sizes and networks?", "2 to 3 min"
    ),
    "gpus": Question("What share of a GPU's peak does training reach, and how far off are unmeasured models?", "5 s"),
    "decisions": Question(
        "Do predictions pick the faster of two measured configurations, and is P(target) met as often as it says?",
        "4 min",
    ),
    "platforms": Question(
        "TensorFlow, Horovod, MPI texts and Parallax on one model: how fast, how accurate, and do they agree?", "5 min"
    ),
    "benchmark": Question(
        "How do TensorFlow's own servers scale on this machine, and with how many servers best?", "5 to 9 min"
    ),
    "speed": Question(
        "How fast does the simulator simulate, beside SimPy as its documentation writes it, SimGrid and Cimba?",
        "4 to 5 min",
    ),
}
ELSEWHERE = {"plan": Question("Which cluster is the cheapest that meets a target?", "1 min")}
FURTHER = (
    "demo",
    "resume",
    "workers",
    "protocol",
    "workload",
    "data",
    "cluster",
    "steps",
)  # options that not all experiments have


def parser() -> command.Parser:
    """The command line."""
    lines = "\n".join(f"  {line}" for line in listed())
    parser = command.Parser(
        prog="experiments.run",
        description=f"Run an experiment:\n\n{lines}",
    )
    parser.add_argument("name", nargs="?", choices=tuple(QUESTIONS), help="none: list them")
    parser.add_argument("--out", default="results", metavar="FOLDER", help="where tables, figures and traces go")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the sleeps, and of the order of runs")
    some = parser.add_argument_group("of some experiments, the others refuse them")
    some.add_argument("--demo", action="store_true", default=None, help="fewer and shorter runs, some minutes")
    some.add_argument("--resume", action="store_true", default=None, help="go on where it was cut off; then report")
    some.add_argument("--workers", type=int, metavar="N", help="the most")
    some.add_argument("--protocol", metavar="NAME", help="what is run")
    some.add_argument("--workload", metavar="NAME|FILE", help="what is trained")
    some.add_argument("--data", metavar="NAME|PATH", help="real data: digits, or files")
    some.add_argument("--steps", type=int, metavar="N", help="measured, after warm-up")
    some.add_argument("--cluster", metavar="FILE", help="a profile: the simulator's answer beside the measured one")
    return parser


def listed() -> list[str]:
    """A line for each experiment."""
    known = (QUESTIONS | ELSEWHERE).items()
    return [f"{name:11}  {question.takes:12}  {question.asked}" for name, question in known]


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["plan"]:  # a command of its own, with its own options
        from sim import plan

        return plan.main(words[1:])
    given = parser().parse_args(words)
    if given.name is None:
        print(*listed(), sep="\n")
        return 0
    experiment = import_module(f"experiments.{given.name}").run
    further = {name: value for name in FURTHER if (value := getattr(given, name)) is not None}
    for name in sorted(further.keys() - signature(experiment).parameters.keys()):
        raise WrongSetting(f"--{name}", further[name], f"another experiment: {given.name} has no such option")
    for name in ("seed", "workers", "steps"):
        if (value := getattr(given, name)) is not None:
            check_integer(f"--{name}", value, *JOB[name])
    out = Path(given.out) / given.name
    if not given.out:
        raise WrongSetting("--out", "", "the name of a folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongSetting("--out", given.out, f"a folder that can be written ({error.strerror})") from error
    check_folder("--out", given.out, out)
    experiment(out, given.seed, **further)
    return 0


if __name__ == "__main__":
    command.run("experiments.run", main)
