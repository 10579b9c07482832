"""The verbs of the event world that hand on parameters and gradients."""

from __future__ import annotations

from functools import partial

from sim.errors import WrongText
from sim.network import Message
from sim.rows import Load
from sim.traces import Activity

NOTHING_TO_SEND = "me.send and me.post need a master or servers; workers without one sum by me.allreduce"


class Sending:
    """Verbs of a rank; mixed into the event world's Rank, which gives `_post`, `until`, `handed_on` and what `me` has."""

    def send(self, peers):
        """Hand a message to each of `peers`; go on when the last has left."""
        peers = [peers] if isinstance(peers, int) else peers
        start_s = self.now_s
        departures = []
        for peer in peers:
            message = self._message(peer)
            departures.append((message, (yield from self._post(peer, message))))
        for peer, (message, departure) in zip(peers, departures, strict=True):
            yield from self.until(departure)
            self._record("send", start_s, bytes=message.size_bytes, peer=peer)
            start_s = self.now_s
        if self.rank not in self.servers:
            self.handed_on()

    def answer(self, workers, version: int | None = None):
        """Hand parameters to `workers` and go on at once; `version` labels them, if not with this server's."""
        for worker in self.to_answer(workers):
            message, start_s = self._message(worker, version), self.now_s
            departure = yield from self._post(worker, message)
            departure.callbacks.append(partial(self._left, start_s, self.step, message, worker))

    def post(self, peer: int):
        """Hand the gradient to `peer` and go on, once the one before has left."""
        if self._posted is not None and not self._posted.processed:
            start_s = self.now_s
            yield from self.until(self._posted)
            self._record("wait", start_s, peer=peer)
        message, start_s = self._message(peer, self.oldest), self.now_s
        self.handed_on()
        self._posted = yield from self._post(peer, message)
        self._posted.callbacks.append(partial(self._left, start_s, self.step, message, peer))

    def _left(self, start_s: float, step: int, message: Message, worker: int, _event) -> None:
        about = (self.rank, step, "send", 0, message.size_bytes, worker, message.version)
        self.world.activities.append(Activity(start_s, self.now_s, *about))

    def _message(self, peer: int, version: int | None = None) -> Message:
        """Parameters, where a server sends, or a gradient: to a server of what it holds, to another worker of what all do."""
        label = self.version if version is None else version
        if self.rank in self.servers:
            parts = tuple(load.answer_bytes for load in self.scenario.loads(self.rank))
        else:
            parts = tuple(load.gradient_bytes for load in self._loads_with(peer, self.minibatches))
        if not parts:
            raise WrongText(NOTHING_TO_SEND)
        return Message(self.rank, label, self.samples, sum(parts), minibatches=self.minibatches, parts=parts)

    def _loads_with(self, peer: int, minibatches: int = 1) -> list[Load]:
        """What a gradient carries between this rank and `peer`: what the server of the two holds, or all do if none is one."""
        holders = [rank for rank in (self.rank, peer) if rank in self.servers] or self.servers
        return [load for server in holders for load in self.scenario.loads(server, minibatches)]
