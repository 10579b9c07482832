"""The hosts of a job: the cores and GPUs that its ranks compute on, and how links between them may differ from plain ports."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from sim.base.errors import WrongSetting

MOST_POLLS = 0.5  # of all cores: ranks that poll give way to ranks that work
TICK_S = 4e-3  # of Linux's scheduler at 250 Hz: when a turn may end, and an idle core may take over a computation
MOST_TURNS = 20  # of the shortest computation on a core
ROUND_OFF_S, ROUND_OFF = 1e-12, 2.0**-52  # less is no work: seconds, and a share of the time


@dataclass(frozen=True)
class Host:
    """One machine.

    Args:
        cores: of all its ranks; None: each of them has one of its own.
        turn_s: seconds for which a computation has a core that others wait for. Infinite: until it is done, and who came first is next;
            0: all have equal shares of the cores; else as in Linux: it begins on the core with the fewest and stays there, in turn.
        contention: share by which work takes longer for each other busy core; 0 where `turn_s` is infinite.
        gpus: that passes are computed on; the host's ranks have them in turn, the first the first. None: cores compute them.
        switching: share by which passes take longer while several ranks compute on one GPU, beside their shares of it.
    """

    cores: int | None = None
    turn_s: float = math.inf
    contention: float = 0.0
    gpus: int | None = None
    switching: float = 0.0

    def __post_init__(self):
        if self.contention and self.turn_s == math.inf:
            raise WrongSetting("contention", self.contention, "0 with cores that serve one computation after another")


class Device(NamedTuple):
    """Cores, or a GPU, of one or several ranks; see Host."""

    cores: int
    turn_s: float
    contention: float = 0.0
    switching: float = 0.0

    def pace(self, works: int, polls: float = 0.0) -> float:
        """The pace of each of so many computations, 1 or more; 1 is a core that has its host to itself.

        Args:
            polls: cores that the polls of waiting ranks take meanwhile.
        """
        busy = min(works + polls, self.cores)
        share = (self.cores - min(polls, self.cores * MOST_POLLS)) / works
        if works > 1:
            share /= 1 + self.switching
        return min(1.0, share) / (1 + self.contention * (busy - 1))


def devices(job) -> tuple[list[Device], list[int], list[int]]:
    """The devices of a job, and by rank the number of the one that computes its passes, and of the one that does its other work."""
    found: dict[tuple, int] = {}
    made, of_passes, of_work, placed = list[Device](), list[int](), list[int](), Counter[int]()

    def number(key: tuple, device: Device) -> int:
        if key not in found:
            found[key] = len(made)
            made.append(device)
        return found[key]

    for rank in range(job.ranks):
        at = job.host(rank)
        host = job.machine(at)
        own = host.cores is None
        key = ("rank", rank) if own else ("host", 0 if job.one_machine else at)
        of_work.append(number(key, Device(host.cores or 1, host.turn_s, 0.0 if own else host.contention)))
        if host.gpus:
            gpu = "gpu", at, placed[at] % host.gpus
            of_passes.append(number(gpu, Device(1, 0.0, switching=host.switching)))
        else:
            of_passes.append(of_work[rank])
        placed[at] += 1
    return made, of_passes, of_work


@dataclass(frozen=True)
class Windows:
    """TCP's windows: bytes that a rank may have under way to another one before they are acknowledged.

    Args:
        initial_bytes: after a rest.
        most_bytes: to which they grow.
    """

    initial_bytes: float
    most_bytes: float

    def __post_init__(self):
        if not 0 < self.initial_bytes <= self.most_bytes:
            raise WrongSetting(
                "initial_bytes", self.initial_bytes, f"more than 0, up to most_bytes, {self.most_bytes:,}"
            )


@dataclass(frozen=True)
class Fair:
    """Messages that pass a port at once share it, max-min fair; each port is a token bucket.

    Args:
        ramp_bytes: while its sender's port could pass so many, a message's window doubles, from a sixteenth on; 0: it is open.
        burst_bytes: that an idle port passes at once.
        queue_bytes: the longest queue before a busy port; a message that is no longer waits behind it.
        buffer_bytes: that a sender's system keeps: a message has left when no more of it remain.
        eager_bytes: the longest message that leaves at once; a longer one is announced, and leaves when its receiver has asked for it
            (MPI's rendezvous).
        receives_first: whether ranks post their receives before they announce, as libraries do: what a rank has heard of it asks for
            before its own message is announced.
    """

    ramp_bytes: float = 0.0
    burst_bytes: float = 0.0
    queue_bytes: float = 0.0
    buffer_bytes: float = 0.0
    eager_bytes: float = math.inf
    receives_first: bool = False
