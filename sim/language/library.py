"""What a library that sums takes besides its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """Seconds of a core for some items, where no number of them takes less than `least_s`."""

    base_s: float = 0.0
    item_s: float = 0.0
    least_s: float = 0.0

    def seconds(self, items: int) -> float:
        """Of so many items."""
        return max(self.least_s, self.base_s + self.item_s * items)


@dataclass(frozen=True)
class Library:
    """The costs of a job's sums.

    Args:
        call: of each call.
        copy: of copying gradients into a buffer, or out of it.
        agree_s: seconds without a core before a call, while its ranks agree on it.
        negotiate_s: seconds of a core for agreeing, where there are several ranks.
        auto: the algorithm that it takes where a text names none (sim.collectives.libraries); auto is Open MPI's choice by size and ranks.
        sums: what sums a piece over all workers where a text names none, in a real run: in its place no messages of ours.
    """

    call: Line = Line()
    copy: Line = Line()
    agree_s: float = 0.0
    negotiate_s: float = 0.0
    auto: str = "auto"
    sums: Callable | None = None
