"""Libraries that sum gradients: what they take besides messages, and the algorithm that each takes for an allreduce."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby

UNKNOWN = "unknown"  # nobody said which algorithm: simulations try several (sim.answers.candidates)
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

# Open MPI 5, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c, ompi_coll_tuned_allreduce_intra_dec_fixed, for sums: for fewer
# ranks than the first number, (bytes below which, algorithm) in order. Its numbers are 2 nonoverlapping (a reduction and a
# broadcast: here the tree), 3 recursive doubling, 4 ring, 5 segmented ring (here the ring), 6 Rabenseifner. On several hosts of
# several ranks each it asks its module `han` first, which is not modelled.
EVER = math.inf
RULES = (
    (4, ((8, 4), (4096, 3), (8192, 4), (16384, 3), (65536, 4), (262144, 5), (EVER, 6))),
    (8, ((16, 4), (8192, 3), (EVER, 6))),
    (16, ((8192, 3), (EVER, 6))),
    (32, ((64, 5), (4096, 3), (EVER, 6))),
    (64, ((128, 5), (EVER, 6))),
    (128, ((262144, 3), (EVER, 6))),
    (256, ((131072, 2), (262144, 3), (EVER, 6))),
    (512, ((4096, 2), (EVER, 6))),
    (2048, ((2048, 2), (16384, 3), (EVER, 6))),
    (4096, ((2048, 2), (4096, 5), (16384, 3), (EVER, 6))),
    (EVER, ((2048, 2), (16384, 5), (32768, 3), (EVER, 6))),
)
NAMES = {2: "tree", 3: "recursive-doubling", 4: "ring", 5: "ring", 6: "halving-doubling"}


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


def choices(ranks: int) -> list[tuple[float, str]]:
    """The bytes below which Open MPI's module `tuned` takes each algorithm, in order."""
    rules = next(rules for below, rules in RULES if ranks < below)
    named = groupby(rules, lambda rule: NAMES[rule[1]])
    return [(max(below for below, _ in alike), name) for name, alike in named]


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
        auto: the algorithm that it takes where a text names none (`chosen`); auto is Open MPI's choice by size and ranks.
    """

    call: Line = Line()
    copy: Line = Line()
    agree_s: float = 0.0
    negotiate_s: float = 0.0
    auto: str = "auto"
