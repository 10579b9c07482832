"""The messages that have come to a rank and that nobody has taken."""

from __future__ import annotations

from collections import defaultdict, deque

from sim.language.pieces import Message


class Mail:
    """The boxes of one rank, one for each of its texts, in order of arrival.

    Attributes:
        waiting: the task that waits for a message of a rank or of a group, by the number of its text.
        coming: messages under way, by sender and number of the text, in the order in which they were posted.
    """

    def __init__(self):
        self._boxes = defaultdict[int, list[Message]](list)
        self.waiting = {}
        self.coming = defaultdict[tuple[int, int], deque](deque)

    def put(self, number: int, message: Message) -> None:
        """A message has come: the text that waits for it goes on, or it is kept."""
        self._boxes[number].append(message)
        if number in self.waiting:
            task, frm = self.waiting[number]
            if message.sender in among(frm):
                task.go()

    def take(self, number: int, frm: int | range, newest: bool = False) -> Message | None:
        """The first message of a rank or a group, or the newest, in which case those before are lost; None if there is none."""
        box, group = self._boxes[number], among(frm)
        found = next((k for k, message in enumerate(box) if message.sender in group), None)
        if found is None:
            return None
        first = box.pop(found)
        if not newest:
            return first
        last = next((message for message in reversed(box) if message.sender in group), first)
        box[:] = [message for message in box if message.sender not in group]
        return last


def among(frm: int | range) -> range:
    """One rank, or a group, as a group."""
    return range(frm, frm + 1) if isinstance(frm, int) else frm
