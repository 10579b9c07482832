"""One direction of a host's port, as LogGP has it."""

from __future__ import annotations


class Port:
    """Serves one message after another, in the order in which they come; `busy_s` are the seconds for which they take it."""

    __slots__ = ("busy_s", "earned_s", "free_s")

    def __init__(self):
        self.free_s = self.earned_s = self.busy_s = 0.0

    @property
    def taken_s(self) -> float:
        """The seconds in which it serves its messages, or earns their credit, if that is more."""
        return max(self.busy_s, self.earned_s)

    def take(self, now_s: float, occupancy_s: float, credit_s: float = 0.0) -> tuple[float, float]:
        """When the port begins and ends serving a message that comes now; it ends no sooner than its credit is earned."""
        self.earned_s += credit_s
        self.busy_s += occupancy_s
        begin_s = max(now_s, self.free_s, self.earned_s - occupancy_s)
        self.free_s = begin_s + occupancy_s
        return begin_s, self.free_s
