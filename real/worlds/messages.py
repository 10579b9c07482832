"""Messages for real: gradients, parameters and notes, sent by Isend and received when they begin to come."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from sim.verbs.me import GRADIENT, PARAMETERS, Note, Variable

from real.worlds.parcels import LAST, LETTER, NOTE, NOTHING, TAG, Answers, Departure, Letter, Parcel, Sent, Shards
from real.worlds.polling import arrived, poll, receive
from real.worlds.verbs import verb
from sim.recording.traces import Activity

ENDLESS = math.inf


class Messages:
    """The part of a rank that sends and receives, over `comm`."""

    def _begin_messages(self, hosts) -> None:
        """Make the buffers of messages."""
        self._at = hosts
        self._shards, self._answers = Shards(self.scenario.traffic.server_slices), Answers(self.comm)
        self._posted: tuple[Departure, Sent] | None = None  # the gradient that is on its way while the next is computed
        self._spares: dict[int, Parcel] = {}
        self._in, self._out = ({s: Parcel(self._shards.size(s)) for s in self._kept()} for _ in range(2))
        self._among: dict[int, list[Parcel]] = {}  # those in which other workers' messages come

    def _kept(self) -> Iterable[int]:
        """The servers whose messages this rank sends and receives: its own, or all."""
        return [self.rank] if self.serves else self.servers

    # ---- messages that leave

    @verb
    def send(self, what, to, wait: bool = True):
        """Send a message to each of `to`."""
        peers = [to] if isinstance(to, int) else list(to)
        if isinstance(what, Note):
            for peer in peers:
                self._send_note(peer, what)
        elif isinstance(what, Variable):
            self._send_variable(what.number, peers)
        elif wait:
            self._send_all(peers)
        elif what is PARAMETERS:
            self._hand_out(peers)
        elif what is GRADIENT:
            for peer in peers:
                self._post(peer)

    def _send_all(self, peers: list[int]) -> None:
        """Wait until the last message has left."""
        start_s = self.now_s
        header = (self.step, self.version, self.samples, LETTER)
        pending = {peer: Departure.of(self.comm, peer, self._parcels(peer), header) for peer in peers}
        while pending:
            poll(lambda: any(d.left() for d in pending.values()), f"rank {next(iter(pending))} to receive")
            for peer in [peer for peer, departure in pending.items() if departure.left()]:
                self.record("send", start_s, bytes=pending.pop(peer).size_bytes, peer=peer)
                start_s = self.now_s
        if not self.serves:
            self.at_hand.handed_on()

    def _parcels(self, peer: int) -> list[Parcel]:
        """The messages that carry a gradient, or parameters, to a peer; to another worker, a gradient's for each server."""
        if not self.serves:
            return [self._out[peer]] if peer in self._out else list(self._out.values())
        parcel = self._out[self.rank]
        if parcel.payload is not self._held:
            np.copyto(parcel.payload, self._held)
        return [parcel]

    def _post(self, peer: int) -> None:
        """Hand the gradient to `peer` and go on, once the one before has left."""
        start_s = self.now_s
        self.at_hand.handed_on()
        self.settle()
        if self._posted:
            poll(lambda: self.settle() or not self._posted, f"rank {peer} to receive")
            self.record("wait", start_s, peer=peer)
        left_s, header = self.now_s, (self.step, self.oldest, self.samples, LETTER)
        departure = Departure.of(self.comm, peer, self._handed_over(peer), header)
        self._posted = departure, Sent(peer, left_s, self.step, self.oldest, departure.size_bytes)

    def _handed_over(self, peer: int) -> list[Parcel]:
        """The messages that carry the gradient, which the next one does not overwrite."""
        if peer not in self._out:
            return [parcel.copied() for parcel in self._parcels(peer)]
        parcel = self._out[peer]
        self._out[peer] = self._spares.get(peer) or Parcel(self._shards.size(peer))
        self._spares[peer] = parcel
        return [parcel]

    def _hand_out(self, workers: list[int]) -> None:
        """Hand parameters to `workers` and go on at once."""
        for worker in workers:
            header = (self.step, self.version, self.samples, LETTER)
            self._answers.post(worker, self._held, self.version, header, self.now_s)

    def _send_note(self, peer: int, note: Note) -> None:
        """Send a header alone; the last says that training is over."""
        label = self.version if note.version is None else note.version
        header = np.array([self.step, label, 0, LAST if note.last else NOTE], np.int64)
        poll(self.comm.Isend(header.view(np.uint8), peer, TAG).Test, f"rank {peer} to receive")

    def settle(self) -> None:
        """Record answers and posted messages that have left since the last call."""
        left = self._answers.settle()
        if self._posted and self._posted[0].left():
            left.append(self._posted[1])
            self._posted = None
        for sent in left:
            about = (self.rank, sent.step, "send", 0, sent.size_bytes, sent.peer, sent.version)
            self.recorder.add(Activity(sent.start_s, self.now_s, *about))

    def end_messages(self) -> None:
        """Wait until all that was sent has been received."""
        poll(
            lambda: self._drop() or self.settle() or not (self._answers.pending or self._posted),
            "the last messages to be received",
        )
        if self.comm is not None:
            others = self.comm.Ibarrier()
            poll(lambda: self._drop() or others.Test(), "the end of the other ranks")

    def _drop(self) -> None:
        """Receive a message that no text will take, if there is one: its sender would wait for ever."""
        from mpi4py import MPI

        status = MPI.Status()
        if self.comm is not None and self.comm.Iprobe(MPI.ANY_SOURCE, TAG, status):
            self.comm.Recv(np.empty(status.Get_count(MPI.BYTE), np.uint8), status.source, TAG)

    # ---- messages that come

    def receive(self, frm, until_s: float = ENDLESS, variable: int | None = None):
        """Wait until a message begins to come from one of `frm`, then take it; None if none begins by `until_s`."""
        from mpi4py import MPI

        peers = {frm} if isinstance(frm, int) else frm
        status, start_s, came = MPI.Status(), self.now_s, False

        def ended() -> bool:
            nonlocal came
            self.settle()
            came = self._probe(peers, status)
            return came or self.now_s >= until_s

        poll(ended, f"rank {' or '.join(map(str, sorted(peers)))}")
        if not came:
            if until_s > start_s:
                self.waited(start_s)
            return None
        moving_s, sender = self.now_s, status.source
        letter = self._receive(sender, status.Get_count(MPI.BYTE))
        self.waited(start_s, moving_s, peer=sender)
        self.record("receive", moving_s, bytes=letter.size_bytes, peer=sender)
        return letter
        yield

    def _receive(self, sender: int, size_bytes: int) -> Letter:
        """Receive a message that has come, of so many bytes."""
        if not self.serves and sender not in self.servers:
            return self._receive_of_worker(sender, size_bytes)
        parcel = self._in[self.rank if self.serves else sender]
        receive(self.comm, parcel.buffer, sender, TAG, self.is_here(sender))
        return Letter(sender, *map(int, parcel.header[1:]), size_bytes, parcel.payload)

    def _receive_of_worker(self, sender: int, size_bytes: int) -> Letter:
        """Receive a note from another worker, or its gradient: a message for each server, of which the first has come."""
        if sender not in self._among:
            self._among[sender] = [Parcel(self._shards.size(server)) for server in self.servers] or [Parcel(0)]
        first, *further = self._among[sender]
        receive(self.comm, first.buffer, sender, TAG, self.is_here(sender))
        about = tuple(map(int, first.header[1:]))
        if about[-1] != LETTER:
            return Letter(sender, *about, size_bytes, NOTHING)
        for parcel in further:
            poll(lambda: arrived(self.comm, sender, TAG), f"rank {sender}")
            receive(self.comm, parcel.buffer, sender, TAG, self.is_here(sender))
        payload = np.concatenate([first.payload, *(parcel.payload for parcel in further)]) if further else first.payload
        return Letter(sender, *about, size_bytes + sum(parcel.buffer.nbytes for parcel in further), payload)

    def is_here(self, peer: int) -> bool:
        """Whether a rank is on this one's host."""
        return self._at[peer] == self._at[self.rank]

    def _probe(self, peers, status) -> bool:
        from mpi4py import MPI

        if len(peers) > 1:
            if not arrived(self.comm, MPI.ANY_SOURCE, TAG, status):
                return False
            if status.source in peers:
                return True  # else ask for each sender: messages of others would hide it for ever
        return any(arrived(self.comm, peer, TAG, status) for peer in peers)
