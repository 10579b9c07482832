"""How all ranks agree in a cycle, as arrays: requests come together at rank 0, and what follows depends on that moment alone.

Each rank sits on a host of its own. All that a rank sent before has left and all that it was sent has been taken, so that only its port
may still be at work on a message, and only where the next has come before the port is free.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sim.vector.exchanges import SETTLED_S, Ports, Unsettled
from sim.verbs.fusion import REQUEST
from sim.workload import ITEM_BYTES

REQUEST_BYTES = ITEM_BYTES * (REQUEST.stop - REQUEST.start)
Wait = tuple[np.ndarray | slice, np.ndarray, np.ndarray]  # ranks, from, to; shape (replications, waits)


class Begun(NamedTuple):
    """Ranks that begin to negotiate, in some replications.

    Args:
        rows: which replications, shape (rows,).
        now_s: when each rank begins, shape (rows, ranks).
        overhead_s: of a message at each rank, likewise, or one row for all.
        in_free_s: when each rank's port has passed all messages of the calls before.
        last_reach_s: when the last of them reached it.
        ready: counts the gradients that are ready at each rank.
    """

    rows: np.ndarray
    now_s: np.ndarray
    overhead_s: np.ndarray
    in_free_s: np.ndarray
    last_reach_s: np.ndarray
    ready: Callable[[], np.ndarray]

    def of(self, some: np.ndarray) -> Begun:
        """In some of these replications."""
        overhead_s = self.overhead_s if len(self.overhead_s) == 1 else self.overhead_s[some]
        given = self.rows[some], self.now_s[some], overhead_s, self.in_free_s[some], self.last_reach_s[some]
        return Begun(*given, lambda: self.ready()[some])


class Asked(NamedTuple):
    """Requests that have come together.

    Args:
        root_s: when rank 0 has taken all, shape (rows, 1).
        left_s: when each other rank's request has left it, shape (rows, ranks); rank 0's is of no account.
        waits: until requests came.
    """

    root_s: np.ndarray
    left_s: np.ndarray
    waits: list[Wait]


class Told(NamedTuple):
    """What follows once rank 0 has taken all requests, at time 0, as if nobody had anything else to do.

    Args:
        ports: clocks when each rank has been told; shape (rows, ranks).
        pass_s: when its answer begins to pass each rank's port; -infinity at rank 0.
    """

    ports: Ports
    pass_s: np.ndarray


def passing_s(reach_s: np.ndarray, free_s: np.ndarray, occupancy_s: np.ndarray) -> np.ndarray:
    """When messages begin to pass a port that serves the first to come first; shape (..., messages), and (...) when it is free.

    Raises:
        Unsettled: two come at one instant.
    """
    turn = np.argsort(reach_s, axis=-1)
    come_s, service_s = np.take_along_axis(reach_s, turn, -1), np.take_along_axis(occupancy_s, turn, -1)
    if ((np.diff(come_s, axis=-1) <= SETTLED_S) & (service_s[..., :-1] > 0)).any():
        raise Unsettled
    before_s = np.cumsum(service_s, axis=-1) - service_s
    begin_s = np.maximum.accumulate(np.maximum(come_s, free_s[..., None]) - before_s, axis=-1) + before_s
    passes_s = np.empty_like(begin_s)
    np.put_along_axis(passes_s, turn, begin_s, -1)
    return passes_s


def check_order(reach_s: np.ndarray, last_reach_s: np.ndarray) -> None:
    """Refuse messages that reach a port before one of an earlier call.

    Raises:
        Unsettled: one does.
    """
    if (reach_s <= last_reach_s).any():
        raise Unsettled
