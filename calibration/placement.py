"""Which host each rank of some traces sat on."""

from __future__ import annotations

from dataclasses import dataclass

from sim.traces import Trace


@dataclass(frozen=True)
class Placement:
    """Hosts by name, in order of their first rank; the cores of each; the host of each rank, an index."""

    names: tuple[str, ...]
    cores: tuple[int, ...]
    of_rank: tuple[int, ...]

    @property
    def shared(self) -> bool:
        """Whether any host had more ranks than one."""
        return len(self.names) < len(self.of_rank)


def of_traces(traces: list[Trace], cores: int | None = None) -> Placement:
    """The placement of the run with the most ranks, which real runs record; smaller runs used its first ranks.

    Args:
        cores: of the machine that was probed, on which ranks of traces that do not say are taken to have sat; None for a
            host of its own for each.
    """
    largest = max(traces, key=lambda trace: trace.header.ranks)
    recorded, ranks = largest.header.details.get("hosts"), largest.header.ranks
    if recorded:
        found = dict(recorded)  # a host's name to its cores
        names = tuple(found)
        return Placement(names, tuple(found.values()), tuple(names.index(name) for name, _ in recorded))
    if cores:
        return Placement(("localhost",), (cores,), (0,) * ranks)
    return Placement(tuple(f"host{rank}" for rank in range(ranks)), (1,) * ranks, tuple(range(ranks)))
