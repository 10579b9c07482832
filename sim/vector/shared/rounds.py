"""Rounds of servers behind a barrier and their workers, where some share hosts or are late: two kinds, one interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from sim.vector.servers.barrier_round import Wait


class Ranks(NamedTuple):
    """Servers or workers at the beginning of a round: their clocks and speeds, shape (replications, ranks).

    Args:
        now_s: of workers the seconds between the last note and their requests.
        then_s: what servers do between: a function of when they begin to update, for when they have, shape (replications, servers). Of
            workers `then_s(step)` is a function of when they begin to compute, and of when they had computed before.
    """

    now_s: np.ndarray
    speeds: np.ndarray
    then_s: Callable[[Any], Any]


class BarrierRounds(Protocol):
    """Servers and workers of one scenario.

    Attributes:
        steps: the number of each worker's next minibatch, from 0: of all, or shape (replications, workers).
        first_leads: whether servers tell the first one of their updates, and it alone waits to let workers go.
    """

    steps: int | np.ndarray
    first_leads: bool

    def settle(self, servers: Ranks, workers: Ranks) -> tuple[np.ndarray, Wait, list[Wait]]:
        """A round until all servers have added enough gradients.

        Returns:
            When they have, shape (replications, servers); waits of servers, and of workers, shape (replications, ranks, waits).

        Raises:
            Unsettled: two messages come at one instant, and which is first cannot be told.
        """

    def hear(self, now_s: np.ndarray, speeds: np.ndarray) -> tuple[np.ndarray, Wait]:
        """The first server takes a note from each that tells it, by default none: when it has, shape (replications, 1), and its waits."""
        return now_s[:, :1], (np.zeros((len(now_s), 1, 0)),) * 2

    def let_go(self, now_s: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """Servers post notes: when they have, shape (replications, servers).

        Raises:
            Unsettled: as of `settle`, or they do so at another time than was reckoned with.
        """

    def end(self, servers: Ranks, workers: Ranks) -> tuple[Wait, list[Wait]]:
        """Waits after the last notes were posted, if there are no further requests: of servers, and of workers."""
