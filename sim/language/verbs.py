"""Verbs: functions over the primitives that several texts use."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sim.language.layers import stretches
from sim.language.pieces import Piece
from sim.language.rank import Rank

CLOCK_S = 1e-9  # time left counts as none below the clock's resolution, so that all worlds round alike


def fetch(me: Rank):
    """Fetch the minibatch of this round ahead of its first pass."""
    yield from me.forward(0, 0)


def begin(me: Rank):
    """Begin a gradient whose weights are yet to come: sleep, and fetch the minibatch."""
    yield from me.sleep()
    yield from fetch(me)


def join(me: Rank):
    """Join the gradients of all layers into one vector, as it is sent."""
    yield from me.backward(0, 0)


def compute(me: Rank, micro: int = 0, of: int = 1, weight: float = 1.0):
    """The gradient of a micro-batch, or of the whole minibatch, is added to `me.gradient`."""
    yield from me.forward(micro=micro, of=of)
    yield from me.backward(micro=micro, of=of, weight=weight)
    yield from join(me)


def time_left(me: Rank, end_s: float) -> bool:
    """Whether the clock is before `end_s`."""
    return end_s - me.now() > CLOCK_S


def compute_until(me: Rank, end_s: float, micros: int):
    """Micro-batches of the minibatch, at least one, while there is time until `end_s`; the last one runs to its end.

    They are turns of one loop: the whole minibatch is fetched before it, and the gradient joined behind it. Returns the samples.
    """
    yield from fetch(me)
    done = 0
    for micro in range(micros):
        if micro and not time_left(me, end_s):
            break
        yield from me.forward(micro=micro, of=micros)
        yield from me.backward(micro=micro, of=micros)
        done = micro + 1
    yield from join(me)
    return me.batch * done // micros


def compute_renewing(me: Rank, end_s: float, micros: int):
    """The same, each on the newest weights of the master that have come, and computed by itself."""
    yield from fetch(me)
    micro = 0
    while micro == 0 or (micro < micros and time_left(me, end_s)):
        if micro:
            yield from me.take(me.master, me.weights, newest=True, until_s=me.now())
        yield from compute(me, micro, micros)
        micro += 1


def clear(me: Rank, piece: Piece):
    """Begin a sum anew: all items are 0."""
    yield from me.mix(piece, piece, 0.0, 0.0)


def push(me: Rank, group: range, piece: Piece | None = None, share: float = 1.0):
    """Send each of a group of servers what it holds of the gradient; or of a piece of it an equal part. It begins anew when it has left."""
    sent = []
    for k in range(len(group)):
        if piece is None:
            sent.append((yield from me.post(me.held(me.gradient, k), group[k], me.held_share(k, numbered=True))))
        else:
            sent.append((yield from me.post(piece.part(k, len(group)), group[k], share)))
    yield from me.wait(sent)
    yield from clear(me, me.gradient if piece is None else piece)


def pull(me: Rank, servers: range):
    """Ask each server for what it holds of the weights, and take it up as it comes; the first one's step becomes this rank's.

    Once all servers have ended, nothing comes.
    """
    for server in servers:
        yield from me.post(me.asked(server), server)
    for _ in servers:
        message = yield from me.take(servers, until_s=math.inf)
        if message:
            yield from me.mix(me.held(me.weights, message.sender), message, 0, 1)
            if message.sender == servers[0]:
                me.step = message.step


def pulled(me: Rank, weights: Piece):
    """The next gradient of a worker; workers that ask for weights, by a message of no gradient, get them meanwhile."""
    message = yield from me.take(me.workers)
    while message.samples == 0:
        yield from me.post(weights, message.sender, me.held_share(me.rank))
        message = yield from me.take(me.workers)
    return message


def let_go(me: Rank, worker: int, step: int | None = None):
    """Tell a worker of servers that it may go on; in a step that is not this rank's, if one is given."""
    own = me.step
    if step is not None:
        me.step = step
    yield from me.post(me.weights[:0], worker)
    if step is not None:
        me.step = own


def report(me: Rank, together: bool = True):
    """All servers tell the first one that they are here, and it waits for them, if they go together."""
    if together and me.rank != me.servers[0]:
        yield from me.post(me.weights[:0], me.servers[0])
    elif together:
        for server in me.servers[1:]:
            yield from me.take(server)


def work_with_servers(me: Rank, tokens: bool = False):
    """The text of a worker of parameter servers: it pulls weights and pushes a gradient, and goes on when all servers let it go.

    Args:
        tokens: a gradient is of the step in which the first server let this rank go; else of that of its weights.
    """
    while (yield from me.follow(me.servers, me.weights[:0], wait=False)):  # a round begins, unless a server has ended
        token = me.step
        yield from begin(me)
        yield from pull(me, me.servers)
        if tokens:
            me.step = token
        yield from compute(me)
        yield from push(me, me.servers)
        for _ in me.servers:
            message = yield from me.take(me.servers, until_s=math.inf)
            if message and message.sender == me.servers[0]:
                me.step = message.step


def exchange(me: Rank, sent: Piece, to: int, frm: int, into: Piece, adds: bool = False):
    """Send a piece while receiving another one, which is added when the first has left (MPI_Sendrecv, then the sum)."""
    handle = yield from me.post(sent, to)
    if not adds:
        yield from me.take(frm, into)
        yield from me.wait(handle)
    else:
        message = yield from me.take(frm)
        yield from me.wait(handle)
        yield from me.mix(into, message)


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


def spread(me: Rank, piece: Piece, group: Sequence[int], share: float = 1.0):
    """Send a piece to each rank of a group, and go on at once."""
    for rank in group:
        yield from me.post(piece, rank, share)


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
    """Send the gradient, which begins anew, once the one before was taken; returns the handle, in a list."""
    yield from me.wait(before)
    handle = yield from me.post(me.gradient, to, taken=True)
    yield from clear(me, me.gradient)
    return [handle]


def buckets(me: Rank, least_bytes: float) -> list[tuple[int, int]]:
    """The layers in stretches (first, stop) of at least so many bytes, the last layers first."""
    return stretches([me.of(me.weights, layer).items for layer in me.layers], least_bytes / me.item_bytes)


def of_host(me: Rank) -> int:
    """How many ranks a host has, if all have several and as many; else the largest divisor of the number of ranks up to 8."""
    found = {len(me.neighbours(rank)) for rank in me.workers}
    return found.pop() if len(found) == 1 and 1 not in found else max(k for k in range(1, 9) if me.n % k == 0)


def pause(me: Rank, end_s: float):
    """Let time pass until the clock says `end_s`, without working."""
    yield from me.take(me.rank, until_s=end_s)


def in_pieces(me: Rank, moments_s: Sequence[float], each_s: float):
    """Background work: so many seconds of it from each moment of the clock on, one piece after another."""
    for moment_s in moments_s:
        yield from pause(me, moment_s)
        yield from me.work(seconds=each_s)


def update(me: Rank):
    """Update all weights, which are those of all ranks; the first rank evaluates them."""
    yield from me.update()
    yield from evaluate(me)


def evaluate(me: Rank):
    """The first rank evaluates its weights, if it is time."""
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
        least = yield from me.take(group[i - far])
        own = least.items
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
