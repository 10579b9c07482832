"""Start ranks: alone, a command launches mpirun for itself; under mpirun or srun it joins."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sim.base.errors import RunFailed, WrongSetting
from sim.base.home import DISTRIBUTION, installed

if TYPE_CHECKING:
    from sim.platform.cluster import Cluster

JOINED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK")  # names that launchers put into the environment
REASON = "TRAINSIM_REASON "  # before the last message of a rank that ends the run
PR_SET_PDEATHSIG = 1  # linux/prctl.h
GRACE_S = 5.0  # for mpirun to end its ranks
MPIRUN_S = re.compile(
    "mpirun|prterun|plm:ssh: Warning: setpgid"
)  # lines of its own; the last, a race that does no harm
# What TensorFlow and its messages log as a process begins, and as its peers end.
NOISE = re.compile(
    r"WARNING: All log messages before absl|[IWEF]\d{4} [\d:.]+ |\d{4}-\d\d-\d\d [\d:.]+: [IWE] |Additional GRPC|:UNKNOWN:|From /job:"
)
DEATH = re.compile(r"process rank (\d+) with PID (\d+) on node (\S+) exited\s+on\s+signal\s+(\d+)(?: \(([^)]*)\))?")


class Hosts(NamedTuple):
    """The hosts of a launch, one for each rank, if mpirun's own means do not start them.

    Args:
        names: of the hosts.
        agent: the command that runs a command on a host, as ssh would.
        inside: the command before mpirun's that runs it on the network of these hosts.
        interface: the network interface through which they reach one another.
    """

    names: tuple[str, ...]
    agent: str
    inside: tuple[str, ...]
    interface: str = "eth0"


def joined() -> bool:
    """Whether a launcher started this process as one of its ranks."""
    return any(name in os.environ for name in JOINED)


def mpirun() -> str:
    """The mpirun of this environment, or the one on the path.

    Raises:
        WrongSetting: there is none.
    """
    here = Path(sys.executable).parent / "mpirun"
    found = str(here) if here.exists() else shutil.which("mpirun")
    if found is None:
        raise WrongSetting("mpirun", None, f"pip install '{DISTRIBUTION}[mpi]', or load the cluster's own Open MPI")
    return found


def remote(cluster: Cluster | None) -> bool:
    """Whether a cluster file was given that names other hosts than this one."""
    return cluster is not None and any(host.name not in ("localhost", "127.0.0.1") for host in cluster.machines())


def command(
    ranks: int, module: str, arguments: list[str], cluster: Cluster | None = None, hosts: Hosts | None = None
) -> list[str]:
    """The mpirun command line that starts `ranks` ranks of `python -m module arguments`.

    On this machine alone messages go through shared memory (mpirun's own control port is the only one that listens), and ranks that
    wait within MPI yield the core. Open MPI does so by itself if it sees more ranks than slots, which `localhost:n` hides from it.
    Ranks that compute would then lack a core. With a cluster file, or in a
    Slurm allocation, ranks go to its hosts; with `hosts`, to these. Ranks are not bound: TensorFlow would inherit one core
    for all its threads.
    """
    line = [mpirun(), "-n", str(ranks), "--bind-to", "none", "--allow-run-as-root"]
    if hosts:
        line = [*hosts.inside, *line, *_between(hosts)]
    elif remote(cluster):
        line += ["--host", ",".join(f"{host.name}:{host.ranks}" for host in cluster.machines())]
    elif "SLURM_JOB_ID" not in os.environ:
        alone = "--oversubscribe --mca btl self,sm --mca mpi_yield_when_idle 1"
        line += ["--host", f"localhost:{ranks}", *alone.split()]
    return [*line, sys.executable, "-m", "mpi4py", "-m", installed(module), *arguments]


def _between(hosts: Hosts) -> list[str]:
    """One rank a host, over TCP; ranks that wait in MPI yield the core, because these hosts may share cores."""
    line = ["--host", ",".join(f"{name}:1" for name in hosts.names)]
    line += ["--prtemca", "plm_ssh_agent", hosts.agent, "--prtemca", "plm_ssh_no_tree_spawn", "1"]
    settings = {"pml": "ob1", "btl": "self,tcp", "btl_tcp_if_include": hosts.interface, "mpi_yield_when_idle": "1"}
    return line + [word for name, value in settings.items() for word in ("--mca", name, value)]


def launch(line: list[str]) -> None:
    """Run mpirun to its end. What ranks print goes to our standard output, and mpirun's complaints become one line.

    Raises:
        WrongSetting: a rank refused a setting.
        RunFailed: naming the rank that ended the run.
        KeyboardInterrupt: raised after every rank has ended.
        OSError: our standard output has not taken all.
    """
    environment = {**os.environ, "TRAINSIM_LAUNCHED": "1", "PYTHONUNBUFFERED": "1"}
    if not sys.stdout.isatty():  # mpirun gives ranks a terminal of its own making
        environment |= {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "80"}
    words: list[str] = []
    lost: list[OSError] = []
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # mpirun does not say that a stdout is full
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=environment,
            preexec_fn=end_with_parent,  # noqa: PLW1509 no thread runs yet
        )
        readers = [
            threading.Thread(target=_pass_on, args=(process.stderr, words), daemon=True),
            threading.Thread(target=_print, args=(process.stdout, lost), daemon=True),
        ]
        for reader in readers:
            reader.start()
        try:
            code = process.wait()
        except KeyboardInterrupt:
            _end(process)
            raise
    finally:
        signal.signal(signal.SIGTERM, previous)
    for reader in readers:
        reader.join(GRACE_S)
    if code:
        raise failure(code, "\n".join(words))
    if lost:
        raise lost[0]


def end_with_parent() -> None:
    """In a child, before it starts: have the kernel end it should this launcher be killed outright (Linux)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def failure(code: int, words: str) -> Exception:
    """The error that ended the run, from mpirun's exit code and the lines of mpirun and the ranks."""
    for line in words.splitlines():
        if line.startswith(REASON):
            kind, _, message = line.removeprefix(REASON).partition(" ")
            return Refused(message) if kind == "refused" else RunFailed(message)
    death = DEATH.search(" ".join(words.split()))
    if death:
        rank, pid, host, number, name = death.groups()
        return RunFailed(f"rank {rank} died (process {pid} on {host}, signal {number}, {name}); the run is ended")
    last = [line for line in words.splitlines() if line.strip(" -")][-1:]
    return RunFailed(f"mpirun ended with {code}: {' '.join(last) or 'it said nothing'}")


class Refused(WrongSetting):
    """A setting that a rank refused, with the rank's own message."""

    def __init__(self, message: str):
        ValueError.__init__(self, message)


def interrupt(_signal, _frame):
    """A handler that makes a signal a Ctrl-C."""
    raise KeyboardInterrupt


def _end(process: subprocess.Popen) -> None:
    """Have mpirun end its ranks, or end it."""
    process.terminate()
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _print(stream, lost: list[OSError]) -> None:
    """Print ranks' lines. After an error, which is kept in `lost`, no more: the run goes on, because it may write files."""
    for line in stream:
        if not lost:
            try:
                print(line, end="", flush=True)
            except OSError as error:
                lost.append(error)
    stream.close()


def _pass_on(stream, words: list[str]) -> None:
    """Pass ranks' lines on to our standard error. Keep mpirun's boxes and last messages, which become one line."""
    boxed = False
    for line in stream:
        text = line.strip("\n\0")  # an ended rank leaves NULs
        if set(text) == {"-"} and len(text) > 20:
            boxed = not boxed
            continue
        if NOISE.match(text):
            continue
        words.append(text)
        if boxed or text.startswith(REASON) or MPIRUN_S.search(text) or not text.strip():
            continue
        print(text, file=sys.stderr, flush=True)
    stream.close()
