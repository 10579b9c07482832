"""The memory of the verbs of one rank, from one to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

# Within so many seconds, in all simulated worlds, messages that reach a port pass it in the order of their senders, and a gradient that is
# ready goes with the cycle that begins.
TIE_S = 1e-12
CLOCK_S = 1e-9  # time left counts as none below the clock's resolution, so that all worlds round alike


@dataclass(slots=True)
class Book:
    """Notes of one rank.

    Args:
        over: the first server has said that training is over.
        token: the version in its last acknowledgement.
        rounds: that this rank has begun.
        owed: workers whose gradient has not been acknowledged.
        gone: workers that have said good-bye.
        delayed: messages whose induced delay is not over: (when it is, number, letter), a heap.
        came: messages that were delayed so far.
        reduced: gradients that all ranks have reduced.
    """

    over: bool = False
    token: int = 0
    rounds: int = 0
    owed: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    delayed: list = field(default_factory=list)
    came: int = 0
    reduced: int = 0
