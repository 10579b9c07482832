"""Tasks: the addresses of servers and workers (a tf.train.ClusterSpec), and which of them this process is."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import socket
import time
from contextlib import closing
from dataclasses import dataclass

from real.launching import host_names
from sim.base.errors import WrongSetting

LOOPBACK = "127.0.0.1"
JOBS = ("ps", "worker")


@dataclass(frozen=True)
class Tasks:
    """The processes of a run with parameter servers.

    Args:
        ps_hosts, worker_hosts: host:port of each.
        job, task: which of them this process is.
    """

    ps_hosts: tuple[str, ...]
    worker_hosts: tuple[str, ...]
    job: str
    task: int

    @property
    def address(self) -> str:
        """host:port of this process."""
        return self.hosts(self.job)[self.task]

    @property
    def name(self) -> str:
        """The name of this process for users."""
        return f"{'server' if self.job == 'ps' else 'worker'} {self.task}"

    @property
    def is_chief(self) -> bool:
        """Whether this is worker 0, which initialises, collects and answers."""
        return self.job == "worker" and self.task == 0

    @property
    def on_loopback(self) -> bool:
        """Whether nobody but this machine is meant to connect."""
        return all(_is_loopback(host) for host in (*self.ps_hosts, *self.worker_hosts))

    @property
    def digest(self) -> str:
        """A digest, equal for processes that were given equal lists."""
        return hashlib.sha256(repr((self.ps_hosts, self.worker_hosts)).encode()).hexdigest()[:16]

    def hosts(self, job: str) -> tuple[str, ...]:
        """Addresses of one job's tasks."""
        return self.ps_hosts if job == "ps" else self.worker_hosts

    def machines(self, servers: int, workers: int) -> tuple[tuple[str, int], ...]:
        """The host of each process of a run and its cores, as far as this one knows, servers first."""
        cores = len(os.sched_getaffinity(0))
        return tuple(
            (socket.gethostname() if self.on_loopback else a.rpartition(":")[0], cores)
            for a in (*self.ps_hosts[:servers], *self.worker_hosts[:workers])
        )

    def everyone(self) -> list[tuple[str, int]]:
        """(job, task) of each process, servers first: the order of a trace's ranks."""
        return [(job, task) for job in JOBS for task in range(len(self.hosts(job)))]


def by_hand(job: str, task: int, ps_hosts: str, worker_hosts: str) -> Tasks:
    """The task that the options --job, --task, --ps-hosts and --worker-hosts describe.

    Raises:
        WrongSetting: a list that is empty, repeats itself or is not of host:port, or a task that is not in it.
    """
    lists = [_addresses(option, text) for option, text in (("--ps-hosts", ps_hosts), ("--worker-hosts", worker_hosts))]
    both = [address for hosts in lists for address in hosts]
    twice = sorted({address for address in both if both.count(address) > 1})
    if twice:
        raise WrongSetting("--ps-hosts and --worker-hosts", twice[0], "each address once")
    tasks = Tasks(*lists, job, task)
    if not 0 <= task < len(tasks.hosts(job)):
        raise WrongSetting(
            "--task", task, f"0 to {len(tasks.hosts(job)) - 1}: the {job} list has {len(tasks.hosts(job))}"
        )
    return tasks


def _addresses(option: str, text: str | None) -> tuple[str, ...]:
    found = tuple(word.strip() for word in (text or "").split(","))
    for address in found:
        host, _, port = address.rpartition(":")
        if not (host and port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536):
            raise WrongSetting(option, text, "host:port,host:port,... as on every other process of the run")
        host_names.check(option, host)
    return found


def free_port() -> int:
    """A free port."""
    with closing(socket.socket()) as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def check_port(address: str) -> None:
    """Refuse a port of this machine on which another process listens.

    Raises:
        WrongSetting: naming it.
    """
    port = int(address.rpartition(":")[2])
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise WrongSetting("port", address, f"a port that is free on this machine ({error.strerror})") from error


def reachable(address: str, patience_s: float = 4.0) -> bool:
    """Whether a process listens there; a dead one refuses at once, but a SYN that a busy port loses is sent again after 1 and 3 s."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), patience_s).close()
    except OSError:
        return False
    return True


def wait_for(address: str, patience_s: float) -> bool:
    """Whether a process listens there, now or within `patience_s`."""
    start_s = time.monotonic()
    while not reachable(address):
        if time.monotonic() - start_s > patience_s:
            return False
        time.sleep(0.1)
    return True


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0]
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
