"""Random numbers for one purpose of one rank, by index, as cheap as a list."""

from __future__ import annotations

from sim.laws.randomness import Stream

FIRST = 128  # as many are drawn at first


class Drawn:
    """Draws of a stream.

    Args:
        stream: of the draws; only as many are made as are asked for, in growing blocks.
        factor: on each of them.
        least: as many are made at first, if that is fewer than usual.
    """

    __slots__ = ("_factor", "_least", "_stream", "known", "sole")

    def __init__(self, stream: Stream, factor: float = 1.0, least: int = FIRST):
        self._stream, self._factor, self._least = stream, factor, min(FIRST, least)
        self.known: list[float] = []  # the first draws, as far as they were asked for; none if they are all alike
        sole = stream.sole
        self.sole = None if sole is None else sole * factor  # the value of every draw, if they are all alike

    def __getitem__(self, index: int) -> float:
        if self.sole is not None:
            return self.sole
        if index >= len(self.known):
            known = self._stream.first(max(self._least, 2 * index))
            self.known = (self._factor * known).tolist() if self._factor != 1.0 else known.tolist()
        return self.known[index]
