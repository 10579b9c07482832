"""The algorithm that Open MPI's module `tuned` takes for an allreduce, by its size and the number of ranks.

On several hosts of several ranks each Open MPI 5 asks its module `han` first, which is not modelled.
"""

from __future__ import annotations

import math

# Open MPI 5, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c, ompi_coll_tuned_allreduce_intra_dec_fixed, for sums: for fewer
# ranks than the first number, (bytes below which, algorithm) in order. Its numbers are 2 nonoverlapping (a reduction and a
# broadcast: here the tree), 3 recursive doubling, 4 ring, 5 segmented ring (here the ring), 6 Rabenseifner.
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


def tuned(ranks: int, size_bytes: int) -> str:
    """The name of the algorithm."""
    by_size = next(found for below, found in RULES if ranks < below)
    return NAMES[next(number for below, number in by_size if size_bytes < below)]
