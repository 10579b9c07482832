"""When a rank is idle."""

from __future__ import annotations


class Busy:
    """The times in which one rank computes, waits for a core, sleeps as a straggler, or moves bytes; it is idle in all others."""

    def __init__(self, world):
        self._world, self._works, self._since_s = world, 0, 0.0
        self._times = list[list[float]]()  # from, to

    def begin(self, works: int = 1) -> None:
        """A text of the rank begins to work or to sleep; 0: other threads, which leave it idle."""
        if not self._works:
            self._since_s = self._world.time_s
        self._works += works

    def end(self, works: int = 1) -> None:
        """It ends."""
        self._works -= works
        if works and not self._works:
            self.moves(self._since_s, self._world.time_s)

    def moves(self, from_s: float, to_s: float) -> None:
        """Bytes leave, or come, in this time."""
        last = self._times[-1] if self._times else None
        if last and last[0] <= from_s <= last[1]:
            last[1] = max(last[1], to_s)
        else:
            self._times.append([from_s, to_s])

    def idle_s(self, from_s: float, to_s: float) -> float:
        """Idle seconds between two times."""
        idle_s, covered_s = 0.0, from_s
        going = [[self._since_s, self._world.time_s]] if self._works else []
        for begin_s, end_s in sorted([*self._times, *going]):
            idle_s += max(0.0, min(begin_s, to_s) - covered_s)
            covered_s = max(covered_s, min(end_s, to_s))
        return idle_s + max(0.0, to_s - covered_s)
