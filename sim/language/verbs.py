"""Verbs: functions over the primitives that several texts use."""

from __future__ import annotations

from sim.language.pieces import Piece
from sim.language.rank import Rank


def compute(me: Rank):
    """The gradient of the whole minibatch, added to `me.gradient`."""
    yield from me.forward()
    yield from me.backward()


def compute_until(me: Rank, end_s: float, micros: int):
    """Micro-batches of the minibatch, at least one, while the clock is before `end_s`; the last one runs to its end."""
    micro = 0
    while micro == 0 or (micro < micros and me.now() < end_s):
        yield from me.forward(micro=micro, of=micros)
        yield from me.backward(micro=micro, of=micros)
        micro += 1


def clear(me: Rank, piece: Piece):
    """Begin a sum anew: all items are 0."""
    yield from me.mix(piece, piece, 0.0, 0.0)


def exchange(me: Rank, sent: Piece, to: int, frm: int, into: Piece, adds: bool = False):
    """Send a piece while receiving another one."""
    handle = yield from me.post(sent, to)
    yield from me.take(frm, into, adds)
    yield from me.wait(handle)


def send(me: Rank, piece: Piece, group: range):
    """Send a piece to each rank of a group, and go on when the last has left."""
    sent = []
    for rank in group:
        handle = yield from me.post(piece, rank)
        sent.append(handle)
    yield from me.wait(sent)


def gather(me: Rank, group: range, into: Piece):
    """Add up one message from each rank of a group, in order of arrival; returns the samples in them.

    For texts in which no rank sends twice before all have sent.
    """
    samples = 0
    for _ in group:
        message = yield from me.take(group, into, adds=True)
        samples += message.samples
    return samples


def buckets(me: Rank, least_bytes: float) -> list[tuple[int, int]]:
    """The layers in stretches (first, stop) of at least so many bytes, the last layers first."""
    found, stop = [], len(me.layers)
    for first in reversed(me.layers):
        if me.of(me.weights, first, stop).items * me.item_bytes >= least_bytes or first == 0:
            found.append((first, stop))
            stop = first
    return found
