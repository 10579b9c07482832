"""A rank joins a launch and leaves it, with its name and a last message if anything goes wrong."""

from __future__ import annotations

import argparse
import os
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
    except WrongSetting as error:
        time.sleep(LET_RANK_0_SPEAK_S if comm.rank else 0)  # most often all ranks refuse the same thing
        say("refused", str(error), program)
        _leave(comm, 2)
    except RunFailed as error:
        say("failed", f"rank {comm.rank}: {error}", program)
        _leave(comm, 1)
    except (OSError, MemoryError) as error:  # a disk that is full, say
        say("failed", f"rank {comm.rank}: {command.failure(error)}", program)
        _leave(comm, 1)
    except KeyboardInterrupt:
        say("failed", f"rank {comm.rank} was interrupted")
        _leave(comm, 1)
    except Exception as error:
        traceback.print_exc()
        say("failed", f"rank {comm.rank} failed: {type(error).__name__}: {error}", program)
        _leave(comm, 1)
    return 0


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


def say(kind: str, message: str, program: str = "real.run") -> None:
    """Say something to the launcher that started us; without one, to the user."""
    prefix = f"{REASON}{kind} " if "TRAINSIM_LAUNCHED" in os.environ else f"{program}: "
    print(f"{prefix}{message}", file=sys.stderr, flush=True)


def _leave(comm, code: int) -> None:
    """End every rank of the launch."""
    sys.stdout.flush()
    comm.Abort(code)
