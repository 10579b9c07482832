"""The verb `allgather` for real: each worker hands the rows that its minibatch touched to all others."""

from __future__ import annotations

import numpy as np

from real.recording.parameters import Piece
from real.training.row_optimiser import Table
from real.training.row_slices import Slices
from real.training.sparse_gradients import SparseGradient, look_up
from real.training.trainee import Trainee
from real.worlds.mpi import Rank
from real.worlds.parcels import TAG, put
from real.worlds.polling import arrived, poll, receive
from real.worlds.rows import apart
from sim.collectives import allgather
from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.model.sparse_rows import Load


class GatheringRank(Rank):
    """`me` of a worker that has all parameters: sparse variables as tables, whose rows are gathered, and dense ones, which are summed."""

    def _initially_held(self, trainee: Trainee) -> np.ndarray:
        """The dense variables, which this rank holds."""
        sparse, dense = apart(trainee.initial(), self.scenario.workload.variables)
        self._tables = [Table(values, trainee.row_optimiser) for values in sparse]
        self._rows: list[Slices] = []  # this worker's gradient of each table
        return dense

    @property
    def parameters(self) -> np.ndarray:
        """All parameters, in the order of the workload's variables."""
        flat = np.empty(self.scenario.workload.parameters, np.float32)
        places, dense = apart(np.arange(flat.size), self.scenario.workload.variables)
        flat[dense] = self._held
        for place, table in zip(places, self._tables, strict=True):
            flat[place] = table.all()
        return flat

    def pieces(self) -> list[Piece]:
        """The pieces of the parameters that this rank reports: the first worker reports all."""
        return [] if self.rank else [(slice(None), self.parameters)]

    # ---- work

    def _input(self):
        """Fetch a minibatch, and find the rows that it reads."""
        start_s = self.now_s
        x, y = self.trainee.next_batch()
        self._read, x = look_up(x)
        self.record("input", start_s, samples=len(x))
        return x, y

    def _gradient(self, x: np.ndarray, y: np.ndarray) -> SparseGradient:
        read = [table.read(self._read) for table in self._tables]
        return self.trainee.gradients.by_rows(self._held, read, x, y)

    def _put(self, gradient: SparseGradient, adds: bool = False) -> None:
        """Dense gradients are received where they are added up."""
        if self._sum is not None:
            put(self._sum, gradient.sum, adds)
        before, self._rows = self._rows, [Slices(self._read, values) for values in gradient.rows]
        if adds:
            self._rows = [own + slices for own, slices in zip(before, self._rows, strict=True)]

    def _packed_bytes(self) -> int:
        return HEADER_BYTES + ITEM_BYTES * self.scenario.summed_items + sum(map(_bytes, self._rows))

    def _apply(self) -> int:
        """Update the dense variables, and the rows that any gradient touched."""
        size_bytes = 0
        if self.summed:
            self.trainee.optimiser.apply(self._held, self._sum, self.samples)
            size_bytes = self.scenario.traffic.updated_bytes(self.rank)[0]
        widths = [of.values.shape[1] for of in self._rows]
        touched = [width * table.update(self.samples) for width, table in zip(widths, self._tables, strict=True)]
        self.trainee.row_optimiser.end_update()
        return size_bytes + sum(Load(0, numbers).answer_bytes for numbers in touched)

    # ---- the verb

    def allgather(self):
        """Gather the rows that any worker touched, at each worker. They are added in the order of workers, so that all sums are equal."""
        for table, own in zip(self._tables, self._rows, strict=True):
            blocks = {self.rank: own}
            turns = [slice(worker, worker + 1) for worker in self.workers]
            for exchange in allgather(self.rank, self.workers, turns):
                sent, taken = exchange.sent.start, exchange.taken.start
                blocks[taken] = self._swap(blocks[sent], exchange.to, exchange.source)
            for worker in self.workers:
                start_s = self.now_s
                table.add(blocks[worker])
                if worker != self.rank:
                    self.record("reduce", start_s, bytes=_bytes(blocks[worker]))
        return
        yield

    def _swap(self, block: Slices, to: int, source: int) -> Slices:
        """Send one worker's rows while receiving another's."""
        buffer = np.concatenate([block.rows.view(np.uint8), np.ascontiguousarray(block.values).ravel().view(np.uint8)])
        start_s, request = self.now_s, self.comm.Isend(buffer, to, TAG)
        taken = self._take(source, block.values.shape[1])
        poll(request.Test, f"rank {to} to receive")
        self.record("send", start_s, bytes=buffer.nbytes, peer=to)
        return taken

    def _take(self, source: int, width: int) -> Slices:
        from mpi4py import MPI

        status, start_s = MPI.Status(), self.now_s
        poll(lambda: arrived(self.comm, source, TAG, status), f"rank {source}")
        moving_s, buffer = self.now_s, np.empty(status.Get_count(MPI.BYTE), np.uint8)
        receive(self.comm, buffer, source, TAG, self.is_here(source))
        self.waited(start_s, moving_s, peer=source)
        self.record("receive", moving_s, bytes=buffer.nbytes, peer=source)
        return Slices.of(buffer, width)


def _bytes(of: Slices) -> int:
    return of.rows.nbytes + of.values.nbytes
