"""Messages that come together: they pass a port in the order of their senders, as in the event world (sim.event.machines.in_turn)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sim.vector.exchanges import Unsettled, unclear
from sim.verbs.book import TIE_S


def in_order(come_s: np.ndarray, among: Callable[[], np.ndarray] | None = None) -> np.ndarray:
    """The order in which messages pass a port, along the last axis; see `sorted_by_turn`."""
    return sorted_by_turn(come_s, among)[0]


def sorted_by_turn(come_s: np.ndarray, among: Callable[[], np.ndarray] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The order in which messages pass a port, along the last axis, and when they come to it in that order.

    Args:
        among: makes the numbers by which those go that come together; by default the order that they have here.
    """
    order = np.argsort(come_s, axis=-1)
    in_turn_s = np.take_along_axis(come_s, order, -1)
    with np.errstate(invalid="ignore"):  # between none and none
        ties = np.diff(in_turn_s, axis=-1) <= TIE_S
    if not ties.any():
        return order, in_turn_s
    order = np.argsort(come_s, axis=-1, kind="stable")  # slower
    together = np.pad(np.cumsum(~ties, axis=-1), [*[(0, 0)] * (ties.ndim - 1), (1, 0)])
    own = order if among is None else np.take_along_axis(np.broadcast_to(among(), order.shape), order, -1)
    order = np.take_along_axis(order, np.lexsort((own, together), axis=-1), -1)
    return order, np.take_along_axis(come_s, order, -1)


def check_apart(come_s: np.ndarray, senders: np.ndarray, lead_s: float | np.ndarray) -> None:
    """Along the last axis; senders have the shape of its last ones.

    Args:
        lead_s: for how long messages are on their way at least, of all or of each.

    Raises:
        Unsettled: two of several senders come so near to one another that rounding may decide.
    """
    with np.errstate(invalid="ignore"):  # between two that never come
        apart_s = np.diff(np.sort(come_s, axis=-1), axis=-1)
    near = apart_s <= 2 * TIE_S
    if near.any():
        order = np.argsort(come_s, axis=-1, kind="stable")
        of = np.take_along_axis(np.broadcast_to(senders, come_s.shape), order, -1)
        leads_s = np.take_along_axis(np.broadcast_to(lead_s, come_s.shape), order, -1)
        lead_s = np.minimum(leads_s[..., 1:], leads_s[..., :-1])
        if (near & unclear(apart_s, lead_s) & (of[..., 1:] != of[..., :-1])).any():
            raise Unsettled
