"""Tasks: the addresses of servers and workers (a tf.train.ClusterSpec), and which of them this process is."""

from __future__ import annotations

import socket
from contextlib import closing
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Tasks:
    """The processes of a launch with parameter servers.

    Args:
        ps_hosts, worker_hosts: host:port of each.
        job, task: which of them this process is: ps or worker, and its number.
    """

    ps_hosts: tuple[str, ...]
    worker_hosts: tuple[str, ...]
    job: str
    task: int

    @property
    def port(self) -> int:
        """Of this process."""
        mine = self.ps_hosts if self.job == "ps" else self.worker_hosts
        return int(mine[self.task].rpartition(":")[2])

    @property
    def is_chief(self) -> bool:
        """Whether this is worker 0, which initialises, collects and answers."""
        return self.job == "worker" and self.task == 0

    @property
    def on_loopback(self) -> bool:
        """Whether all processes are on this machine."""
        return all(address.startswith(LOOPBACK) for address in (*self.ps_hosts, *self.worker_hosts))


def tasks_of(comm, servers: int) -> Tasks:
    """The tasks of a launch, servers first, then workers: by their host names, or on loopback if they share a host. Collective."""
    hosts = comm.allgather((socket.gethostname(), free_port()))
    alone = len({host for host, _ in hosts}) == 1
    addresses = tuple(f"{LOOPBACK if alone else host}:{port}" for host, port in hosts)
    job, task = ("ps", comm.rank) if comm.rank < servers else ("worker", comm.rank - servers)
    return Tasks(addresses[:servers], addresses[servers:], job, task)


def free_port() -> int:
    """A free port."""
    with closing(socket.socket()) as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]
