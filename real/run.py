"""Run a training job for real: `python -m real.run --protocol amb`. Alone it launches mpirun; under mpirun or srun it joins."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from real.launching import mpirun as launch
from real.launching import testbed
from real.options import add_training_options
from real.options import scenario as scenario_of
from real.recording import growing_trace as parts
from real.recording import parameters
from real.runtime import Runner, Runtime
from real.runtimes import ABOUT, WORLDS, runtime_of, stands_in
from real.training.optimiser import Rates
from sim import candidates, command, options
from sim.base.errors import WrongSetting
from sim.base.ranges import MOST_CORES, check_integer
from sim.job.scenario import Scenario
from sim.simulation import try_out

REPLICATIONS = 1


def parse(argv: list[str] | None = None, prog: str = "real.run") -> argparse.Namespace:
    """The options of a command line, or of a part of another's, which complains as `prog`."""
    return parser(prog).parse_args(argv)


def parser(prog: str = "real.run") -> command.Parser:
    """The command line."""
    parents = [options.job_options(), options.answer_options()]
    parser = command.Parser(prog=prog, description="Run a training job for real.", parents=parents)
    parser.add_argument(
        "--runtime",
        choices=WORLDS,
        help=f"what executes the protocol: {ABOUT} "
        "(default: where the protocol comes from, or else the first that has it)",
    )
    hand = parser.add_argument_group("one process of a run with TensorFlow's servers, started by hand")
    hand.add_argument(
        "--job", choices=("ps", "worker"), help="what this process is; alone and under mpirun it is known"
    )
    hand.add_argument("--task", type=int, metavar="N", help="its number in its list, from 0 (default: 0)")
    hand.add_argument("--ps-hosts", metavar="HOST:PORT,...", help="all servers, the same on every process")
    hand.add_argument("--worker-hosts", metavar="HOST:PORT,...", help="all workers, the same on every process")
    testbed.add_option(parser)
    add_training_options(parser)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    argv = sys.argv[1:] if argv is None else argv
    given = parse(argv)
    runtime = runtime_of(given)
    if given.job or launch.joined():
        return runtime.take_part(given, work)
    scenario = check(given)
    if scenario.ranks == 1:
        return work(given, runtime.maker(given, None))
    start(given, argv, scenario, runtime)
    return 0


def start(given: argparse.Namespace, argv: list[str], scenario: Scenario, runtime: Runtime) -> None:
    """Start all processes of a run, and see them to their end; those of a user's text when the event world has tried it."""
    try_out(scenario)
    if not launch.remote(scenario.cluster if given.cluster else None):
        launch.check_memory(scenario.ranks)
    parts.remove(given.trace)
    with parts.kept(given.trace, runtime.mended), testbed.asked(given.testbed, scenario.ranks) as hosts:
        runtime.start(given, argv, scenario, hosts)


def check(given: argparse.Namespace) -> Scenario:
    """Refuse what the ranks would refuse, before they are started; the scenario.

    Raises:
        WrongSetting: naming the option.
    """
    options.check_files(given)
    if given.testbed and (given.cluster or given.job):
        raise WrongSetting("--testbed", given.testbed, "nothing with --cluster or --job, which name other hosts")
    for name in ("task", "ps_hosts", "worker_hosts"):
        if getattr(given, name) is not None:
            raise WrongSetting(f"--{name.replace('_', '-')}", getattr(given, name), "nothing without --job")
    scenario = scenario_of(given)
    candidates.refuse(scenario, "a real run")
    if allowed := scenario.stragglers.unreal():
        raise WrongSetting("--stragglers", given.stragglers, allowed)
    options.replications(given, REPLICATIONS)
    launch.check_installed("tensorflow", "mpi4py") if scenario.ranks > 1 else launch.check_installed("tensorflow")
    check_training(given)
    return scenario


def work(given: argparse.Namespace, make: Callable[[], Runner]) -> int:
    """What each process does: the runs, by the runner that it makes, and in one of them the answer."""
    scenario, clock_s, found = scenario_of(given), time.perf_counter(), None
    runner = make()
    if given.variable_partitions == options.SEARCH:
        from real.partitions import searched

        found = searched(runner, scenario)
        scenario = replace(scenario, variable_partitions=found.best)
    traces = []
    for replication in range(options.replications(given, REPLICATIONS) or REPLICATIONS):
        kept = given.parameters if replication == 0 else None
        traces.append(runner.run(scenario, replication, parts.of(given.trace, replication), kept))
    if runner.answers:
        answer(given, scenario, traces, time.perf_counter() - clock_s, found)
    return 0


def answer(given: argparse.Namespace, scenario, traces, wall_s: float, found=None) -> None:
    """Write the files asked for, and answer on stdout, as sim.run does; `found` is what a search for partitions found."""
    import json

    from sim.answers import summary
    from sim.answers.notes import notes
    from sim.answers.outcome import join, of_trace

    outcome, trace = join([of_trace(trace) for trace in traces]), traces[0]
    world = trace.header.world
    options.write_outputs(given, trace)
    parts.remove(given.trace)
    said = [
        *notes(scenario, outcome, world, trace),
        *learned(trace),
        *stands_in(given),
        *([str(found)] if found else []),
    ]
    runs = options.replications(given, REPLICATIONS)
    summed = summary.as_json(scenario, world, outcome, wall_s, found, runs, said, trace.header)
    if given.json:
        print(json.dumps(summed), flush=True)
        return
    summary.show(summed, scenario, {})


def learned(trace) -> list[str]:
    """What the last evaluation said."""
    last = trace.header.evaluations[-1:]
    return [f"step {s}: loss {loss:.4f}, accuracy {accuracy:.3f} on test samples" for s, loss, accuracy in last]


def check_training(given: argparse.Namespace) -> None:
    """Refuse what every rank would refuse, before they are started.

    Raises:
        WrongSetting: a data set or a model that there is not, rates or threads that cannot be, or parameters' ending.
    """
    from real.data import data_for
    from real.models import forward_of

    if given.parameters:
        parameters.check_path(given.parameters)
    Rates(given.optimiser, given.learning_rate, given.decay_steps, given.decay_rate)
    check_integer("--threads", given.threads, 1, MOST_CORES)
    scenario = scenario_of(given)
    forward_of(scenario.workload)
    data_for(scenario.workload, given.data, scenario.seed)


if __name__ == "__main__":
    command.run("real.run", main)
