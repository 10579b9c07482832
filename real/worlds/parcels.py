"""Messages of the MPI world: a header of four 64-bit integers (step, version, samples, kind) and float32 numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sim.model.sizes import HEADER_BYTES, ITEM_BYTES

TAG = 1
NOTHING = np.empty(0)
# Kinds: with parameters or a gradient, a header alone, one that ends training, one that asks for rows, and one where ranks negotiate.
LETTER, NOTE, LAST, REQUEST, CONTROL = range(5)


class Parcel:
    """A message's buffer: header, numbers of rows if it carries any, and payload are views of it."""

    def __init__(self, parameters: int, rows: int = 0):
        self.buffer = np.zeros(HEADER_BYTES + ITEM_BYTES * (rows + parameters), np.uint8)
        self.header = self.buffer[:HEADER_BYTES].view(np.int64)
        self.rows = self.buffer[HEADER_BYTES : HEADER_BYTES + ITEM_BYTES * rows].view(np.int32)
        self.payload = self.buffer[HEADER_BYTES + ITEM_BYTES * rows :].view(np.float32)

    @classmethod
    def of(cls, rows: np.ndarray = NOTHING, values: np.ndarray = NOTHING) -> Parcel:
        """A message that carries copies of a header and a payload."""
        parcel = cls(values.size, rows.size)
        parcel.rows[:], parcel.payload[:] = rows, values.ravel()
        return parcel

    def copied(self) -> Parcel:
        """A message that carries the same payload, without rows."""
        parcel = Parcel(self.payload.size)
        np.copyto(parcel.payload, self.payload)
        return parcel


class Letter(NamedTuple):
    """A message: its header, its sender, and its numbers, a view of the buffer into which it came."""

    sender: int
    version: int
    samples: int
    kind: int
    size_bytes: int
    payload: np.ndarray
    variable: int = 0
    ready: int = 0

    def kept(self) -> Letter:
        """A copy of this message, which later messages do not overwrite."""
        return self._replace(payload=self.payload.copy())

    @property
    def note(self) -> bool:
        """Whether it is a header alone."""
        return self.kind != LETTER

    @property
    def last(self) -> bool:
        """Whether it says that training is over."""
        return self.kind == LAST


def put(into: np.ndarray, values: np.ndarray, adds: bool) -> None:
    """Write numbers, or add them to what is there."""
    np.add(into, values, out=into) if adds else np.copyto(into, values)


class Shards:
    """The pieces of the flat parameter vector that each server holds."""

    def __init__(self, slices: list[list[slice]]):
        self._slices = slices

    def size(self, server: int) -> int:
        """The number of parameters that a server holds."""
        return sum(piece.stop - piece.start for piece in self._slices[server])

    def cut(self, flat: np.ndarray, server: int) -> np.ndarray:
        """A copy of the parts of `flat` that a server holds, one after another."""
        return np.concatenate([flat[piece] for piece in self._slices[server]])

    def copy(self, flat: np.ndarray, server: int, shard: np.ndarray, adds: bool = False) -> None:
        """Copy the parts of `flat` that a server holds into `shard`, or add them to what is there."""
        start = 0
        for piece in self._slices[server]:
            stop = start + piece.stop - piece.start
            put(shard[start:stop], flat[piece], adds)
            start = stop

    def paste(self, shard: np.ndarray, flat: np.ndarray, server: int) -> None:
        """Copy a server's `shard` back into `flat`."""
        start = 0
        for piece in self._slices[server]:
            stop = start + piece.stop - piece.start
            flat[piece] = shard[start:stop]
            start = stop


class Sent(NamedTuple):
    """A message that is on its way, or has left."""

    peer: int
    start_s: float
    step: int
    version: int
    size_bytes: int


@dataclass
class Departure:
    """Messages that leave together."""

    size_bytes: int
    _parcels: list[Parcel]  # which must live as long
    _requests: list

    @classmethod
    def of(cls, comm, peer: int, parcels: list[Parcel], header: tuple) -> Departure:
        """Begin to send them under one header."""
        for parcel in parcels:
            parcel.header[:] = header
        requests = [comm.Isend(parcel.buffer, peer, TAG) for parcel in parcels]
        return cls(sum(parcel.buffer.nbytes for parcel in parcels), parcels, requests)

    def left(self) -> bool:
        """Whether all of them have left."""
        self._requests = [request for request in self._requests if not request.Test()]
        return not self._requests


@dataclass
class Snapshot:
    """Parameters as they were after an update, and the sends that still read them."""

    parcel: Parcel
    key: tuple = ()
    requests: list[tuple[object, Sent]] = field(default_factory=list)


class Answers:
    """A server's answers: sent from snapshots, so that the server can go on updating while they leave."""

    def __init__(self, comm):
        self._comm, self._snapshots = comm, []

    @property
    def pending(self) -> bool:
        """Whether any answer has not left."""
        return any(snapshot.requests for snapshot in self._snapshots)

    def post(self, worker: int, parameters: np.ndarray, version: int, header: tuple, start_s: float) -> None:
        """Begin to send `parameters`, which are the server's after `version` updates, under `header`."""
        snapshot = self._snapshot(parameters, version, header)
        request = self._comm.Isend(snapshot.parcel.buffer, worker, TAG)
        sent = Sent(worker, start_s, header[0], header[1], snapshot.parcel.buffer.nbytes)
        snapshot.requests.append((request, sent))

    def settle(self) -> list[Sent]:
        """The answers that have left since the last poll."""
        left = []
        for snapshot in self._snapshots:
            waiting = []
            for request, sent in snapshot.requests:
                left.append(sent) if request.Test() else waiting.append((request, sent))
            snapshot.requests = waiting
        return left

    def _snapshot(self, parameters: np.ndarray, version: int, header: tuple) -> Snapshot:
        for snapshot in self._snapshots:
            if snapshot.key == (version, header):
                return snapshot
        free = next((snapshot for snapshot in self._snapshots if not snapshot.requests), None)
        if free is None:
            free = Snapshot(Parcel(parameters.size))
            self._snapshots.append(free)
        free.parcel.payload[:] = parameters
        free.parcel.header[:] = header
        free.key = (version, header)
        return free
