"""Ranks that post messages without an event and keep no trace: verbs of servers and their workers in one go.

They do what the functions of sim.verbs.servers do verb by verb. A rank that waits is one generator here, where it is four there; what
it sends is posted at once, and what comes moves its clock before it goes on.
"""

from __future__ import annotations

import math

from sim.event.ranks.rank import Rank
from sim.verbs import servers as by_verbs
from sim.verbs.book import Book
from sim.verbs.me import GRADIENT

DONE = ()


class Poster(Rank):
    """A rank with a core and a port of its own, whose text is one thread.

    Nothing is delayed on purpose, no cache goes cold, and nobody asks for a trace.
    """

    __slots__ = ()

    def take(self, workers, until_s: float = math.inf):
        """The next gradient that comes from one of `workers`; requests for parameters are answered meanwhile."""
        if until_s < math.inf:
            return (yield from by_verbs.take.__wrapped__(self, workers, until_s))
        book, first, letters = self.book, self.mechanics.first, self.letters
        if self.version >= self.updates:
            yield from by_verbs.dismiss(self, workers)
        while len(book.gone) < len(workers):
            letter = first(workers) or (yield)
            if letter.last:
                yield from by_verbs.part(self, letter.sender)
            elif not letter.note:
                book.owed.add(letter.sender)
                return letter
            elif stays(book, letter.sender):
                letters.parameters(letter.sender)
        return None

    def let_go(self, workers, version: int | None = None):
        """Acknowledge gradients of `workers`."""
        book, note = self.book, self.letters.note
        version = self.version if version is None else version
        for worker in (workers,) if type(workers) is int else workers:
            if stays(book, worker):
                note(worker, version)
        return DONE

    def pull(self, servers):
        """Ask each of `servers` for its parameters, and take them up as they come."""
        for server in servers:
            self.letters.request(server)
        return self.collect(servers)

    def push(self, servers, version: int | None = None):
        """Send the gradient and wait until each of `servers` has let this worker go."""
        if self.book.over:
            self.step += 1
            return DONE
        if version is not None:
            self.version = version
        self.send(GRADIENT, servers)
        return self.collect(servers, steps=1)

    def collect(self, servers, steps: int = 0):
        """Receive one answer from each of `servers`, and go on by so many steps."""
        first, chief = self.mechanics.first, self.servers[0]
        missing = servers if len(servers) == 1 else set(servers)
        for _ in servers:
            letter = first(missing) or (yield)
            if len(servers) > 1:
                missing.remove(letter.sender)
            if letter.last and letter.sender == chief:
                yield from by_verbs.say_good_bye(self)
            elif not letter.note:
                self.take_up(letter)
            elif letter.sender == chief:
                self.book.token = letter.version
        self.step += steps


def stays(book: Book, worker: int) -> bool:
    """Whether a worker has not left; it is then owed nothing more."""
    if worker in book.gone:
        return False
    book.owed.discard(worker)
    return True
