"""How a run with a foreign runtime starts: alone, under a launcher, or each process by hand."""

from __future__ import annotations

import argparse
import shutil
import socket
import time
import traceback
from pathlib import Path

from real import launch, testbed
from real.foreign import local
from real.foreign.runtimes import check
from real.foreign.tasks import LOOPBACK, Tasks, by_hand, free_port
from real.foreign.tensorflow_ps import Runtime, leave
from real.options import scenario as scenario_of
from real.options import training
from real.ranks import say
from real.recorder import begin
from sim import options
from sim.errors import RunFailed, WrongSetting

LINGER_S = 1.0  # a server's, for those who have not yet heard that the run is over


def main(given: argparse.Namespace, argv: list[str], answer) -> int:
    """Run with TensorFlow's own servers.

    Args:
        answer: called by the chief with the options, the scenario, the traces and the seconds that it took.
    """
    if given.job:
        tasks = by_hand(given.job, given.task, given.ps_hosts, given.worker_hosts)
        given.servers, given.workers = len(tasks.ps_hosts), len(tasks.worker_hosts)
        return _by_itself(tasks, lambda: take_part(given, tasks, answer))
    if launch.joined():
        from real import ranks

        return ranks.join(lambda comm: _join(given, comm, answer))
    scenario = scenario_of(given)
    placed = scenario.cluster if given.cluster else None
    if not launch.remote(placed):
        launch.check_memory(scenario.ranks)
    if given.trace:
        begin(parts_folder(given.trace), scenario.header("tensorflow"))
    try:
        with testbed.asked(given.testbed, scenario.ranks) as hosts:
            if hosts or launch.remote(placed):
                launch.launch(launch.command(scenario.ranks, "real.run", argv, placed, hosts))
            else:
                local.run(scenario, argv)
    except (Exception, KeyboardInterrupt):
        keep_parts(given.trace)
        raise
    return 0


def _by_itself(tasks: Tasks, work) -> int:
    """Do the work of a process that no launcher of MPI's ends; say why it ends, and end it at once."""
    try:
        return work()
    except (WrongSetting, RunFailed, KeyboardInterrupt) as error:
        kind, code = {WrongSetting: ("refused", 2), RunFailed: ("failed", 1)}.get(type(error), ("failed", 130))
        say(kind, str(error) or "interrupted")
    except Exception as error:
        traceback.print_exc()
        kind, code = "failed", 1
        say(kind, f"{type(error).__name__}: {error}")
    if tasks.job == "ps" and code != 130:
        time.sleep(LINGER_S)
    return leave(code)


def _join(given: argparse.Namespace, comm, answer) -> None:
    from mpi4py import MPI

    if given.workers is None:
        given.workers = comm.size - given.servers
    if given.workers + given.servers != comm.size or given.workers < 1:
        allowed = (
            f"{comm.size - given.servers}: the launcher started {comm.size} ranks, {given.servers} of them servers"
        )
        raise WrongSetting("--workers", given.workers, allowed)
    take_part(given, tasks_of(comm, given.servers, given.workers), answer, MPI.Finalize)


def tasks_of(comm, servers: int, workers: int) -> Tasks:
    """Servers first, then workers: the ranks of a launch by their host names, or on loopback if they share a host. Collective."""
    hosts = comm.allgather((socket.gethostname(), free_port()))
    alone = len({host for host, _ in hosts}) == 1
    addresses = tuple(f"{LOOPBACK if alone else host}:{port}" for host, port in hosts)
    job, task = ("ps", comm.rank) if comm.rank < servers else ("worker", comm.rank - servers)
    return Tasks(addresses[:servers], addresses[servers : servers + workers], job, task)


def take_part(given: argparse.Namespace, tasks: Tasks, answer, finalise=lambda: None) -> int:
    """What each process does; it does not return, for TensorFlow's sessions cannot be closed safely."""
    from real.trainee import Workshop

    how, clock_s = training(given), time.perf_counter()
    scenario = scenario_of(given)
    check(scenario, "tensorflow")
    runtime = Runtime(tasks, Workshop(how, 0, tasks.task), not given.quiet, given.verbose)
    traces = []
    for replication in range(options.replications(given, 1)):
        parts = parts_folder(given.trace) if given.trace and replication == 0 else None
        traces.append(runtime.run(scenario, replication, parts, given.parameters if replication == 0 else None))
    if tasks.is_chief:
        answer(given, scenario, traces, time.perf_counter() - clock_s)
    if tasks.job == "ps":
        time.sleep(LINGER_S)
    finalise()
    leave()


def parts_folder(trace: str) -> Path:
    """Where the processes write their parts of a growing trace."""
    return Path(f"{trace}.parts")


def keep_parts(trace: str | None) -> None:
    """After a run that ended early: put what the workers have written in the trace file."""
    import sys

    from real.foreign.transcript import renumbered
    from sim import traces

    if not trace or not (parts_folder(trace) / traces.HEADER_FILE).exists():
        return
    kept = renumbered(traces.read_parts(parts_folder(trace)))
    kept.write(trace)
    shutil.rmtree(parts_folder(trace), ignore_errors=True)
    print(f"real.run: the trace so far, {len(kept.rows)} activities, is in {trace}", file=sys.stderr)
