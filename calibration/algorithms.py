"""The algorithm of a log that does not name it: candidates are weighed by their errors on several sizes of a cluster.

One number of ranks does not determine it: every algorithm is then a straight line of seconds over bytes, on a link of its own. A
profile therefore keeps each candidate's link beside its weight, and simulations of other numbers of ranks differ by that ignorance
(sim.answers.candidates).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.language import library

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.platform.cluster import Cluster

FLOOR = 0.02  # standard deviation of the logarithm of a time: no algorithm explains times better than its model is
MOST_RANKS = 512  # beyond which the ring alone is tried


def prior(hosts: int, each: int) -> dict[str, float]:
    """How likely NCCL's candidates are, by name, on hosts with so many GPUs each, before any row; at MOST_RANKS at most."""
    found = library.prior(library.NCCL, np.inf, each == 1)
    return found if hosts * each <= MOST_RANKS else {"ring": 1.0}


def weights(off: Mapping[str, float], told: int, before: Mapping[str, float]) -> dict[str, float]:
    """The weights of candidates, which sum to 1: how likely each was before, times the likelihood of normal errors of unknown variance.

    Args:
        off: root mean square of the logarithm of predicted over measured, by candidate.
        told: independent numbers that were measured, less those that each candidate fits to them; at 0 or below they tell nothing.
        before: how likely each was before.
    """
    logs = {name: np.log(before[name]) - max(0, told) / 2 * np.log(error**2 + FLOOR**2) for name, error in off.items()}
    most = max(logs.values(), default=0.0)
    likely = {name: float(np.exp(log - most)) for name, log in logs.items()}
    return {name: value / sum(likely.values()) for name, value in likely.items()}


def note(found: Mapping[str, float], told: int) -> str:
    """The candidates as text."""
    if told < 1:
        return "too few sizes of a cluster to tell which algorithm sums: --set algorithm=unknown simulates all, each on its own link"
    listed = ", ".join(f"{name} {weight:.2f}" for name, weight in sorted(found.items(), key=lambda one: -one[1]))
    return f"algorithms weighed by how well they explain the times: {listed}; --set algorithm=unknown simulates their mixture"


def likeliest(made: Cluster) -> str:
    """The algorithm that explains the times best that a profile was fitted to."""
    known = made.provenance.algorithms if made.provenance else {}
    return max(known, key=lambda name: known[name].weight, default="ring")
