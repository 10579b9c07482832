"""The places that simulate a sweep's scenarios: this process, processes of its own, or a program's executor; and the rows that come of it.

Each place is a context, which ends at once. It gives an object with `processes`, their number, and `submit`, as of executors.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import resource_tracker

from sim.base.errors import RunFailed, WrongSetting
from sim.base.home import installed
from sim.base.ranges import MOST_CORES, check_integer
from sim.needs import cores
from sim.sweeps.jobs import Job, said, work

PRELOADED = [installed("sim.sweeps.jobs"), installed("sim.runs.replications"), "pandas"]
UNGUARDED = (
    "the processes of a sweep import the script that calls it, which has to do so below `if __name__ == '__main__':`"
)
LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")  # how many copies a launcher started
MOST_IN_CHUNK = 4  # scenarios
AHEAD = 2  # chunks in hand for each process, so that none waits for the next
KILLED = "its process died twice, the second time with nothing else to do: out of memory, or killed"


class Here:
    """This process alone."""

    processes = 1

    def submit(self, function: Callable, *arguments) -> Future:
        """The future is done already."""
        future: Future = Future()
        future.set_result(function(*arguments))
        return future

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        pass


class Given(Here):
    """An executor that a program has, which goes on after the sweep.

    Args:
        executor: of concurrent.futures, or one that is like those.
    """

    def __init__(self, executor: Executor):
        self.submit = executor.submit  # type: ignore[assignment]
        self.processes = getattr(executor, "_max_workers", None) or cores()  # those of Python and mpi4py have it


class Own:
    """So many processes. They end when this one does, however it ends, because a pipe to them is then closed.

    They are forked from a process that has loaded the simulator and nothing else (a fork server), because a program's other objects,
    above all its threads, may not survive a fork.
    """

    def __init__(self, processes: int):
        if getattr(multiprocessing.current_process(), "_inheriting", False):  # one of them, that is about to begin
            raise RunFailed(UNGUARDED)
        self.processes = processes

    def __enter__(self):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self._theirs, self._ours = context.Pipe(duplex=False)
        try:
            with _ctrl_c_later():
                self._executor = ProcessPoolExecutor(self.processes, context, _begin, (self._theirs,))
                self.submit = self._executor.submit
                first = self.submit(os.getpid)  # waits for the fork server
            first.result()
        except BrokenExecutor as error:
            raise RunFailed(UNGUARDED) from error
        except KeyboardInterrupt:
            self.__exit__()  # waits for the process, which begins with the executor's locks
            raise
        return self

    def __exit__(self, *_) -> None:
        self._ours.close()
        self._executor.shutdown(cancel_futures=True)
        self._theirs.close()


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Ctrl-C is answered after the block, and blocked in processes that it starts: a fork server would end with a traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    resource_tracker.ensure_running()  # it unblocks SIGINT when it starts
    answer = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, answer)
        if heard:
            signal.raise_signal(signal.SIGINT)


def _begin(pipe) -> None:
    """A process begins: Ctrl-C is for the one that started it to answer, and it ends with that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe) -> None:
    try:
        pipe.recv()
    except (EOFError, OSError):
        os._exit(1)


class Ranks(Given):
    """The ranks of `mpirun python -m mpi4py.futures` but the first, which deals.

    If one of them dies, or at Ctrl-C, mpirun kills all: the parts of the file stay, and --resume goes on.
    """

    def __init__(self):
        from mpi4py.futures import MPIPoolExecutor

        self._executor = MPIPoolExecutor()
        super().__init__(self._executor)

    def __exit__(self, kind=None, *_) -> None:
        self._executor.shutdown(wait=kind is None, cancel_futures=True)


Pool = Here | Own


def rows(wanted: Iterable[Job], pool: Pool, left_s: Callable[[], float] = lambda: math.inf) -> Iterator[list[dict]]:
    """Rows as they come, of chunks of jobs. What a chunk had that failed, by a process's death or on the way, is simulated alone.

    Args:
        wanted: jobs that have a scenario.
        pool: opened.
        left_s: says how many seconds are left, after which no row is waited for.

    Raises:
        RunFailed: a process of a program's executor died.
    """
    left, again, pending = deque(wanted), deque[Job](), dict[Future, list[Job]]()
    alone = broken = False
    try:
        while (left or again or pending) and (seconds := left_s()):
            if not pending:
                if broken:
                    _reopen(pool, 0 if alone else len(again))
                alone, broken = bool(again), False
            queue, most = (again, 1) if alone else (left, AHEAD * pool.processes if pool.processes > 1 else 1)
            while queue and len(pending) < most and (alone or not again):
                size = min(MOST_IN_CHUNK, math.ceil(len(queue) / most)) if most > 1 else 1
                chunk = [queue.popleft() for _ in range(size)]
                pending[_submitted(chunk, pool)] = chunk
            for future in wait(pending, None if seconds == math.inf else seconds, FIRST_COMPLETED).done:
                chunk, error = pending.pop(future), future.exception()
                broken = broken or isinstance(error, BrokenExecutor)
                if error is None:
                    yield future.result()
                elif alone:
                    why = KILLED if isinstance(error, BrokenExecutor) else said(error)
                    yield [{"digest": chunk[0].digest, "error": why}]
                else:
                    again.extend(chunk)
    finally:
        for future in pending:
            future.cancel()


def _submitted(chunk: list[Job], pool: Pool) -> Future:
    """The rows of a chunk to be; if it cannot travel, the future has the reason."""
    try:
        return pool.submit(work, [job.digest for job in chunk], chunk if type(pool) is Here else pickle.dumps(chunk))
    except Exception as error:
        future: Future = Future()
        lost = isinstance(error, BrokenExecutor)
        future.set_exception(error if lost else RunFailed(f"not to be sent to another process: {said(error)}"))
        return future


def _reopen(pool: Pool, lost: int) -> None:
    """New processes in place of those of which one died; `lost` scenarios were under way."""
    if not isinstance(pool, Own):
        raise RunFailed("a process of the executor died; with resume the sweep goes on where it was")
    pool.__exit__()
    pool.__enter__()
    if lost:
        print(f"a process died; {lost} scenarios are simulated again, one by one", file=sys.stderr)


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
