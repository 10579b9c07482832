"""Ranks that post messages without an event and keep no trace: verbs of servers and their workers in one go.

They do what the functions of sim.verbs.servers do verb by verb. A rank that waits is one generator here, where it is four there. Its
messages are posted at once, and messages that come move its clock before it goes on.
"""

from __future__ import annotations

import math

from sim.event.ranks.message import HEADER, Control, Message
from sim.event.ranks.rank import Rank
from sim.verbs import servers as by_verbs
from sim.verbs.at_hand import GRADIENT as AT_HAND
from sim.verbs.at_hand import SUM
from sim.verbs.me import GRADIENT

DONE = ()


class Poster(Rank):
    """A rank with a core and a port of its own, whose text is one thread.

    Nothing is delayed on purpose, no cache goes cold, and nobody asks for a trace.
    """

    __slots__ = ("_inputless", "_known", "_sleepless")

    def _bind(self) -> None:
        """Use the verbs of this class, as far as it has them."""
        self._known, self.update = self.computing.known, self.summing.update
        self._sleepless = self.computing.sleepless
        self._inputless = self._sleepless and not self.amounts.input_s

    # ---- gradients

    def sleep(self):
        """Sleep as the induced straggler."""
        return DONE if self._sleepless else self.computing.sleep()

    def fetch(self):
        """Fetch a minibatch before the parameters for it have come."""
        return DONE if self._inputless else self.computing.fetch()

    def compute(self, part=None):
        """The gradient of the whole minibatch, or a part of it."""
        if part is not None:
            return self.computing.compute(part)
        hand, amounts = self.at_hand, self.amounts
        if hand.what:
            hand.begin_gradient()
        hand.what = AT_HAND
        self.oldest, self.samples, self.minibatches = self.version, amounts.batch, 1
        try:
            seconds = amounts.compute_s * self._known[self.step] + amounts.beside_s
        except IndexError:
            seconds = self.computing.first_s(self.step)
            self._known, self.update = self.computing.known, self.summing.update
        if not self._inputless:
            seconds += self.computing.unfetched_s()
        self.computed_s += seconds
        self.clock_s += seconds / self.speed
        return DONE

    def take_up(self, letter):
        """New parameters replace those at hand."""
        if self.serves:
            return self.summing.take_up(letter)
        if letter.sender == 0:
            self.version = letter.version
        self.clock_s += self.amounts.take_up_s[letter.size_bytes] / self.speed
        return DONE

    def add(self, letter):
        """Add the gradient of a letter to what is at hand."""
        hand = self.at_hand
        if letter is None or letter.note or letter is hand.added:
            hand.begin_add(letter)
        if not (self.serves or hand.what):  # what was handed on is not added to
            self.samples = self.minibatches = 0
        hand.what, hand.added = SUM, letter
        self.samples += letter.samples
        self.minibatches += letter.minibatches
        if self.rank == 0 and self.counts_updates:
            self.world.meter.missed.append(self.version - letter.version)
        seconds = self.amounts.reduce_s[letter.size_bytes]
        self.applied_s += seconds
        self.clock_s += seconds / self.speed
        return DONE

    # ---- messages

    def send(self, what, to, wait: bool = True):
        """Send a message to each of `to`."""
        peer = to if type(to) is int else to[0] if type(to) is range and len(to) == 1 else None
        if peer is None or self.serves or what is not GRADIENT or not wait:
            return self.letters.send(what, to, wait)
        self.at_hand.what = ""
        self.clock_s = self.mechanics.post(peer, self._message(peer))
        return DONE

    def _message(self, peer: int) -> Message:
        """A gradient, or parameters."""
        minibatches = self.minibatches
        found = self.amounts.sizes.get(~self.rank if self.serves else peer) if minibatches <= 1 else None
        sizes_bytes, size_bytes = found or self.letters.sized(peer)
        return Message(self.rank, self.version, self.samples, sizes_bytes, size_bytes, minibatches)

    # ---- servers and their workers

    def take(self, workers, until_s: float = math.inf):
        """The next gradient that comes from one of `workers`; requests for parameters are answered meanwhile."""
        if until_s < math.inf:
            return (yield from by_verbs.take.__wrapped__(self, workers, until_s))
        book, first = self.book, self.mechanics.first
        if self.version >= self.updates:
            yield from by_verbs.dismiss(self, workers)
        while len(book.gone) < len(workers):
            letter = first(workers, True) or (yield)
            if letter.last:
                yield from by_verbs.part(self, letter.sender)
            elif not letter.note:
                book.owed.add(letter.sender)
                return letter
            else:
                self.answer(letter.sender)
        return None

    def answer(self, workers):
        """A server hands its parameters to `workers` and goes on at once."""
        book, post = self.book, self.mechanics.post
        for worker in (workers,) if type(workers) is int else workers:
            if worker not in book.gone:
                book.owed.discard(worker)
                post(worker, self._message(worker))
        return DONE

    def let_go(self, workers, version: int | None = None):
        """Acknowledge gradients of `workers`."""
        book, post = self.book, self.mechanics.post
        version = self.version if version is None else version
        for worker in (workers,) if type(workers) is int else workers:
            if worker not in book.gone:
                book.owed.discard(worker)
                post(worker, Control(self.rank, version, 0, *HEADER))
        return DONE

    def pull(self, servers):
        """Ask each of `servers` for its parameters, and take them up as they come."""
        requests = self.amounts.requests
        for server in servers:
            sizes_bytes, size_bytes = requests.get(server) or self.letters.requested(server)
            self.mechanics.post(server, Control(self.rank, self.version, 0, sizes_bytes, size_bytes))
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
        first, chief = self.mechanics.first, self.servers.start
        missing = servers if len(servers) == 1 else set(servers)
        several = len(servers) > 1
        for _ in servers:
            letter = first(missing) or (yield)
            if several:
                missing.remove(letter.sender)
            if letter.last and letter.sender == chief:
                yield from by_verbs.say_good_bye(self)
            elif not letter.note:
                self.take_up(letter)
            elif letter.sender == chief:
                self.book.token = letter.version
        self.step += steps
