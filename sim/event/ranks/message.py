"""Messages of the event world, and the inboxes that keep them until a rank takes them."""

from __future__ import annotations

import math
from typing import Any

from sim.model.sparse_rows import HEADER_BYTES


class Message:
    """One message on its way: a letter (sim.verbs.me.Letter), and when it moves.

    Args:
        sizes_bytes: of the messages that this one stands for, which travel together.
        size_bytes: of all of them.
        minibatches: how many a gradient sums.
        begin_s, end_s: when its bytes move into the receiver's port; None within a host, where the receiver copies.
        held_s: delay of its last byte by TCP's window, beyond the time at which its port could have sent it.
        departure: of a message within a host, and of a gradient whose sender goes on, fires when its receiver has taken it.
        asked, landed: of a message that leaves when its receiver asks for it; fire when the control message has come, and when all
            bytes have.
        asked_s: when that comes; infinity until it is known.
        carried: its contents, in a world that has any (real.learning.world).
    """

    # A message stores only values that differ from these.
    begin_s = end_s = departure = asked = landed = carried = None  # type: Any
    held_s = 0.0
    asked_s = math.inf
    note = last = False
    variable = ready = 0

    def __init__(
        self,
        sender: int,
        version: int,
        samples: int,
        sizes_bytes: tuple[int, ...],
        size_bytes: int,
        minibatches: int = 1,
    ):
        self.sender, self.version, self.samples = sender, version, samples
        self.sizes_bytes, self.size_bytes, self.minibatches = sizes_bytes, size_bytes, minibatches

    def kept(self) -> Message:
        """A message that nothing overwrites: this one."""
        return self


class Control(Message):
    """A message that carries neither a gradient nor parameters: a header alone, or several that travel together."""

    note = True


HEADER = (HEADER_BYTES,), HEADER_BYTES  # bytes of the messages that travel together, and of all of them


class Inbox:
    """Messages in order of arrival, and the thread that waits for one."""

    __slots__ = ("_leave", "_messages", "_peers", "_wake")

    def __init__(self):
        self._messages: list[Message] = []
        self._peers: Any = ()
        self._wake: Any = None
        self._leave: Any = None  # called with each message, once nobody takes them

    def end(self, leave) -> None:
        """Call `leave` with all messages that are kept or come: nobody takes them."""
        self._leave, left = leave, self._messages
        self._messages = []
        for message in left:
            leave(message)

    def put(self, message: Message) -> None:
        """Deliver a message: a waiting thread takes it, or it is kept."""
        wake = self._wake
        if self._leave is not None:
            self._leave(message)
        elif wake is not None and message.sender in self._peers:
            self._wake = None
            wake(message)
        else:
            self._messages.append(message)

    def take(self, peers) -> Message | None:
        """The first kept message from one of `peers`."""
        for index, message in enumerate(self._messages):
            if message.sender in peers:
                return self._messages.pop(index)
        return None

    def await_from(self, peers, wake) -> None:
        """Call `wake` with the next message that comes from one of `peers`."""
        self._peers, self._wake = peers, wake

    def give_up(self, wake) -> bool:
        """Stop waiting with `wake`; whether it still waited."""
        waits = self._wake is wake
        if waits:
            self._wake = None
        return waits
