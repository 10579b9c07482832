"""Run a training job for real: `python -m real.run --protocol amb`. Alone it launches mpirun; under mpirun or srun it joins."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from real import launch, testbed
from real.foreign.runtimes import library_of, served
from real.options import add_training_options, training
from real.options import scenario as scenario_of
from sim import command, options
from sim.errors import WrongSetting

REPLICATIONS = 1


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = command.Parser(
        prog="real.run", description="Run a training job for real.", parents=[options.job_options()]
    )
    parser.add_argument(
        "--runtime",
        choices=("mpi", "horovod", "tensorflow"),
        help="who executes the protocol: our text over MPI, Horovod, or TensorFlow's own servers or collectives "
        "(default: where the protocol comes from; allreduce: mpi)",
    )
    hand = parser.add_argument_group("one process of a run with TensorFlow's servers, started by hand")
    hand.add_argument(
        "--job", choices=("ps", "worker"), help="what this process is; alone and under mpirun it is known"
    )
    hand.add_argument("--task", type=int, default=0, metavar="N", help="its number in its list, from 0")
    hand.add_argument("--ps-hosts", metavar="HOST:PORT,...", help="all servers, the same on every process")
    hand.add_argument("--worker-hosts", metavar="HOST:PORT,...", help="all workers, the same on every process")
    testbed.add_option(parser)
    add_training_options(parser)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    argv = sys.argv[1:] if argv is None else argv
    given = parse(argv)
    if served(given):
        from real.foreign import start

        if not (given.job or launch.joined()):
            check(given)
        return start.main(given, argv, answer)
    if launch.joined():
        from real import ranks

        return ranks.join(lambda comm: work(given, comm))
    scenario = check(given)
    if scenario.ranks == 1:
        return work(given, None)
    placed = scenario.cluster if given.cluster else None
    if not launch.remote(placed):
        launch.check_memory(scenario.ranks)
    if given.trace:
        shutil.rmtree(parts_folder(given.trace), ignore_errors=True)
    try:
        with testbed.asked(given.testbed, scenario.ranks) as hosts:
            launch.launch(launch.command(scenario.ranks, "real.run", argv, placed, hosts))
    except (Exception, KeyboardInterrupt):
        keep_parts(given.trace)
        raise
    return 0


def check(given: argparse.Namespace):
    """Refuse what the ranks would refuse, before they are started; the scenario.

    Raises:
        WrongSetting: naming the option.
    """
    options.check_outputs(given)
    if given.testbed and (given.cluster or given.job):
        raise WrongSetting("--testbed", given.testbed, "nothing with --cluster or --job, which name other hosts")
    scenario = scenario_of(given)
    options.replications(given, REPLICATIONS)
    launch.check_installed("tensorflow", "mpi4py") if scenario.ranks > 1 else launch.check_installed("tensorflow")
    check_training(given)
    return scenario


def work(given: argparse.Namespace, comm) -> int:
    """What each rank does: the runs, and at rank 0 the answer."""
    from real.partitions import searched

    if comm is not None:
        given.workers = workers_of(comm.size, servers_of(given), given.workers)
    scenario, clock_s = scenario_of(given), time.perf_counter()
    session = session_of(given, comm)
    found = None
    if given.variable_partitions == options.SEARCH:
        found = searched(session, scenario)
        scenario = replace(scenario, variable_partitions=found.best)
    traces = []
    for replication in range(options.replications(given, REPLICATIONS)):
        parts = parts_folder(given.trace) if given.trace and replication == 0 else None
        traces.append(session.run(scenario, replication, parts))
    if session.rank == 0:
        answer(given, scenario, traces, time.perf_counter() - clock_s, found)
    return 0


def session_of(given: argparse.Namespace, comm):
    """Who runs it."""
    settings = comm, training(given), given.verbose, not given.quiet
    if name := library_of(given):
        from real.foreign.session import LibrarySession, library

        return LibrarySession(library(name, comm), *settings)
    from real.session import Session

    return Session(*settings)


def answer(given: argparse.Namespace, scenario, traces, wall_s: float, found=None) -> None:
    """Write the files asked for, and answer on stdout, as sim.run does; `found` is what a search for partitions found."""
    import json

    from sim import summary
    from sim.notes import notes
    from sim.outcome import join, of_trace

    outcome, trace = join([of_trace(trace) for trace in traces]), traces[0]
    world = trace.header.world
    options.write_outputs(given, trace)
    if given.trace:
        shutil.rmtree(parts_folder(given.trace), ignore_errors=True)
    summed = summary.as_json(scenario, world, outcome, wall_s, found)
    if given.json:
        print(json.dumps(summed), flush=True)
        return
    said = [*notes(scenario, outcome, world, trace), *learned(trace), *([str(found)] if found else [])]
    summary.show(summed, scenario, None, said)


def learned(trace) -> list[str]:
    """What the last evaluation said."""
    evaluations = trace.header.details["evaluations"]
    return [
        f"step {s}: loss {loss:.4f}, accuracy {accuracy:.3f} on test samples" for s, loss, accuracy in evaluations[-1:]
    ]


def servers_of(given: argparse.Namespace) -> int:
    """How many ranks come before the workers: the servers, of protocols that have them, or the master, or nobody."""
    from sim import protocols

    protocol = protocols.make(given.protocol, given.set)
    if not protocol.served(options.workload_of(given)):
        return 0
    return given.servers if protocol.uses_servers else 1


def workers_of(ranks: int, servers: int, asked: int | None) -> int:
    """How many workers a launcher's ranks make.

    Raises:
        WrongSetting: the launcher started another number of ranks than `--workers` needs.
    """
    workers = ranks - servers
    if workers < 0 or asked not in (None, workers):
        others = {0: "all are workers", 1: "one is the master"}.get(servers, f"{servers} are servers")
        raise WrongSetting("--workers", asked, f"{max(0, workers)}: the launcher started {ranks} ranks and {others}")
    return workers


def check_training(given: argparse.Namespace) -> None:
    """Refuse what every rank would refuse, before they are started.

    Raises:
        WrongSetting: a data set or a model that there is not.
    """
    from real.data import data_for
    from real.models import forward_of

    scenario = scenario_of(given)
    forward_of(scenario.workload)
    data_for(scenario.workload, given.data, scenario.seed)


def parts_folder(trace: str) -> Path:
    """Where the ranks write their parts of a growing trace."""
    return Path(f"{trace}.parts")


def keep_parts(trace: str | None) -> None:
    """After a run that ended early: put what the ranks have written in the trace file."""
    from sim import traces

    if not trace or not (parts_folder(trace) / traces.HEADER_FILE).exists():
        return
    kept = traces.read_parts(parts_folder(trace))
    kept.write(trace)
    shutil.rmtree(parts_folder(trace), ignore_errors=True)
    print(f"real.run: the trace so far, {len(kept.rows)} activities, is in {trace}", file=sys.stderr)


if __name__ == "__main__":
    command.run("real.run", main)
