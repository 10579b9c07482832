"""How busy the parts of a job are: its workers, its servers and the ports of its hosts, after the warm-up."""

from __future__ import annotations

from collections import Counter

from sim.answers.bottleneck import Arrivals


class Meter:
    """Counts for one run.

    Args:
        ranks: sim.event.ranks.rank.Rank, of all ranks.
        machines: their hosts.
        warmups: numbers of updates after which measuring may turn out to begin.
    """

    def __init__(self, ranks, machines, warmups: set[int]):
        self._ranks, self._machines = ranks, machines
        self.missed: list[int] = []  # updates that each gradient had missed that rank 0 added
        self.warmups = warmups
        self._before = {0: (0.0, self._busy_s(), 0)}

    def begin(self, updates: int, now_s: float) -> None:
        """Keep the figures of now, when rank 0 has made so many updates: the measured time may begin here."""
        self._before[updates] = now_s, self._busy_s(), len(self.missed)

    def arrivals(self, warmup: int, end_s: float) -> Arrivals:
        """The figures of the time since so many updates."""
        start_s, before, gradients = self._before[warmup]
        found = {name: max(now - then for now, then in zip(seconds, before[name], strict=True)) if seconds else 0.0
                 for name, seconds in self._busy_s().items()}  # fmt: skip
        # Work that is taken at once is counted whole, though a part of the first and the last lies outside the measured time.
        busy = {name: min(1.0, s / (end_s - start_s)) for name, s in found.items()}
        return Arrivals(dict(Counter(self.missed[gradients:])), busy)

    def _busy_s(self) -> dict[str, list[float]]:
        """Seconds since the start of each worker, port and server."""
        serving = {rank.machine for rank in self._ranks if rank.serves}
        ports: dict[bool, list[float]] = {True: [], False: []}
        for machine in self._machines:
            ports[machine in serving].append(machine.busy_s)
        return {
            "compute": [rank.computed_s for rank in self._ranks if not rank.serves],
            "worker port": ports[False],
            "server port": ports[True],
            "server apply": [rank.applied_s for rank in self._ranks if rank.serves],
        }
