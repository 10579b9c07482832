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
        before_last_s: when that one found it free; infinity where that is not known.
        in_turn: what comes at one instant comes in the order of ranks, which have done the same so far; shape (rows,).
        ready: counts the gradients that are ready at each rank.
    """

    rows: np.ndarray
    now_s: np.ndarray
    overhead_s: np.ndarray
    in_free_s: np.ndarray
    last_reach_s: np.ndarray
    before_last_s: np.ndarray
    in_turn: np.ndarray
    ready: Callable[[], np.ndarray]

    def of(self, some: np.ndarray) -> Begun:
        """In some of these replications."""
        overhead_s = self.overhead_s if len(self.overhead_s) == 1 else self.overhead_s[some]
        ports = (clock[some] for clock in (self.in_free_s, self.last_reach_s, self.before_last_s))
        return Begun(self.rows[some], self.now_s[some], overhead_s, *ports, self.in_turn[some], lambda: self.ready()[some])


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


def passing_s(reach_s: np.ndarray, occupancy_s: np.ndarray, begun: Begun, ranks: np.ndarray) -> np.ndarray:
    """When messages begin to pass ports that serve the first to come first; shape (rows, ports, messages).

    Args:
        reach_s, occupancy_s: of messages, likewise, in the order of their senders.
        ranks: whose ports they are, shape (ports,).

    Raises:
        Unsettled: two come at one instant, or one holds up another of an earlier call.
    """
    early = _early(reach_s, occupancy_s, begun, ranks)
    if early.any():
        late_s = np.where(early, -np.inf, reach_s)
        return np.where(early, reach_s, _queued(late_s, np.where(early, 0.0, occupancy_s), begun, ranks))
    return _queued(reach_s, occupancy_s, begun, ranks)


def _early(reach_s: np.ndarray, occupancy_s: np.ndarray, begun: Begun, ranks: np.ndarray) -> np.ndarray:
    """Which messages come before the last of an earlier call, while the port is idle.

    Raises:
        Unsettled: one comes while it is not, or does not pass in time.
    """
    early = reach_s <= begun.last_reach_s[:, ranks, None]
    if not early.any():
        return early
    found_free = reach_s >= begun.before_last_s[:, ranks, None]
    passed = reach_s + occupancy_s <= begun.last_reach_s[:, ranks, None] - SETTLED_S
    several = np.count_nonzero(early, axis=2) > 1
    if (early & ~(found_free & passed)).any() or several.any():
        raise Unsettled
    return early


def _queued(reach_s: np.ndarray, occupancy_s: np.ndarray, begun: Begun, ranks: np.ndarray) -> np.ndarray:
    turn = np.argsort(reach_s, axis=-1, kind="stable")
    come_s, service_s = np.take_along_axis(reach_s, turn, -1), np.take_along_axis(occupancy_s, turn, -1)
    with np.errstate(invalid="ignore"):  # between two that have passed before
        apart_s = np.diff(come_s, axis=-1)
    tied = (apart_s <= SETTLED_S) & (service_s[..., :-1] > 0) & ~(begun.in_turn[:, None, None] & (apart_s == 0))
    if tied.any():
        raise Unsettled
    before_s = np.cumsum(service_s, axis=-1) - service_s
    ready_s = np.maximum(come_s, begun.in_free_s[:, ranks, None]) - before_s
    begin_s = np.maximum.accumulate(ready_s, axis=-1) + before_s
    passes_s = np.empty_like(begin_s)
    np.put_along_axis(passes_s, turn, begin_s, -1)
    return passes_s
