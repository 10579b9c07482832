"""Exchanges for real: pieces of one vector handed over by Isend and taken by Recv, control messages, and MPI's own Allreduce."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from real.worlds.parcels import TAG
from real.worlds.polling import arrived, poll, receive
from sim.collectives import Exchange
from sim.collectives.base import CONTROL, NOTHING
from sim.model.sizes import ITEM_BYTES


class Taken(NamedTuple):
    """A received piece, which is in its place in the vector. A control message has `ready` alone."""

    sender: int
    ready: int = 0


class Leaving(NamedTuple):
    """A message that was handed to MPI and may not have left.

    Args:
        buffer: which must live as long.
        piece: of the vector, that is read until then.
    """

    request: Any
    start_s: float
    peer: int
    buffer: np.ndarray
    piece: slice


class Exchanges:
    """The exchanges of one rank with others.

    Args:
        me: the rank: its clock, its record, and whether another rank is on its host.
        comm: all ranks of the run.
        items: numbers in the gradient that ranks sum; the vector has one more, the number of samples.
        ranks: those that sum.
    """

    def __init__(self, me, comm, items: int, ranks: range):
        self._me, self._comm = me, comm
        self.vector = np.zeros(items + 1, np.float32)
        self._taken, self._leaving = np.zeros_like(self.vector), []
        self._between, self._is_ours = comm, False
        if comm is not None and len(ranks) < comm.size and comm.rank in ranks:
            self._between, self._is_ours = comm.Create_group(comm.Get_group().Incl(list(ranks))), True

    def end(self) -> None:
        """Free the resources of MPI."""
        if self._is_ours:
            self._between.Free()

    def exchange(self, exchange: Exchange, ready: int = 0) -> Taken | None:
        """Send a piece to one rank while receiving one from another; then add it up."""
        if exchange.to is not None:
            self._hand_over(exchange, ready)
        # A piece that has not left is not written to. To wait for that first would be for ever where the peer waits too.
        written = NOTHING if exchange.kind == CONTROL else exchange.taken
        into = self._taken if exchange.adds or not self._is_free(written) else self.vector
        taken = None if exchange.source is None else self._take(exchange, into)
        if exchange.to is not None and not exchange.ahead:
            self.departed()
        if exchange.adds:
            self._add_up(exchange)
        elif into is self._taken and taken is not None:
            poll(lambda: self._is_free(written), "others to receive")
            np.copyto(self.vector[written], into[written])
        return taken

    def _hand_over(self, exchange: Exchange, ready: int) -> None:
        buffer, piece = self.vector[exchange.sent], exchange.sent
        if exchange.kind == CONTROL:
            buffer, piece = np.full(exchange.sent_bytes // 8, ready), NOTHING
        request = self._comm.Isend(buffer, exchange.to, TAG)
        self._leaving.append(Leaving(request, self._me.now_s, exchange.to, buffer, piece))

    def _take(self, exchange: Exchange, into: np.ndarray) -> Taken:
        """Sleep until bytes move, then receive them at their place of a vector."""
        start_s, source, me = self._me.now_s, exchange.source, self._me
        poll(lambda: self._is_free(NOTHING) and arrived(self._comm, source, TAG), f"rank {source}")
        moving_s, ready = me.now_s, 0
        if exchange.kind == CONTROL:
            ready = self._heard(exchange)
        else:
            receive(self._comm, into[exchange.taken], source, TAG, me.is_here(source))
        me.waited(start_s, moving_s, peer=source)
        me.record("receive", moving_s, bytes=exchange.taken_bytes, peer=source)
        return Taken(source, ready)

    def _heard(self, exchange: Exchange) -> int:
        """Receive a control message: how many gradients are ready."""
        buffer = np.empty(exchange.taken_bytes // 8, np.int64)
        self._comm.Recv(buffer, exchange.source, TAG)
        return int(buffer[0])

    def _add_up(self, exchange: Exchange) -> None:
        poll(lambda: self._is_free(exchange.taken), "others to receive")
        start_s, sums = self._me.now_s, self.vector[exchange.taken]
        np.add(sums, self._taken[exchange.taken], out=sums)
        self._me.record("reduce", start_s, bytes=exchange.taken_bytes, peer=exchange.source)

    def copy(self, piece: slice) -> None:
        """Copy items, as into a fusion buffer or out of it: for its time alone, because all items lie in one vector already."""
        start_s = self._me.now_s
        np.copyto(self._taken[piece], self.vector[piece])
        self._me.record("pack", start_s, bytes=ITEM_BYTES * (piece.stop - piece.start))

    def departed(self) -> None:
        """Wait until all messages that were handed to MPI have left."""
        poll(lambda: self._is_free(NOTHING) and not self._leaving, "others to receive")

    def _is_free(self, piece: slice) -> bool:
        """Record messages that have left. Returns whether no message that has not left still reads `piece`."""
        staying = []
        for one in self._leaving:
            if one.request.Test():
                self._me.record("send", one.start_s, bytes=one.buffer.nbytes, peer=one.peer)
            else:
                staying.append(one)
        self._leaving = staying
        return not any(max(piece.start, one.piece.start) < min(piece.stop, one.piece.stop) for one in staying)

    def leave_it_to_mpi(self, whole: slice) -> None:
        """A barrier whose ranks sleep, which separates waiting from moving bytes; then MPI's Allreduce, recorded as one `receive`."""
        from mpi4py import MPI

        me, start_s = self._me, self._me.now_s
        poll(self._between.Ibarrier().Test, "all ranks to reduce")
        moving_s = me.now_s
        self._between.Allreduce(MPI.IN_PLACE, self.vector[whole])
        me.waited(start_s, moving_s)
        me.record("receive", moving_s, bytes=ITEM_BYTES * (whole.stop - whole.start))
