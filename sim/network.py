"""Ports and messages: between hosts LogGP with queues at both ports, within a host a copy by the receiver's core."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import simpy


class Port:
    """Serves one message after another, in the order in which they come."""

    def __init__(self):
        self.free_s, self.earned_s = 0.0, 0.0

    def take(self, now_s: float, occupancy_s: float, credit_s: float = 0.0) -> tuple[float, float]:
        """When the port begins and ends serving a message that comes now; it ends no sooner than its credit is earned."""
        self.earned_s += credit_s
        begin_s = max(now_s, self.free_s, self.earned_s - occupancy_s)
        self.free_s = begin_s + occupancy_s
        return begin_s, self.free_s


@dataclass(eq=False)
class Message:
    """One message on its way.

    Args:
        begin_s, end_s: when its bytes move into the receiver's port; None within a host, where the receiver copies.
        held_s: how much later than its port could send it its last byte leaves, for TCP's window.
        copied: fires when a receiver on the same host has copied it.
        asked, landed: of a message that leaves when its receiver asks for it; fire when the word has come, and when all bytes have.
        asked_s: when the word comes; infinity until that is known.
        note: it is a header alone.
        last: it says that training is over.
        variable: which one it carries, where they travel one by one.
        ready: how many gradients the sender says are ready, where ranks negotiate.
        minibatches: how many a gradient sums.
        parts: bytes of the messages that this one stands for, which travel together; itself alone if none are given.
    """

    sender: int
    version: int
    samples: int
    size_bytes: int
    begin_s: float | None = None
    end_s: float | None = None
    held_s: float = 0.0
    copied: simpy.Event | None = None
    asked: simpy.Event | None = None
    asked_s: float = math.inf
    landed: simpy.Event | None = None
    note: bool = False
    last: bool = False
    variable: int = 0
    ready: int = 0
    minibatches: int = 1
    parts: tuple[int, ...] = ()

    def __post_init__(self):
        self.parts = self.parts or (self.size_bytes,)


class Awaited(simpy.Event):
    """What a rank waits for that needs a message from one of `peers`: its value is that message, or None."""

    def __init__(self, env: simpy.Environment, peers):
        super().__init__(env)
        self.peers = peers

    def comes(self, message: Message) -> None:
        """The rank goes on once the last byte of a message is here; now, where another event will tell it."""
        self._ok, self._value = True, message
        self.env.schedule(self, delay=0.0 if message.end_s is None else max(0.0, message.end_s - self.env.now))


class Inbox:
    """Messages in order of arrival, and the rank that waits for one."""

    def __init__(self, env: simpy.Environment):
        self._env, self._messages, self._awaited = env, [], None

    def put(self, message: Message) -> None:
        """The first byte of a message is here; it is the waiting rank's, or lies here."""
        awaited = self._awaited
        if awaited is not None and message.sender in awaited.peers:
            self._awaited = None
            awaited.comes(message)
        else:
            self._messages.append(message)

    def take(self, peers) -> Message | None:
        """The first message from one of `peers` that lies here."""
        for index, message in enumerate(self._messages):
            if message.sender in peers:
                return self._messages.pop(index)
        return None

    def awaited(self, peers, until_s: float = math.inf) -> Awaited:
        """An event whose value is the next message that comes from one of `peers`, or None if there is none by `until_s`."""
        awaited = self._awaited = Awaited(self._env, peers)
        if until_s < math.inf:
            self._env.timeout(until_s - self._env.now).callbacks.append(partial(self._give_up, awaited))
        return awaited

    def _give_up(self, awaited: Awaited, _timeout: simpy.Event) -> None:
        """Time is over for who waits for this event, if somebody still does."""
        if awaited is self._awaited:
            self._awaited = None
            awaited.succeed()
