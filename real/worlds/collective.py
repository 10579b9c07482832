"""The verb `allreduce` for real: the simulator's exchanges by Isend and Recv, or MPI's own Allreduce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from real.parcels import TAG
from real.waiting import arrived, poll, receive
from real.worlds.verbs import verb
from sim.collectives import Exchange
from sim.collectives.base import NOTHING
from sim.verbs.collectives import allreduce, reduce_by_exchanges
from sim.workload import ITEM_BYTES


class Taken(NamedTuple):
    """A piece that was taken, and lies where it belongs."""

    sender: int | None
    ready: int = 0


class CollectiveForReal:
    """Verbs of a rank without a master, over `comm`."""

    def begin_reducing(self, parameters: int, hosts: Sequence[str]) -> np.ndarray:
        """Set up; where the gradient goes, and its sum comes, float32 (parameters,)."""
        self.hosts = [hosts.index(host) for host in hosts]
        self._vector = np.zeros(parameters + 1, np.float32)  # and the number of samples
        self._taken = np.zeros_like(self._vector)
        self._leaving = []
        self._between = self.comm  # the workers alone
        if self.scenario.servers:
            group = self.comm.Get_group()
            self._between = self.comm.Create_group(group.Incl(list(self.workers)))
        return self._vector[:-1]

    def end_reducing(self) -> None:
        """Give back what setting up took."""
        if self.scenario.servers and self.scenario.summed and self.rank in self.workers:
            self._between.Free()

    def allreduce(self, algorithm: str = "auto", fused: bool = True):
        """As the verb; a sum that is summed again is a mistake."""
        if self.summed:
            self.at_hand.begin_sum()
        yield from allreduce.__wrapped__(self, algorithm, fused)

    def reduce(self, algorithm: str, piece: slice):
        """One call, on some items of the vector; auto leaves it to MPI."""
        self._vector[-1] = self.samples
        if algorithm == "auto" and self.scenario.workers > 1:
            yield from self._leave_it_to_mpi(piece)
        else:
            yield from reduce_by_exchanges(self, algorithm, piece)
        self.samples = int(self._vector[-1])

    def exchange(self, exchange: Exchange, ready: int = 0, messages: int = 1):
        """Hand a piece to one rank while taking one from another; then add it up."""
        self._exchange(exchange)
        return Taken(exchange.source)
        yield

    def _exchange(self, exchange: Exchange) -> None:
        if exchange.to is not None:
            request = self.comm.Isend(self._vector[exchange.sent], exchange.to, TAG)
            self._leaving.append((request, self.now_s, exchange))
        if exchange.source is not None:
            self._take(exchange)
        if exchange.to is not None and not exchange.ahead:
            self._wait_for_departures()
        if exchange.adds:
            poll(lambda: self._is_free(exchange.taken), "others to receive")
            start_s, sums = self.now_s, self._vector[exchange.taken]
            np.add(sums, self._taken[exchange.taken], out=sums)
            self._record("reduce", start_s, bytes=exchange.taken_bytes, peer=exchange.source)

    @verb
    def departed(self):
        """Until all that was handed over has left."""
        self._wait_for_departures()

    def _take(self, exchange: Exchange) -> None:
        """Asleep until bytes move, then receive them."""
        start_s, source = self.now_s, exchange.source
        written = NOTHING if exchange.adds else exchange.taken
        poll(lambda: self._is_free(written) and arrived(self.comm, source, TAG), f"rank {source}")
        moving_s = self.now_s
        into = (self._taken if exchange.adds else self._vector)[exchange.taken]
        receive(self.comm, into, source, TAG, self.hosts[source] == self.hosts[self.rank])
        self._record("wait", start_s, moving_s, peer=source)
        self._record("receive", moving_s, bytes=exchange.taken_bytes, peer=source)

    def _wait_for_departures(self) -> None:
        poll(lambda: self._is_free(NOTHING) and not self._leaving, "others to receive")

    def _is_free(self, piece: slice) -> bool:
        """Record what has left; whether none of `piece` is still to be read by what has not."""
        staying = []
        for request, start_s, exchange in self._leaving:
            if request.Test():
                self._record("send", start_s, bytes=exchange.sent_bytes, peer=exchange.to)
            else:
                staying.append((request, start_s, exchange))
        self._leaving = staying
        sent = [exchange.sent for _, _, exchange in staying]
        return not any(max(piece.start, other.start) < min(piece.stop, other.stop) for other in sent)

    @verb
    def _leave_it_to_mpi(self, whole: slice):
        """A barrier whose ranks sleep tells waiting from moving bytes; then MPI's Allreduce, recorded as one `receive`."""
        from mpi4py import MPI

        start_s = self.now_s
        poll(self._between.Ibarrier().Test, "all ranks to reduce")
        moving_s = self.now_s
        self._between.Allreduce(MPI.IN_PLACE, self._vector[whole])
        self._record("wait", start_s, moving_s)
        self._record("receive", moving_s, bytes=ITEM_BYTES * (whole.stop - whole.start))
