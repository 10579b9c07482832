"""The messages that have come to a rank and that nobody has taken."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from itertools import islice
from typing import Any

from sim.language.pieces import Message


class Mail:
    """The boxes of one rank, one for each of its texts, in order of arrival.

    Args:
        delays: seconds for which each message is held back, by the count of those that have come.

    Attributes:
        waiting: the task that waits for a message of a rank or of a group, by the number of its text.
        coming: messages under way, by sender and number of the text.
        heard: senders of messages that were taken, or lost to newer ones, with the number of the text.
    """

    def __init__(self, world, delays: Any):
        self._world, self._delays, self._came = world, delays, 0
        self._boxes = defaultdict[int, list[Message]](list)
        self.waiting = dict[int, tuple[Any, int | range]]()
        self._is_over = False
        self.coming = Counter[tuple[int, int]]()
        self.heard = set[tuple[int, int]]()

    def put(self, number: int, message: Message, key: tuple[int, int, int]) -> None:
        """A message has come; it may be held back before it is there."""
        delay_s, self._came = self._delays[self._came], self._came + 1
        if delay_s > 0:
            self._world.at(self._world.time_s + delay_s, key, partial(self._put, number, message))
        else:
            self._put(number, message)

    def _put(self, number: int, message: Message) -> None:
        """A message is there: the text that waits for it goes on, or it is kept."""
        self.coming[message.sender, number] -= 1
        self._boxes[number].append(message)
        if self._is_over:
            self._world.taken(message)
            if number == 0:
                self._world.links.lose(message)
        if number in self.waiting:
            task, frm = self.waiting[number]
            if message.sender in among(frm):
                task.go()

    def end(self) -> None:
        """The main text has ended: what nobody takes counts as taken."""
        self._is_over = True
        for box in self._boxes.values():
            for message in box:
                self._world.taken(message)
        for message in self._boxes[0]:
            self._world.links.lose(message)

    def take(self, number: int, frm: int | range, newest: bool = False) -> Message | None:
        """The first message of a rank or a group, or the newest, in which case those before are lost; None if there is none."""
        box, group = self._boxes[number], among(frm)
        places = (k for k, message in enumerate(box) if message.sender in group)
        chosen = list(places if newest else islice(places, 1))
        taken = [box[k] for k in chosen]
        for k in reversed(chosen):
            del box[k]
        self.heard.update((message.sender, number) for message in taken)
        for message in taken[:-1]:
            self._world.taken(message)
            self._world.links.lose(message)
        return taken[-1] if taken else None

    @property
    def unheard(self) -> set[int]:
        """Ranks whose messages have come to a text of this rank that has taken none of them."""
        left = {(message.sender, number) for number, box in self._boxes.items() for message in box}
        return {sender for sender, _ in left - self.heard}


def among(frm: int | range) -> range:
    """One rank, or a group, as a group."""
    return range(frm, frm + 1) if isinstance(frm, int) else frm
