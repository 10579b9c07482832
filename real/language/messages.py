"""Messages between ranks: Isend and Iprobe by the main thread alone, a header of four numbers before the values."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from sim.language.pieces import Message

HEADER = np.dtype([("step", np.int64), ("version", np.int64), ("samples", np.float64), ("items", np.int64)])
# Tags: the main text of the sender has ended; nothing of it follows; the first of those of texts.
ENDED, LAST, TEXTS = range(3)


@dataclass(slots=True)
class Letter(Message):
    """A message that was received.

    Args:
        version: of the weights that it carries, or on which its gradient was computed.
        began_s, came_s: when its bytes began to come, and when they were here.
    """

    version: int = 0
    began_s: float = 0.0
    came_s: float = 0.0


class Coming(NamedTuple):
    """A message of which not all may be here."""

    request: Any
    buffer: np.ndarray
    sender: int
    tag: int
    began_s: float


class Alone:
    """The communicator of a process without others."""

    rank, size = 0, 1

    def gather(self, mine):
        """What all ranks have."""
        return [mine]


class Messages:
    """What one rank sends and receives.

    Args:
        comm: all ranks of the job.
        clock: seconds since the run's common start.
        kind: of the values, a NumPy type.
        here: whether each rank is on this one's host, from where a message is copied at once; others travel while this rank goes on.
        delays: seconds for which each message is held back, by the count of those that have come.
    """

    def __init__(self, comm, clock: Callable[[], float], kind: type, here: Sequence[bool], delays: Any):
        self._comm, self._clock, self._kind, self._here, self._delays = comm, clock, np.dtype(kind), here, delays
        self._came = 0
        self._held = list[tuple[float, int, int, Letter]]()  # held back: until when, which, for which text
        self._leaving: list[tuple[Any, np.ndarray, Callable[[float], None] | None]] = []
        self._coming: list[Coming] = []
        self._inboxes: dict[int, deque[Letter]] = defaultdict(deque)  # by the number of the text
        self.ended: set[int] = set()  # ranks whose main texts have ended
        self._silent: set[int] = set()  # those of which nothing follows

    def post(
        self, values: np.ndarray, to: int, text: int, head: tuple, left: Callable[[float], None], taken: bool
    ) -> None:
        """Begin to send a copy of values to the text of that number at a rank.

        Args:
            head: step, version, samples, and items of the piece that is sent, of which rows alone may travel.
            left: called with the time when they have left, or been received.
            taken: whether they have left when they are received.
        """
        buffer = np.empty(HEADER.itemsize + values.nbytes, np.uint8)
        buffer[: HEADER.itemsize].view(HEADER)[0] = head
        buffer[HEADER.itemsize :].view(self._kind)[:] = values
        send = self._comm.Issend if taken else self._comm.Isend
        self._leaving.append((send(buffer, to, TEXTS + text), buffer, left))

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
    def are_under_way(self) -> bool:
        """Whether messages leave or come that have not yet."""
        return bool(self._leaving or self._coming or self._held)

    @property
    def all_ended(self) -> bool:
        """Whether the main texts of all other ranks have ended."""
        return len(self.ended) == self._comm.size - 1

    def move(self) -> bool:
        """Receive the next message that has come, and note what has left; whether there was anything.

        Whatever asks MPI in vain gives the core away, to all others that want it: it is asked no more often than needed. Open MPI's
        first look only takes a message off the wire; to ask what has left does that, too.
        """
        if self._comm.size == 1:
            return False
        looks = 1 if self._leaving else 2
        moved = self._settle_leaving() | self._settle_coming()
        return any(self._next() for _ in range(looks)) | self._let_in() | moved

    def drain(self) -> None:
        """Receive all messages that have come."""
        while self._comm.size > 1 and self._next():
            pass
        self._let_in()

    def _next(self) -> bool:
        """Receive the next message, or begin to; whether one has come."""
        from mpi4py.MPI import ANY_SOURCE, ANY_TAG, BYTE, Status

        status = Status()
        came = self._comm.Iprobe(ANY_SOURCE, ANY_TAG, status)
        if came:
            self._begin(status.source, status.tag, status.Get_count(BYTE))
        return came

    def _begin(self, sender: int, tag: int, size_bytes: int) -> None:
        began_s, buffer = self._clock(), np.empty(size_bytes, np.uint8)
        if self._here[sender]:
            self._comm.Recv(buffer, sender, tag)
            self._receive(Coming(None, buffer, sender, tag, began_s))
        else:
            self._coming.append(Coming(self._comm.Irecv(buffer, sender, tag), buffer, sender, tag, began_s))

    def _settle_coming(self) -> bool:
        """Take in what is here, of each sender in the order in which it was sent."""
        staying, late = [], set()
        for one in self._coming:
            if one.sender in late or not one.request.Test():
                late.add(one.sender)
                staying.append(one)
            else:
                self._receive(one)
        settled, self._coming = len(staying) < len(self._coming), staying
        return settled

    def _let_in(self) -> bool:
        """Hand over what has been held back for long enough."""
        held = len(self._held)
        while self._held and self._held[0][0] <= self._clock():
            *_, text, message = heappop(self._held)
            self._inboxes[text].append(message)
        return len(self._held) < held

    def _settle_leaving(self) -> bool:
        requests = [request for request, *_ in self._leaving]
        settled = {*((requests and requests[0].Testsome(requests)) or ())}
        for k in settled:
            *_, left = self._leaving[k]
            if left is not None:
                left(self._clock())
        self._leaving = [one for k, one in enumerate(self._leaving) if k not in settled]
        return bool(settled)

    def _receive(self, of: Coming) -> None:
        if of.tag < TEXTS:
            (self.ended if of.tag == ENDED else self._silent).add(of.sender)
            return
        step, version, samples, items = of.buffer[: HEADER.itemsize].view(HEADER)[0]
        values = of.buffer[HEADER.itemsize :].view(self._kind)
        found = Letter(of.sender, int(step), int(items), float(samples), values)
        found.version, found.began_s, found.came_s = int(version), of.began_s, self._clock()
        delay_s, self._came = self._delays[self._came], self._came + 1
        heappush(self._held, (found.came_s + delay_s if delay_s > 0 else 0.0, self._came, of.tag - TEXTS, found))

    def has(self, text: int, frm: range) -> bool:
        """Whether there is a message of one of these ranks."""
        return any(message.sender in frm for message in self._inboxes[text])

    def take(self, text: int, frm: range, newest: bool) -> Letter:
        """The first message of these ranks that came, or the last; those before are then lost."""
        found = [message for message in self._inboxes[text] if message.sender in frm]
        taken = found if newest else found[:1]
        self._inboxes[text] = deque(
            message for message in self._inboxes[text] if all(message is not one for one in taken)
        )
        return taken[-1]
