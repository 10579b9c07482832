"""Workers that wait for nobody: they take up the newest parameters that have come, and post gradients while they go on."""

from __future__ import annotations

import math

from sim.verbs.book import CLOCK_S
from sim.verbs.delays import delayed
from sim.verbs.me import Me, Note, Partition
from sim.verbs.verb import verb


@verb
def newest(me: Me, peer: int):
    """Take up the last of the parameters that have come from `peer`, if any have; whether training goes on.

    Only the first are waited for. It begins a step.
    """
    wait = me.book.rounds == 0
    me.step, me.book.rounds = me.book.rounds, me.book.rounds + 1
    yield from renew(me, peer, wait)
    if me.book.over:
        yield from me.send(Note(last=True), peer, wait=False)
    return not me.book.over


@verb
def compute_renewing(me: Me, deadline_s: float, partitions: int, peer: int):
    """Partitions while there is time, at least one, each on the newest parameters that have come from `peer`."""
    for index in range(partitions):
        if index and deadline_s - me.now_s <= CLOCK_S:
            return
        if index:
            yield from renew(me, peer)
        yield from me.compute(Partition(index, partitions))
    if deadline_s - me.now_s > CLOCK_S:
        me.run_out()


def renew(me: Me, peer: int, wait: bool = False):
    """Take up the last of the parameters that have come, if any have; or wait for some."""
    news = None
    while not me.book.over:
        letter = yield from delayed(me, [peer], until_s=math.inf if wait else me.now_s)
        if letter is None:
            break
        wait, me.book.over = False, letter.last
        news = news if letter.last else letter
    if news is not None:
        yield from me.take_up(news)
