"""A rank joins a launch and leaves it, with its name and a last message if anything goes wrong."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable

from real.launching.mpirun import REASON
from sim import command
from sim.base.errors import RunFailed, WrongSetting

LET_RANK_0_SPEAK_S = 2.0


def join(program: str, work: Callable[[object], int | None]) -> int:
    """Run `work(comm)` as one rank of a launch; an error on any rank ends all of them."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    try:
        return work(comm) or 0
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, WrongSetting) and comm.rank:
            time.sleep(LET_RANK_0_SPEAK_S)  # most often all ranks refuse the same thing
        code = told(error, f"rank {comm.rank}", program)
        sys.stdout.flush()
        comm.Abort(code)
    return 0


def told(error: BaseException, name: str, program: str) -> int:
    """Say why the process called `name` ends; the code with which it does."""
    if isinstance(error, WrongSetting):
        say("refused", str(error), program)
        return 2
    if isinstance(error, KeyboardInterrupt):
        said = f"{name} was interrupted"
    elif isinstance(error, RunFailed):
        said = f"{name}: {error}"
    elif isinstance(error, (OSError, MemoryError)):  # a disk that is full, say
        said = f"{name}: {command.failure(error)}"
    else:
        traceback.print_exception(error)
        said = f"{name} failed: {type(error).__name__}: {error}"
    say("failed", said, program)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def workers_of(given: argparse.Namespace, size: int) -> int:
    """The number of workers among the `size` ranks of a launch, by the options `given`.

    Raises:
        WrongSetting: the launcher started another number of ranks than `--workers` needs.
    """
    from sim import options, protocols
    from sim.job.filling import ALL

    protocol = protocols.make(given.protocol, given.set)
    if not protocol.served(options.workload_of(given)):
        others, least = 0, 0
    else:
        others, least = (given.servers, 1) if protocol.has_servers else (1, 0)
    workers = size - others
    if workers < least or given.workers not in (None, ALL, workers):
        who = {0: "all are workers", 1: "one is no worker"}.get(others, f"{others} are servers")
        raise WrongSetting(
            "--workers", given.workers, f"{max(least, workers)}: the launcher started {size} ranks and {who}"
        )
    return workers


def say(kind: str, message: str, program: str) -> None:
    """Say something to the launcher that started us; without one, to the user."""
    prefix = f"{REASON}{kind} " if "TRAINSIM_LAUNCHED" in os.environ else f"{program}: "
    print(f"{prefix}{message}", file=sys.stderr, flush=True)


def machines(comm) -> list[tuple[str, int]]:
    """The host of each rank, and its cores; of a process alone if there is no communicator. Collective."""
    mine = (socket.gethostname(), len(os.sched_getaffinity(0)))
    return [mine] if comm is None else comm.allgather(mine)
