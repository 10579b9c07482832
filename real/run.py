"""Run a training job for real: `python -m real.run --protocol amb`. Alone it launches mpirun; under mpirun or srun it joins."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from real import needs
from real.engines import engine_of
from real.launching import host_names, ranks, testbed
from real.launching import mpirun as launch
from real.options import add_training_options, training
from real.options import scenario as scenario_of
from real.runtimes import ABOUT, WORLDS, Runners, runtime_of, stands_in
from sim import command, options
from sim.answers import candidates
from sim.base import home
from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from real.runtime import Runtime
    from sim.job.header import Header
    from sim.job.scenario import Scenario

PROGRAM = "real.run"
REPLICATIONS = 1


def parse(argv: list[str] | None = None, prog: str = PROGRAM) -> argparse.Namespace:
    """The options of a command line, or of a part of another's, which complains as `prog`."""
    return parser(prog).parse_args(argv)


def parser(prog: str = PROGRAM) -> command.Parser:
    """The command line."""
    parents = [options.job_options(), options.answer_options()]
    whole = prog == PROGRAM  # a cell of a campaign that asked for help would end the campaign
    parser = command.Parser(prog=prog, description="Run a training job for real.", parents=parents, add_help=whole)
    parser.add_argument(
        "--runtime",
        choices=WORLDS,
        help=f"what runs the protocol: {ABOUT} (default: the protocol's own, or else the first that has it)",
    )
    testbed.add_option(parser)
    add_training_options(parser)
    parser.set_defaults(protocol="amb", servers=1)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    argv = sys.argv[1:] if argv is None else argv
    given = parse(argv)
    runtime = runtime_of(given)
    if launch.joined():
        return ranks.join(PROGRAM, lambda comm: work(given, comm))
    scenario = check(given)
    if scenario.ranks == 1:
        return work(given, None)
    start(given, argv, scenario, runtime)
    return 0


def start(given: argparse.Namespace, argv: list[str], scenario: Scenario, runtime: Runtime) -> None:
    """Start all processes of a run, and see them to their end."""
    from real.recording import growing_trace as parts

    parts.remove(given.trace)
    with parts.kept(given.trace, runtime.mended), testbed.asked(given.testbed, scenario.ranks) as hosts:
        placed = scenario.cluster if given.cluster else None
        launch.launch(launch.command(scenario.ranks, PROGRAM, argv, placed, hosts))


def check(given: argparse.Namespace) -> Scenario:
    """The scenario. Settings that ranks would refuse are refused before ranks are started.

    Raises:
        WrongSetting: naming the option.
    """
    options.check_files(given)
    scenario = scenario_of(given)
    candidates.refuse(scenario, "a real run")
    check_hosts(given, scenario)
    if allowed := scenario.stragglers.unreal():
        raise WrongSetting("--stragglers", given.stragglers, allowed)
    options.replications(given, REPLICATIONS)
    home.need(engine_of(given.engine).package, *(["mpi4py"] if scenario.ranks > 1 else []))
    check_training(given)
    return scenario


def check_hosts(given: argparse.Namespace, scenario: Scenario) -> None:
    """Refuse hosts that cannot be, before a launcher reads their names.

    Raises:
        WrongSetting: naming the option.
    """
    if given.testbed and given.cluster:
        raise WrongSetting("--testbed", given.testbed, "nothing with --cluster, which names other hosts")
    if given.testbed and scenario.ranks == 1:
        raise WrongSetting("--testbed", given.testbed, "nothing with one process alone, which has no link")
    for host in scenario.cluster.hosts if given.cluster else ():
        host_names.check("--cluster: hosts: name", host.name)


def work(given: argparse.Namespace, comm: Any) -> int:
    """The work of each process: the runs, and in one process the answer.

    Args:
        comm: all ranks; None of a process alone.
    """
    from real.recording import growing_trace as parts

    if comm is not None:
        given.workers = ranks.workers_of(given, comm.size)
    scenario, clock_s, found = scenario_of(given), time.perf_counter(), None
    runners = Runners(comm, [given], not given.quiet)
    runner = runners.of(given)
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
    runners.end()
    return 0


def answer(given: argparse.Namespace, scenario, traces, wall_s: float, found=None) -> None:
    """Write the requested files, and answer on stdout, as sim.run does; `found` is the result of a search for partitions."""
    import json

    from real.recording import growing_trace as parts
    from sim.answers import summary
    from sim.answers.notes import notes
    from sim.answers.outcome import join, of_trace

    outcome, trace = join([of_trace(trace) for trace in traces]), traces[0]
    world = trace.header.world
    if given.trace:
        trace.write(given.trace)
    parts.remove(given.trace)
    said = [
        *notes(scenario, outcome, world, trace),
        *trained_on(trace),
        *learned(trace),
        *next((said for one in traces if (said := drifted(one.header))), []),
        *stands_in(given),
        *([str(found)] if found else []),
    ]
    runs = options.replications(given, REPLICATIONS)
    summed = summary.as_json(scenario, world, outcome, wall_s, found, runs, said, trace.header)
    if given.json:
        print(json.dumps(summed), flush=True)
        return
    summary.show(summed, scenario, {})


def drifted(header: Header) -> list[str]:
    """Whether ranks that update their own parameters ended with different ones, in a line; none if they are equal, or not known."""
    checksums = header.details.get("parameters_crc32", ())
    different = len(set(checksums))
    if header.servers or different < 2:
        return []
    said = f"the parameters of {len(checksums)} ranks end as {different} different ones"
    return [f"{said}: replicas drift apart where gradients are not summed alike at all ranks"]


def learned(trace) -> list[str]:
    """Loss and accuracy of the last evaluation."""
    last = trace.header.evaluations[-1:]
    return [f"step {s}: loss {loss:.4f}, accuracy {accuracy:.3f} on test samples" for s, loss, accuracy in last]


def trained_on(trace) -> list[str]:
    """A line where the data are not those that a model is known for."""
    data = trace.header.details.get("data", "")
    if trace.header.details.get("synthetic_data"):
        return [f"trained on {data}, drawn at random: loss and accuracy are of these"]
    enlarged = f"trained on {data}, 8x8 pixels before: loss and accuracy are of these; --data takes files"
    return [enlarged] if data.startswith("digits resized") else []


def check_training(given: argparse.Namespace) -> None:
    """Refuse what every rank would refuse, before they are started.

    Raises:
        WrongSetting: a data set or a model that there is not, rates or threads that cannot be, or more than this machine's memory
            holds.
    """
    from real.data import data_for
    from real.training.trainee import kind_of

    training(given)
    scenario = scenario_of(given)
    engine = engine_of(given.engine)
    if not launch.remote(scenario.cluster if given.cluster else None):
        needs.check(scenario.ranks, engine.memory_bytes, scenario)
    engine.check(kind_of(scenario), scenario.workload, given.device)
    data_for(scenario.workload, given.data, scenario.seed)


if __name__ == "__main__":
    command.run("real.run", main)
