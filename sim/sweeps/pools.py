"""The places that simulate a sweep's scenarios: this process, processes of its own, or a program's executor.

Each is a context, which ends at once on an exception. It gives an object with `processes`, their number; `pack`, which prepares tasks
to be submitted; `submit`, as of executors; and `reopen`, for use after the death of a process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from weakref import WeakSet

from sim.base.errors import RunFailed, WrongSetting
from sim.base.home import installed
from sim.base.ranges import MOST_CORES, check_integer
from sim.needs import cores

PRELOADED = [installed("sim.sweeps.work"), installed("sim.runs.replications"), "pandas"]
UNGUARDED = (
    "the processes of a sweep import the script that calls it, which has to do so below `if __name__ == '__main__':`"
)
LAUNCHED = (
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "SLURM_STEP_NUM_TASKS",
)  # what launchers say of how many copies they started


class Here:
    """This process alone."""

    processes = 1

    def pack(self, tasks: list) -> list:
        """They need not travel."""
        return tasks

    def submit(self, function, *arguments) -> Future:
        """The future is done already."""
        future: Future = Future()
        future.set_result(function(*arguments))
        return future

    def reopen(self) -> None:
        """It has not died."""

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        pass


class Own:
    """So many processes. They end when this one does, however it ends, because a pipe to them is then closed.

    They are forked from a process that has loaded the simulator and nothing else (a fork server), because a program's other objects,
    above all its threads, may not survive a fork.
    """

    pack = staticmethod(pickle.dumps)

    def __init__(self, processes: int):
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # one of them, that is about to begin
            raise RunFailed(UNGUARDED)
        self.processes = processes
        self._submitted: WeakSet[Future] = WeakSet()

    def __enter__(self):
        self._open()
        return self

    def submit(self, function, *arguments) -> Future:
        """Submit as concurrent.futures.Executor does."""
        future = self._executor.submit(function, *arguments)
        self._submitted.add(future)
        return future

    def reopen(self) -> None:
        """New processes in place of those that there are."""
        self._end()
        self._open()

    def __exit__(self, kind, *_) -> None:
        if kind is None and all(future.done() for future in self._submitted):  # or else nobody waits for them
            self._executor.shutdown()
        self._end()

    def _open(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self._theirs, self._ours = context.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(self.processes, context, _begin, (self._theirs,))
        try:
            self._executor.submit(os.getpid).result()
        except BrokenExecutor as error:
            raise RunFailed(UNGUARDED) from error

    def _end(self) -> None:
        self._ours.close()
        self._executor.shutdown(cancel_futures=True)
        self._theirs.close()


def _begin(pipe) -> None:
    """A process begins: Ctrl-C is for the one that started it to answer, and it ends with that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe) -> None:
    try:
        pipe.recv()
    except (EOFError, OSError):
        os._exit(1)


class Given:
    """An executor that a program has, which goes on after the sweep.

    Args:
        executor: of concurrent.futures, or one that is like those.
    """

    pack = staticmethod(pickle.dumps)

    def __init__(self, executor: Executor):
        self.submit = executor.submit
        self.processes = (
            getattr(executor, "_max_workers", None) or cores()
        )  # all of concurrent.futures and mpi4py have it

    def reopen(self) -> None:
        """A program's executor stays broken.

        Raises:
            RunFailed: always.
        """
        raise RunFailed("a process of the executor died; with resume the sweep goes on where it was")

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        pass


class Ranks:
    """The ranks of `mpirun python -m mpi4py.futures` but the first, which deals.

    If one of them dies, or at Ctrl-C, mpirun kills all: the parts of the file stay, and --resume goes on.
    """

    def __enter__(self) -> Given:
        from mpi4py.futures import MPIPoolExecutor

        self._executor = MPIPoolExecutor()
        return Given(self._executor)

    def __exit__(self, kind, *_) -> None:
        self._executor.shutdown(wait=kind is None, cancel_futures=True)


Pool = Here | Own | Given | Ranks


def of_command(processes: int | None) -> Pool:
    """The pool of the command: the ranks of mpi4py.futures if it was started so, else so many processes, one a core if None.

    Raises:
        WrongSetting: a launcher started several copies that know nothing of one another.
    """
    if "mpi4py.futures" in sys.modules:  # `python -m mpi4py.futures` runs this command on the first rank alone
        from mpi4py import MPI

        return Ranks() if MPI.COMM_WORLD.size > 1 else of_size(processes)
    copies = [text for name in LAUNCHED if (text := os.environ.get(name, "1")) != "1"]
    if copies:
        allowed = "one, or mpirun (or srun) ... python -m mpi4py.futures -m sim.sweep ..."
        raise WrongSetting("mpirun", f"{copies[0]} copies of a sweep, each by itself", allowed)
    return of_size(processes)


def of_size(processes: int | None) -> Pool:
    """So many processes, one a core if None; of one, this.

    Raises:
        WrongSetting: fewer than one, or more than anybody has.
    """
    count = cores() if processes is None else processes
    check_integer("--workers-processes", count, 1, MOST_CORES)
    return Here() if count == 1 else Own(count)
