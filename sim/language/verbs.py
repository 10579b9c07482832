"""Verbs: functions over the primitives that several texts use."""

from __future__ import annotations

from sim.language.pieces import Piece
from sim.language.rank import Rank

CLOCK_S = 1e-9  # time left counts as none below the clock's resolution, so that all worlds round alike


def compute(me: Rank, micro: int = 0, of: int = 1, weight: float = 1.0):
    """The gradient of a micro-batch, or of the whole minibatch, is added to `me.gradient`."""
    yield from me.forward(micro=micro, of=of)
    yield from me.backward(micro=micro, of=of, weight=weight)


def time_left(me: Rank, end_s: float) -> bool:
    """Whether the clock is before `end_s`."""
    return end_s - me.now() > CLOCK_S


def compute_until(me: Rank, end_s: float, micros: int):
    """Micro-batches of the minibatch, at least one, while there is time until `end_s`; the last one runs to its end."""
    micro = 0
    while micro == 0 or (micro < micros and time_left(me, end_s)):
        yield from compute(me, micro, micros)
        micro += 1


def clear(me: Rank, piece: Piece):
    """Begin a sum anew: all items are 0."""
    yield from me.mix(piece, piece, 0.0, 0.0)


def push(me: Rank, group: range, piece: Piece | None = None):
    """Send the k-th of a group of servers the k-th part of the gradient, or of a piece of it, which begins anew."""
    whole = piece or me.gradient
    for k in range(len(group)):
        yield from me.post(whole.part(k, len(group)), group[k])
    yield from clear(me, whole)


def exchange(me: Rank, sent: Piece, to: int, frm: int, into: Piece, adds: bool = False):
    """Send a piece while receiving another one, which is added when the first has left (MPI_Sendrecv, then the sum)."""
    handle = yield from me.post(sent, to)
    if adds:
        yield from me.wait(handle)
    yield from me.take(frm, into, adds)
    yield from me.wait(handle)


def hand(me: Rank, piece: Piece, to: int):
    """Send a piece, and go on when it has left."""
    handle = yield from me.post(piece, to)
    yield from me.wait(handle)


def send(me: Rank, piece: Piece, group: range):
    """Send a piece to each rank of a group, and go on when the last has left."""
    sent = []
    for rank in group:
        sent.append((yield from me.post(piece, rank)))
    yield from me.wait(sent)


def spread(me: Rank, piece: Piece, group: range):
    """Send a piece to each rank of a group, and go on at once."""
    for rank in group:
        yield from me.post(piece, rank)


def gather(me: Rank, group: range, into: Piece, count: int | None = None):
    """Add up the next `count` messages of a group, in order of arrival; returns the samples in them.

    By default as many as the group has ranks, for texts in which no rank sends twice before all have sent.
    """
    samples = 0
    for _ in range(len(group) if count is None else count):
        message = yield from me.take(group, into, adds=True)
        samples += message.samples
    return samples


def gather_until(me: Rank, group: range, into: Piece, end_s: float):
    """The same with all messages that have come by a time, at least one."""
    message = yield from me.take(group, into, adds=True)
    samples = message.samples
    while time_left(me, end_s):
        message = yield from me.take(group, into, adds=True, until_s=end_s)
        samples += message.samples if message else 0
    return samples


def hand_on(me: Rank, to: int, before: list):
    """Send the gradient, which begins anew, once the one before has left; returns the handle, in a list."""
    yield from me.wait(before)
    handle = yield from me.post(me.gradient, to)
    yield from clear(me, me.gradient)
    return [handle]


def buckets(me: Rank, least_bytes: float) -> list[tuple[int, int]]:
    """The layers in stretches (first, stop) of at least so many bytes, the last layers first."""
    found, stop = [], len(me.layers)
    for first in reversed(me.layers):
        if me.of(me.weights, first, stop).items * me.item_bytes >= least_bytes or first == 0:
            found.append((first, stop))
            stop = first
    return found


def pause(me: Rank, end_s: float):
    """Let time pass until the clock says `end_s`, without working."""
    yield from me.take(me.rank, until_s=end_s)


def update(me: Rank):
    """Update all weights, which are those of all ranks; the first rank evaluates them."""
    yield from me.update()
    if me.rank == me.master:
        yield from me.evaluate()


def doze(me: Rank):
    """A text that waits until another one of its rank stops it."""
    yield from me.take(me.rank)


def until_woken(me: Rank, asleep: list):
    """Wait until another text of this rank wakes this one."""
    handle = yield from me.start(doze(me))
    asleep.append(handle)
    yield from me.wait(handle)


def wake(me: Rank, asleep: list):
    """Have a text that waits so go on, if there is one."""
    if asleep:
        yield from me.stop(asleep.pop())


def agree(me: Rank):
    """What a library takes before a call on which its ranks agree."""
    if me.library.agree_s:
        yield from pause(me, me.now() + me.library.agree_s)
    if me.n > 1:
        yield from me.work(seconds=me.library.negotiate_s)


def agreed(me: Rank, own: int, most: int, group: range):
    """The least of a number, from 0 to `most`, of all ranks in a group: sizes of messages say it, up a binomial tree and down again."""
    counted, i, far = me.vector("counted", most), group.index(me.rank), 1
    while far < len(group) and i % (2 * far) == 0:
        if i + far < len(group):
            message = yield from me.take(group[i + far])
            own = min(own, message.items)
        far *= 2
    if i:
        yield from me.post(counted[:own], group[i - far])
        message = yield from me.take(group[i - far])
        own = message.items
    while far > 1:
        far //= 2
        if i + far < len(group):
            handle = yield from me.post(counted[:own], group[i + far])
            yield from me.wait(handle)
    return own


def agreed_by_name(me: Rank, own: int, before: int, most: int, group: range):
    """The same by a message to the first rank for each number from `before` to the rank's own, one that ends them, and two back."""
    counted, named = me.vector("counted", most), me.vector("name", most + 1)
    if me.rank != group[0]:
        for _ in range(own - before):
            yield from me.post(named, group[0])
        yield from me.post(counted[:own], group[0])
        yield from me.take(group[0])
        message = yield from me.take(group[0])
        return message.items
    missing = len(group) - 1
    while missing:
        message = yield from me.take(group[1:])
        if message.items <= most:
            own = min(own, message.items)
            missing -= 1
    for rank in group[1:]:
        yield from me.post(named, rank)
        yield from me.post(counted[:own], rank)
    return own
