"""Variables that travel one by one: parameters from servers as they are made, gradients to servers as they are ready."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from real.training.trainee import Trainee
from real.worlds.layers import Layers
from real.worlds.mpi import Rank
from real.worlds.parcels import LETTER, TAG, Letter, Parcel, Sent
from real.worlds.polling import receive
from sim.model.sizes import HEADER_BYTES, ITEM_BYTES


class VariablesRank(Rank):
    """`me` where each variable, or part of one, has a number and travels by itself.

    A header's first number, which is the step in other messages, is the variable's here.
    """

    def _begin_messages(self, hosts) -> None:
        """Make a message for each variable."""
        placed = self.scenario.traffic.placed
        self.variables, self._holders = range(len(placed)), [server for _, server in placed]
        self.held = [number for number in self.variables if self._holders[number] == self.rank]
        ends = [0, *accumulate(variable.size for variable, _ in placed)]
        self._pieces = [slice(*bounds) for bounds in pairwise(ends)]  # of all parameters, one after another
        self._at, self._posted, self._answers = hosts, None, Leaving(self.comm)
        self._out = {} if self.serves else {n: Parcel(piece.stop - piece.start) for n, piece in enumerate(self._pieces)}
        self._came: set[int] = set()  # variables whose parameters for this step have arrived
        self._left = dict.fromkeys(self.held, 0)  # versions of each that have left
        self._added = dict.fromkeys(self.held, 0)  # samples in the sum of each

    def _initially_held(self, trainee: Trainee) -> np.ndarray:
        """All parameters: a server has its own ones, a worker those that have come."""
        return trainee.initial().copy() if self.serves else np.zeros_like(trainee.initial())

    @property
    def parameters(self) -> np.ndarray:
        """A server's own parameters, one variable after another; all parameters at a worker."""
        return np.concatenate([self._held[self._pieces[n]] for n in self.held]) if self.serves else self._held

    def _begin_layers(self) -> Layers:
        """The buffer that gradients are put into and sent from."""
        ends = [0, *accumulate(variable.size for variable in self.scenario.workload.variables)]
        within = [
            [
                (number, slice(piece.start - start, piece.stop - start))
                for number, piece in enumerate(self._pieces)
                if start <= piece.start < stop
            ]
            for start, stop in pairwise(ends)
        ]
        into = {number: parcel.payload for number, parcel in self._out.items()}
        return Layers(self, within, into, self._holders)

    # ---- messages

    def _send_variable(self, number: int, peers: list[int]) -> None:
        """Send a gradient to the server that holds its variable; or parameters for the next step, except after the last one."""
        if not self.serves:
            self._answers.post(self._holders[number], self._out[number], self._header(number, self.step), self.now_s)
            return
        version = self._left[number]
        self._left[number] = version + 1
        if version < self.scenario.rounds:
            parcel = Parcel.of(values=self._held[self._pieces[number]])
            for peer in peers:
                self._answers.post(peer, parcel, self._header(number, version), self.now_s)

    def _header(self, number: int, step: int) -> tuple[int, ...]:
        return number, step, self.samples, LETTER

    def receive(self, frm, until_s=float("inf"), variable: int | None = None):
        """Receive the next letter; or the parameters of a variable, before which those of others may come."""
        if variable is None:
            return (yield from super().receive(frm, until_s))
        letter = None
        while variable not in self._came:
            letter = yield from super().receive(frm)
        self._came.remove(variable)
        return letter

    def _receive(self, sender: int, size_bytes: int) -> Letter:
        """Receive a gradient, or parameters, which are copied to their place."""
        parcel = Parcel((size_bytes - HEADER_BYTES) // ITEM_BYTES)
        receive(self.comm, parcel.buffer, sender, TAG, self.is_here(sender))
        number, *about = map(int, parcel.header)
        if not self.serves:
            self._held[self._pieces[number]] = parcel.payload
            self._came.add(number)
        return Letter(sender, *about, size_bytes, parcel.payload, number)

    # ---- work

    def steps(self):
        """Yield the number of each step."""
        for step in super().steps():
            self.version = step
            yield step

    def _add_up(self, letter: Letter) -> int:
        """Add a variable's gradient; of all that a server holds, the first counts the samples."""
        number = letter.variable
        total = self._sum[self._pieces[number]]
        np.add(total, letter.payload, out=total) if self._added[number] else np.copyto(total, letter.payload)
        self._added[number] += letter.samples
        return letter.samples if number == self.held[0] else 0

    def _update_some(self, variables) -> None:
        """Make new parameters of some variables."""
        for number in variables:
            start_s, piece = self.now_s, self._pieces[number]
            self.trainee.optimiser.apply(number, self._held[piece], self._sum[piece], self._added[number])
            self._added[number] = 0
            self.record("reduce", start_s, bytes=HEADER_BYTES + ITEM_BYTES * (piece.stop - piece.start))

    def _apply(self) -> int:
        """Update the variables that have not been updated yet in this step."""
        left = [number for number in self.held if self._added[number]]
        for number in left:
            piece = self._pieces[number]
            self.trainee.optimiser.apply(number, self._held[piece], self._sum[piece], self._added[number])
            self._added[number] = 0
        return sum(self.scenario.traffic.updated_bytes(self.rank))


class Leaving:
    """Variables on their way; as real.worlds.parcels.Answers, but that each message has its own buffer."""

    def __init__(self, comm):
        self._comm, self._leaving = comm, []

    @property
    def pending(self) -> bool:
        """Whether any variable has not left."""
        return bool(self._leaving)

    def post(self, peer: int, parcel: Parcel, header: tuple[int, ...], start_s: float) -> None:
        """Begin to send one variable; the header names its step."""
        parcel.header[:] = header
        sent = Sent(peer, start_s, header[1], header[1], parcel.buffer.nbytes)
        self._leaving.append((self._comm.Isend(parcel.buffer, peer, TAG), parcel, sent))

    def settle(self) -> list[Sent]:
        """The variables that have left since the last call."""
        gone, staying = [], []
        for one in self._leaving:
            (gone if one[0].Test() else staying).append(one)
        self._leaving = staying
        return [sent for *_, sent in gone]
