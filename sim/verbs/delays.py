"""Messages that are delayed on purpose where they are received."""

from __future__ import annotations

import heapq
import math

from sim.verbs.book import CLOCK_S
from sim.verbs.me import Me


def delayed(me: Me, peers, until_s: float = math.inf):
    """The next message from one of `peers` whose induced delay is over; None if there is none by `until_s`.

    As in the AMB repository, the delay begins when the message is received, and messages come in the order in which their delays end.
    The last message is not delayed.
    """
    if me.delays is None:
        return (yield from me.receive(peers, until_s))
    book = me.book
    while True:
        due_s = book.delayed[0][0] if book.delayed else math.inf
        if due_s - me.now_s <= CLOCK_S:
            return heapq.heappop(book.delayed)[-1]
        letter = yield from me.receive(peers, min(due_s, until_s))
        if letter is None and until_s - me.now_s <= CLOCK_S:
            return None
        if letter is not None and letter.last:
            return letter
        if letter is not None:
            heapq.heappush(book.delayed, (me.now_s + me.delays[book.came], book.came, letter.kept()))
            book.came += 1
