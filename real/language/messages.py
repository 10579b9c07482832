"""Messages between ranks: Isend and Iprobe by the main thread alone, a header of three numbers before the values."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np
from mpi4py import MPI

from real.worlds.polling import arrived
from sim.language.pieces import Handle, Message

HEADER = np.dtype([("step", np.int64), ("samples", np.float64), ("items", np.int64)])
VALUES = np.dtype(np.float64)
ENDED, LAST, TEXTS = range(
    3
)  # tags: the main text of the sender has ended; nothing of it follows; the first of those of texts


class Messages:
    """What one rank sends and receives.

    Args:
        comm: all ranks of the job.
    """

    def __init__(self, comm):
        self._comm = comm
        self._leaving: list[tuple[MPI.Request, np.ndarray, Handle | None]] = []
        self._inboxes: dict[int, deque[Message]] = defaultdict(deque)  # by the number of the text
        self.ended: set[int] = set()  # ranks whose main texts have ended
        self._silent: set[int] = set()  # those of which nothing follows

    def post(self, values: np.ndarray, to: int, text: int, step: int, samples: float, taken: bool) -> Handle:
        """Begin to send a copy of values to the text of that number at a rank; it may be done when the rank receives it."""
        buffer = np.empty(HEADER.itemsize + values.nbytes, np.uint8)
        buffer[: HEADER.itemsize].view(HEADER)[0] = step, samples, values.size
        buffer[HEADER.itemsize :].view(VALUES)[:] = values
        handle = Handle()
        send = self._comm.Issend if taken else self._comm.Isend
        self._leaving.append((send(buffer, to, TEXTS + text), buffer, handle))
        return handle

    def tell(self, tag: int) -> None:
        """Say ENDED or LAST to all other ranks."""
        for rank in range(self._comm.size):
            if rank != self._comm.rank:
                nothing = np.empty(0, np.uint8)
                self._leaving.append((self._comm.Isend(nothing, rank, tag), nothing, None))

    @property
    def are_over(self) -> bool:
        """Whether all that was posted has left, and nothing can come any more."""
        return not self._leaving and len(self._silent) == self._comm.size - 1

    @property
    def all_ended(self) -> bool:
        """Whether the main texts of all other ranks have ended."""
        return len(self.ended) == self._comm.size - 1

    def move(self, now_s: float) -> bool:
        """Receive what has come, and note what has left; whether there was anything."""
        moved, status = False, MPI.Status()
        while arrived(self._comm, MPI.ANY_SOURCE, MPI.ANY_TAG, status):
            moved = True
            self._receive(status)
        staying = []
        for request, buffer, handle in self._leaving:
            if not request.Test():
                staying.append((request, buffer, handle))
            elif handle is not None:
                handle.done_s = now_s
        moved, self._leaving = moved or len(staying) < len(self._leaving), staying
        return moved

    def _receive(self, status: MPI.Status) -> None:
        sender, tag = status.source, status.tag
        buffer = np.empty(status.Get_count(MPI.BYTE), np.uint8)
        self._comm.Recv(buffer, sender, tag)
        if tag < TEXTS:
            (self.ended if tag == ENDED else self._silent).add(sender)
            return
        step, samples, items = buffer[: HEADER.itemsize].view(HEADER)[0]
        values = buffer[HEADER.itemsize :].view(VALUES)
        self._inboxes[tag - TEXTS].append(Message(sender, int(step), int(items), float(samples), values))

    def has(self, text: int, frm: range) -> bool:
        """Whether there is a message of one of these ranks."""
        return any(message.sender in frm for message in self._inboxes[text])

    def take(self, text: int, frm: range, newest: bool) -> Message:
        """The first message of these ranks that came, or the last; those before are then lost."""
        found = [message for message in self._inboxes[text] if message.sender in frm]
        taken = found if newest else found[:1]
        self._inboxes[text] = deque(
            message for message in self._inboxes[text] if all(message is not one for one in taken)
        )
        return taken[-1]
