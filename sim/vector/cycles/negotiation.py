"""How all ranks agree in a cycle, as arrays: requests come together at rank 0, and what follows depends on that moment alone.

Each rank sits on a host of its own. All that a rank sent before has left and all that it was sent has been taken, so that only its port
may still be at work on a message, and only where the next has come before the port is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.model.sizes import ITEM_BYTES
from sim.vector.exchanges import SETTLED_S, Ports, Unsettled, unclear
from sim.verbs.book import TIE_S
from sim.verbs.fusion import REQUEST

if TYPE_CHECKING:
    from sim.vector.cycles.tails import Meeting

REQUEST_BYTES = ITEM_BYTES * (REQUEST.stop - REQUEST.start)
Wait = tuple[np.ndarray | slice, np.ndarray, np.ndarray]  # ranks, from, to; shape (replications, waits)


class Begun(NamedTuple):
    """Ranks that begin to negotiate, in some replications.

    Args:
        now_s: when each rank begins, shape (rows, ranks).
        overhead_s: of a message at each rank, likewise, or one row for all.
        in_free_s: when each rank's port has passed all messages of the calls before.
        last_reach_s: when the last of them reached it.
        idle: finds from when until when ports were idle before that, as far as it is known, shape (2, times, rows, ranks).
        in_turn: what comes at one instant comes in the order of ranks, which have done the same so far; shape (rows,).
        more: counts the gradients that have become ready at each rank since it asked before.
        meeting: where requests come among the last messages of the call before.
    """

    now_s: np.ndarray
    overhead_s: np.ndarray
    in_free_s: np.ndarray
    last_reach_s: np.ndarray
    idle: Callable[[], np.ndarray]
    in_turn: np.ndarray
    more: Callable[[], np.ndarray]
    meeting: Meeting | None = None

    def of(self, some: np.ndarray) -> Begun:
        """In some of these replications."""
        overhead_s = self.overhead_s if len(self.overhead_s) == 1 else self.overhead_s[some]
        ports = self.in_free_s[some], self.last_reach_s[some], lambda: self.idle()[:, :, some]
        in_turn = self.in_turn[some]
        return Begun(self.now_s[some], overhead_s, *ports, in_turn, lambda: self.more()[some])


class Asked(NamedTuple):
    """Requests that have come together.

    Args:
        root_s: when rank 0 has taken all, shape (rows, 1).
        left_s: when each other rank's request has left it, shape (rows, ranks); rank 0's is of no account.
        waits: until requests came.
    """

    root_s: np.ndarray
    left_s: np.ndarray
    waits: Sequence[Wait]

    def after(self, root_s: np.ndarray) -> Asked:
        """The same after moments, shape (rows, 1)."""
        waits = [(ranks, root_s + from_s, root_s + to_s) for ranks, from_s, to_s in self.waits]
        return Asked(root_s + self.root_s, root_s + self.left_s, waits)

    def of(self, some: np.ndarray) -> Asked:
        """In some of these replications."""
        waits = [(ranks, from_s[some], to_s[some]) for ranks, from_s, to_s in self.waits]
        return Asked(self.root_s[some], self.left_s[some], waits)


def joined(numbers: list[np.ndarray], parts: Sequence[Asked], rows: int) -> Asked:
    """Requests in so many replications, which are parts of these by their numbers; they wait in one part and not in the others."""
    root_s, left_s = np.empty((rows, 1)), np.empty((rows, parts[0].left_s.shape[1]))
    waits = []
    for some, part in zip(numbers, parts, strict=True):
        root_s[some], left_s[some] = part.root_s, part.left_s
        for ranks, *times_s in part.waits:
            whole_s = np.zeros((2, rows, times_s[0].shape[1]))
            whole_s[:, some] = times_s
            waits.append((ranks, *whole_s))
    return Asked(root_s, left_s, waits)


class Told(NamedTuple):
    """The messages after rank 0 has taken all requests, at time 0, as if the ranks had nothing else to do.

    Args:
        ports: clocks when each rank has been told; shape (rows, ranks).
        pass_s: when its answer begins to pass each rank's port; -infinity at rank 0.
        idle_s: from when until when each port is idle before that, shape (2, rows, ranks).
    """

    ports: Ports
    pass_s: np.ndarray
    idle_s: np.ndarray


def idle_before(reach_s: np.ndarray) -> np.ndarray:
    """From when until when each port is idle before its answer reaches it; rank 0 is sent none. Shape (2, rows, ranks).

    All requests have passed by then, as rank 0 has them at time 0.
    """
    return np.stack([np.where(reach_s > -np.inf, 0.0, np.inf), reach_s])


def passing_s(
    reach_s: np.ndarray,
    occupancy_s: np.ndarray,
    senders: np.ndarray,
    begun: Begun,
    ranks: np.ndarray,
    latency_s: float,
) -> np.ndarray:
    """When messages begin to pass ports that serve the first to come first; shape (rows, ports, messages).

    Args:
        reach_s, occupancy_s: of messages, likewise, in the order of their senders.
        senders: of each, shape (ports, messages).
        ranks: whose ports they are, shape (ports,).
        latency_s: of their link.

    Raises:
        Unsettled: two come at one instant, or one holds up another of an earlier call that is not in `begun.meeting`.
    """
    early, in_free_s = reach_s <= begun.last_reach_s[:, ranks, None] + 2 * TIE_S, begun.in_free_s[:, ranks]
    if not early.any():
        return queued(reach_s, occupancy_s, in_free_s, begun.in_turn, latency_s)
    if begun.meeting is not None:  # with all messages of the ports
        early = np.broadcast_to(early.any(axis=2, keepdims=True), early.shape)
    later_s, takes_s = np.where(early, -np.inf, reach_s), np.where(early, 0.0, occupancy_s)
    pass_s = queued(later_s, takes_s, in_free_s, begun.in_turn, latency_s)
    if begun.meeting is None:
        return np.where(early, _between(reach_s, occupancy_s, begun, ranks, early, latency_s), pass_s)
    row, port = early[:, :, 0].nonzero()
    found = reach_s[row, port], occupancy_s[row, port], senders[port], begun.in_turn[row]
    pass_s[row, port] = begun.meeting.passing_s(row, ranks[port], *found, latency_s)
    return pass_s


def _between(
    reach_s: np.ndarray, occupancy_s: np.ndarray, begun: Begun, ranks: np.ndarray, early: np.ndarray, latency_s: float
) -> np.ndarray:
    """When messages pass that come before the last of an earlier call, one after another.

    Raises:
        Unsettled: one is not over when the next comes, or two come at one instant.
    """
    from_s, to_s = begun.idle()[:, :, :, ranks].copy()
    came_before_s = np.concatenate([np.full_like(to_s[:1], np.inf), to_s[:-1]])
    come_s = np.where(early, reach_s, np.inf)
    order, pass_s = np.argsort(come_s, axis=2, kind="stable"), np.full(reach_s.shape, np.inf)
    with np.errstate(invalid="ignore"):  # between two that come later
        if unclear(np.diff(np.take_along_axis(come_s, order, 2), axis=2), latency_s).any():
            raise Unsettled
    for turn in range(np.count_nonzero(early, axis=2).max()):
        which = order[:, :, turn : turn + 1]
        comes_s, takes_s = (np.take_along_axis(one, which, 2)[:, :, 0] for one in (come_s, occupancy_s))
        begins_s, some = np.maximum(comes_s, from_s), comes_s < np.inf
        after_others = (comes_s > came_before_s + SETTLED_S) | (comes_s >= from_s)
        fits = after_others & (begins_s + takes_s <= to_s - SETTLED_S) & (comes_s < to_s) & (from_s < np.inf)
        if (some & ~fits.any(axis=0)).any():
            raise Unsettled
        first_s = np.where(fits, begins_s, np.inf).min(axis=0)
        np.put_along_axis(pass_s, which, first_s[:, :, None], 2)
        from_s = np.where(fits & (begins_s == first_s), first_s + takes_s, from_s)
    return pass_s


def queued(
    reach_s: np.ndarray, occupancy_s: np.ndarray, in_free_s: np.ndarray, in_turn: np.ndarray, latency_s: float
) -> np.ndarray:
    """When messages begin to pass ports; shape (rows, ports, messages).

    Args:
        reach_s, occupancy_s: of messages, likewise, in the order of their senders. Those that have passed before come never and take 0.
        in_free_s: when ports are free, shape (rows, ports).
        in_turn: see Begun.
        latency_s: of the link.

    Raises:
        Unsettled: two come so near to each other that rounding may decide which is first.
    """
    turn = np.argsort(reach_s, axis=-1, kind="stable")
    with np.errstate(invalid="ignore"):  # between two that have passed before
        apart_s = np.diff(np.take_along_axis(reach_s, turn, -1), axis=-1)
    serves = np.take_along_axis(occupancy_s, turn, -1) > 0
    matters = serves[..., :-1] | serves[..., 1:]
    if (unclear(apart_s, latency_s) & matters & ~(in_turn[:, None, None] & (apart_s == 0))).any():
        raise Unsettled
    ties = apart_s <= TIE_S
    if ties.any():  # among those that come together the senders' order decides
        together = np.pad(np.cumsum(~ties, axis=-1), [*[(0, 0)] * (ties.ndim - 1), (1, 0)])
        turn = np.take_along_axis(turn, np.argsort(together * turn.shape[-1] + turn, axis=-1), -1)
    come_s, service_s = np.take_along_axis(reach_s, turn, -1), np.take_along_axis(occupancy_s, turn, -1)
    before_s = np.cumsum(service_s, axis=-1) - service_s
    ready_s = np.maximum(come_s, in_free_s[..., None]) - before_s
    begin_s = np.maximum.accumulate(ready_s, axis=-1) + before_s
    passes_s = np.empty_like(begin_s)
    np.put_along_axis(passes_s, turn, begin_s, -1)
    return passes_s
