"""The libraries that sum gradients, and the algorithms that each takes for an allreduce."""

from __future__ import annotations

NCCL, GLOO, MPI = "NCCL", "Gloo", "Open MPI"
SHORT_BYTES = 2048  # to which MPICH takes recursive doubling, and Rabenseifner's algorithm beyond (Thakur et al. 2005, section 4.5)

# How likely each algorithm is where nobody said which one sums. NCCL (src/graph/tuning.cc) has rings, trees whose pieces follow one
# another, which take the place of a ring whose rounds take longer, and no more between hosts of Ethernet. Horovod lays its hierarchies
# over it if it is told to. Gloo (gloo/allreduce.cc) has a ring; Horovod and PyTorch called its halving and doubling before that.
_PRIOR: dict[str, dict[str, float]] = {
    NCCL: {"ring": 0.9, "hierarchical": 0.1},
    GLOO: {"ring": 0.9, "halving-doubling": 0.1},
    MPI: {"halving-doubling": 0.5, "ring": 0.4, "hierarchical": 0.1},
}
_OF_SHORT = {"recursive-doubling": 0.7, "tree": 0.2, "ring": 0.1}  # MPI's


def prior(library: str, size_bytes: float, apart: bool) -> dict[str, float]:
    """How likely each algorithm of a library is before anything was measured; they sum to 1, the likeliest first.

    Args:
        library: NCCL, GLOO or MPI.
        size_bytes: of the vector that a call sums.
        apart: whether each rank has a host of its own, where a hierarchy is a ring.
    """
    known = _OF_SHORT if library == MPI and size_bytes <= SHORT_BYTES else _PRIOR[library]
    able = {name: weight for name, weight in known.items() if not (apart and name == "hierarchical")}
    return {name: weight / sum(able.values()) for name, weight in able.items()}


def chosen(library: str, algorithm: str) -> str:
    """What a library takes for `auto`: NCCL and Gloo a ring, whatever the number of ranks; auto stays MPI's choice by size and ranks."""
    return "ring" if algorithm == "auto" and library != MPI else algorithm
