"""The host that each rank of some traces was on."""

from __future__ import annotations

from dataclasses import dataclass

from sim.recording.traces import Trace


@dataclass(frozen=True)
class Placement:
    """Hosts by name, in order of their first rank; the cores of each; the host of each rank, an index.

    Args:
        shared_cores, poll_s, oversleep_s: see sim.platform.cluster.Cluster.
        gpus: of each host, if GPUs compute; else 0.
    """

    names: tuple[str, ...]
    cores: tuple[int, ...]
    of_rank: tuple[int, ...]
    shared_cores: int | None = None
    poll_s: float = 0.0
    oversleep_s: float = 0.0
    gpus: int = 0

    @property
    def shared(self) -> bool:
        """Whether ranks had cores in common."""
        return bool(self.shared_cores) or len(self.names) < len(self.of_rank)

    def pools(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The cores of each machine, and the machine of each rank, an index: a host, or the one that all hosts are on."""
        if self.shared_cores:
            return (self.shared_cores,), (0,) * len(self.of_rank)
        return self.cores, self.of_rank


def hosts_of(trace: Trace) -> set[str]:
    """The names of the hosts that a run's ranks sat on, as far as it says."""
    return {name for name, _ in trace.header.hosts}


def of_traces(traces: list[Trace], cores: int | None = None, shared_cores: int | None = None) -> Placement:
    """The placement of the run with the most ranks, which real runs record; smaller runs used its first ranks.

    Args:
        cores: of the machine that was probed, on which ranks of traces that do not say are taken to have sat; None for a
            host of its own for each.
        shared_cores: of the one machine that has all hosts on it.
    """
    largest = max(traces, key=lambda trace: trace.header.ranks)
    recorded, ranks = largest.header.hosts, largest.header.ranks
    if recorded:
        found = dict(recorded)  # a host's name to its cores
        names = tuple(found)
        of_rank = tuple(names.index(name) for name, _ in recorded)
        return Placement(names, tuple(found.values()), of_rank, shared_cores, gpus=largest.header.gpus)
    if cores:
        return Placement(("localhost",), (cores,), (0,) * ranks)
    return Placement(tuple(f"host{rank}" for rank in range(ranks)), (1,) * ranks, tuple(range(ranks)), shared_cores)
