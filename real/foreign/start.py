"""How a process takes part in a run with TensorFlow's servers: started by a launcher, or by hand."""

from __future__ import annotations

import argparse
import socket
import time
import traceback

from real import parts, ranks
from real.foreign.runtimes import check
from real.foreign.tasks import LOOPBACK, Tasks, by_hand, free_port
from real.foreign.tensorflow_ps import Runtime, leave
from real.options import scenario as scenario_of
from real.options import training
from sim import options
from sim.errors import RunFailed, WrongSetting

LINGER_S = 1.0  # a server's, for those who have not yet heard that the run is over


def join(given: argparse.Namespace, answer) -> int:
    """Take part in a run with TensorFlow's own servers, started by a launcher or by hand.

    Args:
        answer: called by the chief with the options, the scenario, the traces and the seconds that it took.
    """
    if given.job:
        tasks = by_hand(given.job, given.task or 0, given.ps_hosts, given.worker_hosts)
        given.servers, given.workers = len(tasks.ps_hosts), len(tasks.worker_hosts)
        return _by_itself(tasks, lambda: take_part(given, tasks, answer))
    return ranks.join("real.run", lambda comm: _join(given, comm, answer))


def _by_itself(tasks: Tasks, work) -> int:
    """Do the work of a process that no launcher of MPI's ends; say why it ends, and end it at once."""
    try:
        return work()
    except (WrongSetting, RunFailed, KeyboardInterrupt) as error:
        kind, code = {WrongSetting: ("refused", 2), RunFailed: ("failed", 1)}.get(type(error), ("failed", 130))
        ranks.say(kind, str(error) or f"{tasks.name} was interrupted")
    except Exception as error:
        traceback.print_exc()
        kind, code = "failed", 1
        ranks.say(kind, f"{type(error).__name__}: {error}")
    if tasks.job == "ps" and code != 130:
        time.sleep(LINGER_S)
    return leave(code)


def _join(given: argparse.Namespace, comm, answer) -> None:
    from mpi4py import MPI

    given.workers = ranks.workers_of(given, comm.size)
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
        kept = given.parameters if replication == 0 else None
        traces.append(runtime.run(scenario, replication, parts.of(given.trace, replication), kept))
    if tasks.is_chief:
        answer(given, scenario, traces, time.perf_counter() - clock_s)
    if tasks.job == "ps":
        time.sleep(LINGER_S)
    finalise()
    leave()
