"""How servers and workers meet and part: parameters pulled, gradients pushed, notes, and the last messages.

Every gradient is owed exactly one acknowledgement, every request the parameters. The first server, the chief, counts updates; when
training is over it tells every worker, a worker that is told says good-bye to all servers, and each server listens until all have,
answering what it owes.
"""

from __future__ import annotations

import math

from sim.verbs.book import CLOCK_S
from sim.verbs.delays import delayed
from sim.verbs.me import GRADIENT, PARAMETERS, Me, Note, What
from sim.verbs.verb import verb


def training(me: Me) -> bool:
    """Whether this worker goes on: no server has said that training is over."""
    return not me.book.over


@verb
def gather(me: Me, peers):
    """The master receives a gradient from each of `peers`, in order of arrival, and adds them up."""
    missing = ranks_of(peers)
    while missing:
        letter = yield from me.receive(missing)
        missing.remove(letter.sender)
        yield from me.add(letter)


@verb
def pull(me: Me, servers):
    """Ask each of `servers` for its parameters, and take them up as they come."""
    for server in servers:
        yield from me.send(Note(), server, wait=False)
    yield from collect(me, servers)


@verb
def push(me: Me, servers, version: int | None = None):
    """Send the gradient and wait until each of `servers` has let this worker go.

    Args:
        version: of the parameters that the gradient counts as made on, if not of those that were pulled.
    """
    if not me.book.over:
        me.version = me.version if version is None else version
        yield from me.send(GRADIENT, servers)
        yield from collect(me, servers)
    me.step += 1


@verb
def collect(me: Me, servers):
    """Receive one answer from each of `servers`: parameters, which are taken up, or a note; the chief's last note ends training."""
    missing = ranks_of(servers)
    while missing:
        letter = yield from me.receive(missing)
        missing.remove(letter.sender)
        is_chief = letter.sender == me.servers[0]
        if letter.last and is_chief:
            yield from say_good_bye(me)
        elif not letter.note:
            yield from me.take_up(letter)
        elif is_chief:
            me.book.token = letter.version


@verb
def take(me: Me, workers, until_s: float = math.inf):
    """The next gradient that comes from one of `workers`, as a letter; None once training is over for all.

    None too when `until_s` has come, even if more gradients have. A worker that asks for parameters meanwhile is answered at once.
    """
    book = me.book
    if me.version >= me.updates:
        yield from dismiss(me, workers)
    while len(book.gone) < len(workers) and until_s - me.now_s > CLOCK_S:
        letter = yield from delayed(me, workers, until_s)
        if letter is None:
            return None
        if letter.last:
            yield from part(me, letter.sender)
        elif letter.note:
            yield from answer(me, letter.sender)
        else:
            book.owed.add(letter.sender)
            return letter
    return None


@verb
def take_first(me: Me, workers, count: int):
    """Add up the first gradients on the newest parameters from `count` of `workers`; returns their senders, none once training is over.

    A late gradient is dropped, and its worker goes on (Chen et al., 2016).
    """
    added: list[int] = []
    while len(added) < count:
        letter = yield from take(me, workers)
        if letter is None:
            return []
        if letter.version < me.version:
            yield from let_go(me, letter.sender)
        else:
            yield from me.add(letter)
            added.append(letter.sender)
    return added


@verb
def let_go(me: Me, workers, version: int | None = None):
    """Acknowledge gradients of `workers`, which go on; `version` is the token that each gets."""
    yield from _hand_out(me, Note(version), workers)


@verb
def answer(me: Me, workers):
    """A server hands its parameters to `workers` and goes on at once."""
    yield from _hand_out(me, PARAMETERS, workers)


@verb
def tell(me: Me, peer: int):
    """Send a server a note, which carries nothing."""
    yield from me.send(Note(), peer, wait=False)


@verb
def hear(me: Me, peers):
    """Wait for a note from each of `peers`."""
    missing = ranks_of(peers)
    while missing:
        note = yield from me.receive(missing)
        missing.remove(note.sender)


@verb
def hand_in(me: Me):
    """Send the gradient, added to those of the neighbours, to the servers, or to the worker that sends for this rank."""
    own, missing = (me.samples, me.minibatches), set(me.neighbours)
    while missing:  # a worker that has handed in goes on, and may send pieces of an allreduce already
        letter = yield from take(me, missing)
        missing.remove(letter.sender)
        yield from me.add(letter)
    yield from me.send(GRADIENT, me.aggregators)
    me.samples, me.minibatches = own  # the gradient at hand is this rank's own again


@verb
def dismiss(me: Me, workers):
    """Tell all workers that training is over, and drop what they send until each has said good-bye."""
    for worker in workers:
        yield from me.send(Note(last=True), worker, wait=False)
    while len(me.book.gone) < len(workers):
        letter = yield from me.receive(workers)
        if letter.last:
            me.book.gone.add(letter.sender)


def ranks_of(peers) -> set[int]:
    """One rank, or several."""
    return {peers} if isinstance(peers, int) else set(peers)


def say_good_bye(me: Me):
    """A worker that was told that training is over leaves all servers."""
    me.book.over = True
    for server in me.servers:
        yield from me.send(Note(last=True), server, wait=False)


def part(me: Me, worker: int):
    """Answer what is owed to a worker that has said good-bye."""
    book = me.book
    book.gone.add(worker)
    if worker in book.owed:
        book.owed.remove(worker)
        yield from me.send(Note(last=True), worker, wait=False)


def _hand_out(me: Me, what: What, workers):
    """Send something to those of `workers` that have not left; they are then owed nothing more."""
    for worker in [workers] if isinstance(workers, int) else workers:
        if worker not in me.book.gone:
            me.book.owed.discard(worker)
            yield from me.send(what, worker, wait=False)
