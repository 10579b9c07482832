"""A core that only one rank needs: work is arithmetic on the rank's clock."""

from __future__ import annotations

from sim.model.costs import WARMING, side_by_side
from sim.recording.traces import NOBODY

ROUND_OFF_S = 1e-12
DONE = ()


class OwnCore:
    """The core of one rank that shares it with nobody.

    Args:
        rank: sim.event.ranks.rank.Rank.
    """

    __slots__ = ("_cores", "_rank", "_speed")

    def __init__(self, rank):
        self._rank, self._speed = rank, rank.speed
        self._cores = rank.scenario.machines[rank.machine.index].cores

    def work(self, activity: str, seconds: float, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Work for some seconds of a core."""
        rank = self._rank
        start_s = rank.clock_s
        if seconds > ROUND_OFF_S:
            rank.clock_s = start_s + seconds / self._speed
            rank.applied_s += seconds
        if rank.rows:
            rank.record(activity, start_s, samples, size_bytes, peer, version)
        return DONE

    def works(self, works):
        """One after another: (activity, seconds, samples, bytes); seconds may be known only when it begins."""
        rank = self._rank
        for activity, seconds, samples, size_bytes in works:
            start_s = rank.clock_s
            takes_s = seconds() if callable(seconds) else seconds
            if takes_s > ROUND_OFF_S:
                rank.clock_s = start_s + takes_s / self._speed
                rank.computed_s += takes_s
            if activity in WARMING:
                rank.warm()
            if rank.rows:
                rank.record(activity, start_s, samples, size_bytes)
        return DONE

    def work_on(self, parts_s: list[float], activity: str, samples=0, size_bytes=0, peer=NOBODY, version=None):
        """Do parts, each on a core of its own, or one after another where there is one core."""
        return self.work(activity, side_by_side(parts_s, self._cores), samples, size_bytes, peer, version)

    def spend(self, seconds: float, computing: bool = False):
        """Work for some seconds of a core; nothing is recorded."""
        if seconds > ROUND_OFF_S:
            self._rank.clock_s += seconds / self._speed
            self._rank.computed_s += seconds
        return DONE

    def rest(self, seconds: float):
        """Sleep for some seconds."""
        self._rank.clock_s += seconds
        self._rank.computed_s += seconds
        return DONE

    def rest_until(self, time_s: float):
        """Sleep until a time; threads that share the rank's clock sleep too."""
        self._rank.clock_s = max(self._rank.clock_s, time_s)
        return DONE

    def fall_apart(self) -> None:
        """Drop all references to others, so that memory is free at once."""
        self._rank = None
