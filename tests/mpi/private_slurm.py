"""A Slurm of one's own on this machine: slurmctld, and a slurmd for each of some nodes that are all this host."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from processes import Mark, until

NEEDED = ("slurmctld", "slurmd", "sbatch", "srun", "sinfo", "scancel")
UP_S, GRACE_S = 300, 20
CONFIG = """
ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
TmpFS={folder}/tmp/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
"""  # TmpFS: PMIx has a folder there of the same name on every node
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN\n"
ALL = "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"


class Unavailable(Exception):
    """There is no Slurm here that could be started; why."""


class Slurm:
    """One that runs.

    Args:
        environment: in which its commands find it.
    """

    def __init__(self, environment: dict[str, str]):
        self.environment = environment

    def run(self, *words: object, timeout_s: float = 900, **further) -> subprocess.CompletedProcess:
        """A command of Slurm's, or a process in whose environment it is found."""
        line = [str(word) for word in words]
        return subprocess.run(
            line, env=self.environment, capture_output=True, text=True, timeout=timeout_s, check=False, **further
        )

    def batch(self, script: Path, *words: object, cwd: Path, **exported: str) -> tuple[int, str]:
        """The exit code of a job script, and what it printed."""
        out = cwd / f"{script.stem}.out"
        environment = ",".join(["ALL", *(f"{name}={value}" for name, value in exported.items())])
        done = self.run("sbatch", "--wait", f"--export={environment}", "-o", out, script, *words, cwd=cwd)
        return done.returncode, out.read_text() if out.exists() else done.stderr


@contextmanager
def slurm(folder: Path, nodes: int = 2) -> Iterator[Slurm]:
    """A Slurm of so many nodes with two processors each, by name; all of it ends with the context.

    Raises:
        Unavailable: it is not installed, or its daemons do not run here.
    """
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        raise Unavailable(f"no {missing[0]} here (Debian: slurmctld slurmd slurm-client libpmix-dev)")
    mark = Mark()
    environment = mark.environment | {"SLURM_CONF": str(_config(folder, nodes))}
    daemons: list[subprocess.Popen] = []
    try:
        _start(folder, nodes, environment, daemons)
        yield Slurm(environment)
    finally:
        _end(mark)
        for daemon in daemons:
            daemon.wait(GRACE_S)


def _config(folder: Path, nodes: int) -> Path:
    host, ports = socket.gethostname().partition(".")[0], _free_ports(nodes + 1)
    for part in ("state", *(f"{kind}/node{i}" for kind in ("spool", "tmp") for i in range(nodes))):
        (folder / part).mkdir(parents=True)
    text = CONFIG.format(host=host, port=ports[0], user=getpass.getuser(), folder=folder)
    text += "".join(NODE.format(name=f"node{i}", host=host, port=port) for i, port in enumerate(ports[1:])) + ALL
    (folder / "slurm.conf").write_text(text)
    return folder / "slurm.conf"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _start(folder: Path, nodes: int, environment: dict[str, str], daemons: list[subprocess.Popen]) -> None:
    lines = [["slurmctld", "-D"], *(["slurmd", "-D", "-N", f"node{i}"] for i in range(nodes))]
    for line in lines:
        with (folder / f"{line[-1]}.out").open("w") as out:
            daemons.append(subprocess.Popen(line, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL))

    def idle() -> bool:
        for line, daemon in zip(lines, daemons, strict=True):
            if daemon.poll() is not None:
                said = (folder / f"{line[-1]}.out").read_text().strip().splitlines()
                raise Unavailable(f"{' '.join(line)} ended with {daemon.returncode}: {''.join(said[-1:])}")
        shown = subprocess.run(
            ["sinfo", "-h", "-t", "idle", "-o", "%D"], env=environment, capture_output=True, text=True, check=False
        )
        return shown.stdout.strip() == str(nodes)

    until(idle, UP_S)


def _end(mark: Mark) -> None:
    """Ends the daemons and what they started; whatever does not end of itself is killed."""
    give_up_s = time.monotonic() + GRACE_S
    while found := [one for one in mark.processes() if one.pid != os.getpid()]:
        for one in found:
            with suppress(psutil.Error):
                one.kill() if time.monotonic() > give_up_s else one.terminate()
        time.sleep(0.2)
