"""The messages that one rank sends: what they carry and how long they are."""

from __future__ import annotations

from functools import partial
from typing import Any

from sim.base.errors import WrongText
from sim.event.ranks.amounts import Sizes
from sim.event.ranks.layerwise import Layerwise
from sim.event.ranks.message import HEADER, Control, Message
from sim.model.sparse_rows import Load
from sim.verbs.me import GRADIENT, PARAMETERS, Note

NOTHING_TO_SEND = "me.send needs a master or servers; workers without one sum by allreduce(me)"
DONE = ()


class Letters:
    """The verb `send` of `me`.

    Args:
        rank: sim.event.ranks.rank.Rank.
    """

    __slots__ = ("layers", "rank")

    def __init__(self, rank):
        self.rank = rank
        self.layers: Any = Layerwise(rank) if rank.layerwise else None

    def send(self, what, to, wait: bool = True):
        """Send a message to each of `to`."""
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

    def _note(self, note: Note, peer: int) -> Message:
        rank = self.rank
        version = rank.version if note.version is None else note.version
        asks = not note.last and not rank.serves and peer in rank.servers
        found = Control(rank.rank, version, 0, *(self.requested(peer) if asks else HEADER))
        found.last = note.last
        return found

    def requested(self, server: int) -> Sizes:
        """Bytes of a worker's request of a server's parameters."""
        found = self.rank.amounts.requests.get(server)
        if found is None:
            sizes = tuple(load.request_bytes for load in self.rank.scenario.traffic.loads(server))
            found = self.rank.amounts.requests[server] = sizes, sum(sizes)
        return found

    def message(self, version: int, peer: int) -> Message:
        """The message this rank sends: a server sends its parameters; a worker its gradient (to a server, only that server's variables)."""
        rank = self.rank
        return Message(rank.rank, version, rank.samples, *self.sized(peer), rank.minibatches)

    def sized(self, peer: int) -> Sizes:
        """Bytes of that message; a server sends the same to all, and all workers the same to a server."""
        rank, minibatches = self.rank, self.rank.minibatches
        key = ~rank.rank if rank.serves else peer if minibatches <= 1 else (peer, minibatches)
        found = rank.amounts.sizes.get(key)
        if found is None:
            sizes = self._sized(peer, 1 if rank.serves else minibatches)
            found = rank.amounts.sizes[key] = sizes, sum(sizes)
        return found

    def _sized(self, peer: int, minibatches: int) -> tuple[int, ...]:
        """Bytes of the messages that carry what this rank sends to `peer`."""
        rank = self.rank
        if rank.serves:
            sizes = tuple(load.answer_bytes for load in rank.scenario.traffic.loads(rank.rank))
        else:
            sizes = tuple(load.gradient_bytes for load in self.loads_with(peer, minibatches))
        if not sizes:
            raise WrongText(NOTHING_TO_SEND)
        return sizes

    def loads_with(self, peer: int, minibatches: int = 1) -> list[Load]:
        """The variables that a gradient carries between this rank and `peer`: the server's, or all if neither is a server."""
        rank = self.rank
        holders = [one for one in (rank.rank, peer) if one in rank.servers] or rank.servers
        return [load for server in holders for load in rank.scenario.traffic.loads(server, minibatches)]
