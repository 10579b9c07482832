"""The nouns of the language: a piece of a named vector, a message that was received, and a handle of something under way."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Piece:
    """Some items of a named vector of a rank, side by side.

    Args:
        vector: its name: weights, gradient, an activation's, a slope's, or one that the text has made.
        start, stop: the first item, and the one behind the last.
    """

    vector: str
    start: int
    stop: int

    @property
    def items(self) -> int:
        """The number of items."""
        return self.stop - self.start

    def __getitem__(self, part: slice) -> Self:
        """Part of the piece, counted from its own first item; slices as Python has them, without a stride."""
        first, stop, _ = part.indices(self.items)
        return type(self)(self.vector, self.start + first, self.start + max(first, stop))

    def part(self, k: int, n: int) -> Self:
        """The k-th of n parts, which differ by one item at most."""
        return type(self)(self.vector, self.start + self.items * k // n, self.start + self.items * (k + 1) // n)


@dataclass(slots=True)
class Message:
    """A message that was received.

    Args:
        sender: its rank.
        step: in which it was sent.
        items: in its piece.
        samples: in the gradient that the sender had when it sent; 0 of other vectors.
        values: its items' values, shape (items,), where a world has values.
        share: of the piece's items that have travelled.
        taken: a handle that is done when the receiver has taken the message; None: nobody waits for that.
        flow: of a message that was announced, by which a world asks for its bytes; None of one that is there.
    """

    sender: int
    step: int
    items: int
    samples: float = 0
    values: Any = None
    share: float = 1.0
    taken: Handle | None = None
    flow: Any = None

    @property
    def is_awaited(self) -> bool:
        """Whether its sender may wait until it is taken."""
        return self.taken is not None and self.taken.done_s == math.inf


@dataclass(eq=False, slots=True)
class Handle:
    """A posted message, done when it has left its sender, within a host when its receiver has copied it; or a started text.

    Args:
        done_s: seconds of the clock at which it is done; infinity as long as nobody knows.
        text: the text's task, of a world's own kind; None of a message.
        waiting: tasks to look again when it is done.
    """

    done_s: float = math.inf
    text: Any = None
    waiting: list = field(default_factory=list)
