"""The rank of this process, how many there are, and its host, as launchers and torch.distributed tell them."""

from __future__ import annotations

import os
import socket
import sys
from typing import NamedTuple

from sim.base.errors import WrongSetting

LAUNCHERS = (  # the variables of torchrun and of many others, of Open MPI's mpirun, of Slurm's srun
    ("RANK", ("WORLD_SIZE",)),
    ("OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_SIZE",)),
    ("SLURM_PROCID", ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")),
)
RESTARTS = "TORCHELASTIC_RESTART_COUNT"  # torchrun starts all processes again where one has failed
MOST_RANKS = 10**5


class Place(NamedTuple):
    """A process of a training job: its rank, the number of ranks, the name of its host and the cores that it may use."""

    rank: int
    world: int
    host: str
    cores: int


def here() -> Place:
    """The place of this process; alone if nothing tells.

    Raises:
        WrongSetting: a launcher's variable that is no rank.
    """
    return Place(*_numbers(), socket.gethostname() or "host", len(os.sched_getaffinity(0)))


def _numbers() -> tuple[int, int]:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    for of_rank, of_world in LAUNCHERS:
        known = next((name for name in of_world if os.environ.get(name)), None)
        if os.environ.get(of_rank) and known:
            world = _number(known, 1, MOST_RANKS)
            return _number(of_rank, 0, world - 1), world
    return 0, 1


def restarts() -> int:
    """How often torchrun has started the job again."""
    return _number(RESTARTS, 0, MOST_RANKS) if os.environ.get(RESTARTS) else 0


def _number(name: str, least: int, most: int) -> int:
    given = os.environ[name]
    if not (given.isdecimal() and least <= int(given) <= most):
        raise WrongSetting(name, given, f"an integer from {least} to {most}, as a launcher sets it")
    return int(given)
