"""One process in a run with TensorFlow's servers, started by a launcher or by hand."""

from __future__ import annotations

import argparse
import socket
import time
from typing import NoReturn

from real.launching import ranks
from real.options import training
from real.runtime import Work
from real.servers.task_runner import TaskRunner, leave
from real.servers.tasks import LOOPBACK, Tasks, by_hand, free_port

LINGER_S = 1.0  # a server's, for processes that have not yet heard that the run is over


def take_part(given: argparse.Namespace, work: Work) -> int:
    """Take part in a run with TensorFlow's own servers, started by a launcher or by hand."""
    if given.job:
        tasks = by_hand(given.job, given.task or 0, given.ps_hosts, given.worker_hosts)
        given.servers, given.workers = len(tasks.ps_hosts), len(tasks.worker_hosts)
        return _by_itself(tasks, lambda: _work(given, tasks, work))
    return ranks.join("real.run", lambda comm: _join(given, comm, work))


def _by_itself(tasks: Tasks, work) -> int:
    """Do the work of a process that no MPI launcher ends; print why it ends, and end it at once."""
    try:
        return work()
    except (Exception, KeyboardInterrupt) as error:
        code = ranks.told(error, tasks.name)
    if tasks.job == "ps" and code != 130:
        time.sleep(LINGER_S)
    return leave(code)


def _join(given: argparse.Namespace, comm, work: Work) -> int:
    from mpi4py import MPI

    given.workers = ranks.workers_of(given, comm.size)
    return _work(given, tasks_of(comm, given.servers, given.workers), work, MPI.Finalize)


def tasks_of(comm, servers: int, workers: int) -> Tasks:
    """The tasks of a launch, servers first, then workers: by their host names, or on loopback if they share a host. Collective."""
    hosts = comm.allgather((socket.gethostname(), free_port()))
    alone = len({host for host, _ in hosts}) == 1
    addresses = tuple(f"{LOOPBACK if alone else host}:{port}" for host, port in hosts)
    job, task = ("ps", comm.rank) if comm.rank < servers else ("worker", comm.rank - servers)
    return Tasks(addresses[:servers], addresses[servers : servers + workers], job, task)


def _work(given: argparse.Namespace, tasks: Tasks, work: Work, finalise=lambda: None) -> NoReturn:
    """The work of each process. It does not return, because TensorFlow's sessions cannot be closed safely."""
    from real.training.trainee import Workshop

    def make() -> TaskRunner:
        return TaskRunner(tasks, Workshop(training(given), 0, tasks.task), not given.quiet)

    work(given, make)
    if tasks.job == "ps":
        time.sleep(LINGER_S)
    finalise()
    leave()
