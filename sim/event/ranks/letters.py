"""The messages that one rank sends: what they carry and how long they are."""

from __future__ import annotations

from functools import partial
from typing import Any

from sim.base.errors import WrongText
from sim.event.ranks.layerwise import Layerwise
from sim.event.ranks.message import HEADER, Message, note_of
from sim.model.sparse_rows import Load
from sim.verbs.me import GRADIENT, PARAMETERS, Note

NOTHING_TO_SEND = "me.send needs a master or servers; workers without one sum by allreduce(me)"
DONE = ()
Sizes = tuple[tuple[int, ...], int]  # bytes of the messages that travel together, and of all of them


class Letters:
    """The verb `send` of `me`.

    Args:
        rank: sim.event.ranks.rank.Rank.
    """

    __slots__ = ("_parts", "_post", "_requests", "layers", "rank")

    def __init__(self, rank):
        self.rank = rank
        self._post: Any = None  # posts one message, where that needs nobody else
        self._parts: dict[int | tuple[int, int], Sizes] = {}  # of a server, which sends the same to all, one
        self._requests: dict[int, Sizes] = {}
        self.layers: Any = Layerwise(rank) if rank.layerwise else None

    def begin(self, mechanics) -> None:
        """The rank's mechanics are known."""
        self._post = mechanics.post if self.rank.quick and mechanics.own_port else None

    def send(self, what, to, wait: bool = True):
        """A message to each of `to`."""
        if self._post is not None:
            if type(to) is range and len(to) == 1:
                to = to[0]
            if type(to) is int and self._posted(what, to, wait):
                return DONE
        rank = self.rank
        peers = (to,) if isinstance(to, int) else to
        if what is PARAMETERS or what is GRADIENT:
            version = rank.version if rank.serves or wait else rank.oldest
            if not rank.serves:
                rank.at_hand.what = ""
            if wait:
                return rank.mechanics.send_all(peers, partial(self.message, version))
            return rank.mechanics.post_all(peers, partial(self.message, version), record=True, one=not rank.serves)
        if type(what) is Note:
            return rank.mechanics.post_all(peers, partial(self._note, what))
        self.layers.send(what.number, peers)
        return DONE

    def _posted(self, what, peer: int, wait: bool) -> bool:
        """Whether one message was posted at once: that is so where nobody else needs the port, and nothing is waited for but it."""
        rank = self.rank
        if what is GRADIENT and wait and not rank.serves:
            self.gradient(peer)
        elif type(what) is Note:
            self._post(peer, self._note(what, peer))
        elif rank.serves and not wait:
            self.parameters(peer)
        else:
            return False
        return True

    # ---- one message, where it can be posted at once

    def gradient(self, peer: int) -> None:
        """A worker's gradient; go on when it has left."""
        rank = self.rank
        rank.at_hand.what = ""
        rank.clock_s = self._post(peer, self.message(rank.version, peer))

    def parameters(self, peer: int) -> None:
        """A server's parameters."""
        self._post(peer, self.message(self.rank.version, peer))

    def note(self, peer: int, version: int) -> None:
        """A header alone."""
        self._post(peer, note_of(self.rank.rank, version))

    def request(self, server: int) -> None:
        """A worker's request of a server's parameters."""
        rank = self.rank
        self._post(server, note_of(rank.rank, rank.version, *self._request(server)))

    def _note(self, note: Note, peer: int) -> Message:
        rank = self.rank
        version = rank.version if note.version is None else note.version
        found = note_of(rank.rank, version, *(HEADER if note.last else self._request(peer)))
        found.last = note.last
        return found

    def _request(self, peer: int) -> Sizes:
        """Bytes of a note, which is a request if it is a worker's to a server."""
        found = self._requests.get(peer)
        if found is None:
            rank, found = self.rank, HEADER
            if peer in rank.servers and not rank.serves:
                sizes = tuple(load.request_bytes for load in rank.scenario.loads(peer))
                found = sizes, sum(sizes)
            self._requests[peer] = found
        return found

    def message(self, version: int, peer: int) -> Message:
        """The message this rank sends: a server sends its parameters; a worker its gradient (to a server, only that server's variables)."""
        rank, parts = self.rank, self._parts
        minibatches = rank.minibatches
        key = 0 if rank.serves else peer if minibatches <= 1 else (peer, minibatches)
        try:
            sizes, size_bytes = parts[key]
        except KeyError:
            sizes = self._sized(peer, 1 if rank.serves else minibatches)
            size_bytes = sum(sizes)
            parts[key] = sizes, size_bytes
        return Message(rank.rank, version, rank.samples, sizes, size_bytes, minibatches)

    def _sized(self, peer: int, minibatches: int) -> tuple[int, ...]:
        """Bytes of the messages that carry what this rank sends to `peer`."""
        rank = self.rank
        if rank.serves:
            sizes = tuple(load.answer_bytes for load in rank.scenario.loads(rank.rank))
        else:
            sizes = tuple(load.gradient_bytes for load in self.loads_with(peer, minibatches))
        if not sizes:
            raise WrongText(NOTHING_TO_SEND)
        return sizes

    def loads_with(self, peer: int, minibatches: int = 1) -> list[Load]:
        """The variables that a gradient carries between this rank and `peer`: the server's, or all if neither is a server."""
        rank = self.rank
        holders = [one for one in (rank.rank, peer) if one in rank.servers] or rank.servers
        return [load for server in holders for load in rank.scenario.loads(server, minibatches)]
