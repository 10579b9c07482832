"""The verbs for real where servers hold sparse variables, of which rows alone travel."""

from __future__ import annotations

import numpy as np
from sim.verbs.me import Note

from real.recording.parameters import Piece
from real.training.row_optimiser import Table
from real.training.row_slices import Part, Slices, parts_of
from real.training.sparse_gradients import SparseGradient, look_up
from real.training.trainee import Trainee
from real.worlds.mpi import Rank
from real.worlds.parcels import LETTER, NOTHING, REQUEST, TAG, Departure, Letter, Parcel, Sent, put
from real.worlds.polling import arrived, poll, receive
from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.model.sparse_rows import Load


class SparseRank(Rank):
    """`me` where servers hold sparse variables: each part travels by itself, a request, its values or its gradient.

    A request carries numbers of rows; the answer their values, because the rank that asked knows the rows; a gradient both. Those for one
    peer leave together, and are recorded as one.
    """

    def _begin_messages(self, hosts) -> None:
        """Requests and answers."""
        self._at, self._posted = hosts, None
        self._parts, self._answers = parts_of(self.scenario), Answered(self.comm)
        self._asked: dict[int, list[np.ndarray]] = {}  # by worker, rows of each part here
        self._gradient_rows: dict[Part, Slices] = {}

    def _initially_held(self, trainee: Trainee) -> np.ndarray:
        """A server's tables, or a worker's dense variables, which are at hand."""
        sparse, dense = apart(trainee.initial(), self.scenario.workload.variables)
        if not self.serves:
            return dense
        here = self._parts_with(self.rank)
        self._tables = {part: Table(part.cut(sparse[part.variable]), trainee.row_optimiser) for part in here}
        return np.empty(0, np.float32)

    @property
    def parameters(self) -> np.ndarray:
        """A worker's dense variables, or a server's parts, one after another."""
        return np.concatenate([table.all().ravel() for table in self._tables.values()]) if self.serves else self._held

    def pieces(self) -> list[Piece]:
        """The pieces of all parameters that this rank gives: a server's parts, or of the first worker the dense ones."""
        sparse, dense = apart(np.arange(self.scenario.workload.parameters), self.scenario.workload.variables)
        if self.serves:
            return [(p.cut(sparse[p.variable]).ravel(), table.all().ravel()) for p, table in self._tables.items()]
        return [(dense, self._held)] if self.rank == self.workers[0] else []

    def _parts_with(self, peer: int) -> list[Part]:
        """The parts that travel between this rank and `peer`: those of the server of the two, or all if neither is a server."""
        holders = [rank for rank in (self.rank, peer) if rank in self.servers] or self.servers
        return [part for server in holders for part in self._parts if part.server == server]

    # ---- a worker: the rows that a minibatch reads

    def _input(self):
        """Fetch a minibatch, and find the rows that it reads."""
        start_s = self.now_s
        x, y = self.trainee.next_batch()
        rows, x = look_up(x)
        self._places = {part: part.where(rows) for part in self._parts}
        self._read = {part: rows[places] // part.of for part, places in self._places.items()}
        widths = {part.variable: part.width for part in self._parts}
        self._pulled = [np.empty((len(rows), width), np.float32) for width in widths.values()]
        self.record("input", start_s, samples=len(x))
        return x, y

    def _send_note(self, peer: int, note: Note) -> None:
        """Send a note. A worker's note to a server asks for rows; the worker goes on at once."""
        if self.serves or note.last or peer in self.workers:
            super()._send_note(peer, note)
        else:
            parcels = [Parcel.of(self._read[part]) for part in self._parts_with(peer)]
            self._answers.ask(peer, parcels, (self.step, self.version, 0, REQUEST))

    def _paste(self, letter: Letter) -> None:
        """Copy rows that have come to their places among those that the minibatch reads."""
        for part, values in zip(self._parts_with(letter.sender), letter.payload, strict=True):
            self._pulled[part.variable][self._places[part]] = values

    def _gradient(self, x: np.ndarray, y: np.ndarray) -> SparseGradient:
        return self.trainee.gradients.by_rows(self._held, self._pulled, x, y)

    def _put(self, gradient: SparseGradient, adds: bool = False) -> None:
        """Dense gradients are received where they are added up, and rows in their parts."""
        if self._sum is not None:
            put(self._sum, gradient.sum, adds)
        before, self._gradient_rows = (
            self._gradient_rows,
            {
                part: Slices(self._read[part], gradient.rows[part.variable][places])
                for part, places in self._places.items()
            },
        )
        if adds:
            self._gradient_rows = {part: before[part] + slices for part, slices in self._gradient_rows.items()}

    def _packed_bytes(self) -> int:
        loads = [Load(len(of.rows), of.values.size) for of in self._gradient_rows.values()]
        return HEADER_BYTES + ITEM_BYTES * (
            sum(load.rows + load.numbers for load in loads) + self.scenario.summed_items
        )

    def _parcels(self, peer: int) -> list[Parcel]:
        slices = [self._gradient_rows[part] for part in self._parts_with(peer)]
        return [Parcel.of(of.rows, of.values) for of in slices]

    def _handed_over(self, peer: int) -> list[Parcel]:
        return self._parcels(peer)  # copies

    # ---- a server, or the rank that adds up a host's gradients

    def _hand_out(self, workers: list[int]) -> None:
        """Send workers the rows that they asked for, and go on at once."""
        for worker in workers:
            start_s, asked = self.now_s, self._asked.pop(worker)
            parcels = [
                Parcel.of(values=table.read(rows)) for table, rows in zip(self._tables.values(), asked, strict=True)
            ]
            self._answers.post(worker, parcels, (self.step, self.version, self.samples, LETTER), start_s)

    def _add_up(self, letter: Letter) -> int:
        """Add rows to a server's sums, or to a worker's own gradient."""
        for part, slices in zip(self._parts_with(letter.sender), letter.payload, strict=True):
            if self.serves:
                self._tables[part].add(slices)
            else:
                self._gradient_rows[part] += slices
        return letter.samples

    def _apply(self) -> int:
        """Update the rows that any gradient touched, or a worker's dense variables."""
        if not self.serves:
            return super()._apply()
        touched = [part.width * table.update(self.samples) for part, table in self._tables.items()]
        self.trainee.row_optimiser.end_update()
        return sum(Load(0, numbers).answer_bytes for numbers in touched)

    # ---- messages

    def _receive(self, sender: int, size_bytes: int) -> Letter:
        """Receive a note, or all the messages that left together."""
        buffers = [self._buffer(sender, size_bytes)]
        about = tuple(map(int, buffers[0][:HEADER_BYTES].view(np.int64)[1:]))
        kind, parts = about[-1], self._parts_with(sender)
        if kind in (LETTER, REQUEST):
            buffers += [self._next_buffer(sender) for _ in parts[1:]]
        bodies = [buffer[HEADER_BYTES:] for buffer in buffers]
        payload = NOTHING
        if kind == REQUEST:
            self._asked[sender] = [body.view(np.int32) for body in bodies]
        elif kind == LETTER and sender in self.servers:
            payload = [body.view(np.float32).reshape(-1, part.width) for part, body in zip(parts, bodies, strict=True)]
        elif kind == LETTER:
            payload = [Slices.of(body, part.width) for part, body in zip(parts, bodies, strict=True)]
        return Letter(sender, *about, sum(buffer.nbytes for buffer in buffers), payload)

    def _buffer(self, sender: int, size_bytes: int) -> np.ndarray:
        buffer = np.empty(size_bytes, np.uint8)
        receive(self.comm, buffer, sender, TAG, self.is_here(sender))
        return buffer

    def _next_buffer(self, sender: int) -> np.ndarray:
        """Receive the next message from `sender`, which is on its way."""
        from mpi4py import MPI

        status = MPI.Status()
        poll(lambda: arrived(self.comm, sender, TAG, status), f"rank {sender}")
        return self._buffer(sender, status.Get_count(MPI.BYTE))


class Answered:
    """Requested rows that are being sent; like real.worlds.parcels.Answers, but each answer is different."""

    def __init__(self, comm):
        self._comm = comm
        self._leaving: list[tuple[Departure, Sent | None]] = []

    @property
    def pending(self) -> bool:
        """Whether any answer has not left."""
        return bool(self._leaving)

    def ask(self, server: int, parcels: list[Parcel], header: tuple) -> None:
        """Begin to send a request, which nobody records."""
        self._leaving.append((Departure.of(self._comm, server, parcels, header), None))

    def post(self, worker: int, parcels: list[Parcel], header: tuple, start_s: float) -> None:
        """Begin to send rows."""
        departure = Departure.of(self._comm, worker, parcels, header)
        self._leaving.append((departure, Sent(worker, start_s, header[0], header[1], departure.size_bytes)))

    def settle(self) -> list[Sent]:
        """The answers that have left since the last poll."""
        gone, staying = [], []
        for departure, sent in self._leaving:
            (gone if departure.left() else staying).append((departure, sent))
        self._leaving = staying
        return [sent for _, sent in gone if sent]


def apart(flat: np.ndarray, variables) -> tuple[list[np.ndarray], np.ndarray]:
    """Sparse variables as tables, and dense ones one after another."""
    ends = np.cumsum([variable.size for variable in variables])[:-1]
    cut = list(zip(variables, np.split(flat, ends), strict=True))
    sparse = [values.reshape(len(values) // (v.size // v.shape[0]), -1) for v, values in cut if v.rows]
    dense = [values for v, values in cut if not v.rows]
    return sparse, np.concatenate(dense) if dense else flat[:0]
