"""How rows of sparse layers travel between workers and servers, and between workers."""

from __future__ import annotations

from collections.abc import Sequence

from sim.language.collectives import summed
from sim.language.rank import Rank
from sim.language.verbs import agree, begin, clear, gather, spread


def pull(me: Rank, layers: Sequence[int]):
    """A worker begins a gradient, asks servers for the rows that it reads, and takes them up."""
    yield from begin(me)
    for layer in layers:
        yield from me.post(me.rows(layer), me.server_of(layer))
    for layer in layers:
        yield from me.take(me.server_of(layer), me.of(me.weights, layer))


def hand_out(me: Rank, layers: Sequence[int]):
    """A server answers, worker by worker: each asks for the rows of the server's layers one after another."""
    held = [layer for layer in layers if me.server_of(layer) == me.rank]
    for _ in range(len(me.workers) * min(1, len(held)) if len(layers) else 0):
        message = yield from me.take(me.workers)
        for k in range(len(held)):
            if k:
                yield from me.take(message.sender)
            yield from me.post(me.of(me.weights, held[k]), message.sender, me.share(held[k]))


def push_rows(me: Rank, layers: Sequence[int], group: range):
    """A worker's gradients of layers leave, layer beside layer; what comes from others of its group is added before."""
    sent: list = []
    for layer in layers:
        sent.append((yield from me.start(hand_in(me, layer, group))))
    yield from me.wait(sent)


def hand_in(me: Rank, layer: int, group: range):
    """Rows' gradients leave for the layer's server; of a group of workers the first adds up those of all, and sends the sum."""
    gradient = me.of(me.gradient, layer)
    if me.rank == group[0]:
        yield from gather(me, group[1:], gradient)
        sent = yield from me.post(gradient, me.server_of(layer), me.share(layer, len(group), numbered=True))
    else:
        sent = yield from me.post(gradient, group[0], me.share(layer, numbered=True))
    yield from me.wait(sent)
    yield from clear(me, gradient)


def sum_up(me: Rank, layer: int, senders: int):
    """The layer's server adds up what so many workers send, and updates the rows that any of them has touched."""
    if me.rank == me.server_of(layer):
        yield from gather(me, me.workers, me.of(me.gradient, layer), senders)
        yield from me.update(me.of(me.weights, layer), share=me.share(layer, len(me.workers)))


def hand_over(me: Rank, layer: int, group: range, firsts: list[int]):
    """The layer's server sends its weights, or rows, to the first worker of each group, which passes them on to the others of its own."""
    weights, share = me.of(me.weights, layer), me.share(layer, numbered=True)
    if me.rank == me.server_of(layer):
        yield from spread(me, weights, firsts, share)
    elif me.rank in me.workers:
        if me.rank == group[0]:
            yield from me.take(me.server_of(layer), weights)
            yield from spread(me, weights, group[1:], share)
        else:
            yield from me.take(group[0], weights)


def there_and_back(me: Rank, layer: int, group: range, firsts: list[int], back: bool):
    """A layer's gradients go to its server, which sums them up and updates it; and the weights come back, unless others let them.

    A server works on several layers at once, as far as its host has cores (the pool of threads of TensorFlow's).
    """
    if me.rank in me.workers:
        yield from hand_in(me, layer, group)
    yield from sum_up(me, layer, len(firsts))
    if back:
        yield from hand_over(me, layer, group, firsts)


def serve(me: Rank, layers: Sequence[int], senders: list[int]):
    """A server's round: it hands out rows beside summing them, layer beside layer, and then tells who has sent that they may go on."""
    texts = [(yield from me.start(hand_out(me, layers)))]
    for layer in layers:
        texts.append((yield from me.start(sum_up(me, layer, len(senders)))))
    yield from me.wait(texts)
    for sender in senders:
        yield from me.post(me.weights[:0], sender)


def hear(me: Rank, group: range):
    """Wait until all servers have updated; the first of a group of workers tells the others."""
    if me.rank == group[0]:
        for server in me.servers:
            yield from me.take(server)
        for rank in group[1:]:
            yield from me.post(me.weights[:0], rank)
    else:
        yield from me.take(group[0])


def sum_by_kind(me: Rank, algorithm: str, fused: bool):
    """Rows of sparse layers are gathered, dense layers are summed, in a call for those side by side or for each; all are updated."""
    for layer in me.sparse:
        yield from gather_rows(me, layer, me.workers)
    for first, stop in me.dense:
        for layer in range(first, first + 1 if fused else stop):
            yield from agree(me)
            yield from summed(me, me.of(me.gradient, layer, stop if fused else layer + 1), algorithm)
        yield from me.update(me.of(me.weights, first, stop))
    for layer in me.sparse:
        yield from me.update(me.of(me.weights, layer), share=me.share(layer, len(me.workers)))


def gather_rows(me: Rank, layer: int, group: range):
    """Each worker ends with the sum of the rows that any has touched: what each has goes round a ring, and all add what comes.

    Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005, section 4.1.
    """
    n, i, gradient, share = len(group), group.index(me.rank), me.of(me.gradient, layer), me.share(layer, numbered=True)
    passed = me.vector("passed on", me.weights.items)[: gradient.items]
    if n > 1:
        sent = yield from me.post(gradient, group[(i + 1) % n], share)
    for turn in range(n - 1):
        message = yield from me.take(group[i - 1], passed)
        yield from me.wait(sent)
        yield from me.mix(gradient, message)
        if turn < n - 2:
            sent = yield from me.post(passed, group[(i + 1) % n], share)
