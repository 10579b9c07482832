"""How a rank of the MPI world waits, for real and simulated: it looks whether it still must, and naps, longer and longer."""

from __future__ import annotations

import math

import numpy as np

SHORTEST_S, LONGEST_S = 50e-6, 400e-6  # between looks, each of which takes the core from somebody
SHARE = 20  # a nap is so small a part of what was waited
# The stages of a wait, in each of which naps are much alike: one of them, and how long the stage lasts, seconds.
STAGES = ((50e-6, 1e-3), (71e-6, 1e-3), (141e-6, 2e-3), (283e-6, 4e-3), (400e-6, math.inf))


def nap_s(waited_s: float, longest_s: float = LONGEST_S) -> float:
    """Seconds of the next nap of who has waited so long: a twentieth of that, within bounds."""
    return min(max(SHORTEST_S, waited_s / SHARE), longest_s)


def late_s(waited_s: float, oversleep_s: float, share: float = 0.5) -> float:
    """Seconds after which who has waited so long sees what has come: the rest of a nap, a `share` (0 to 1) of it; its mean without."""
    return share * (nap_s(waited_s) + oversleep_s)


def looks_per_s(stage: int, oversleep_s: float) -> float:
    """How many looks there are a second in a stage of a wait."""
    return 1 / (STAGES[stage][0] + oversleep_s)


def looks(waited_s: np.ndarray, oversleep_s: float) -> np.ndarray:
    """How many looks there are in waits that long, not rounded; shape (waits,).

    Args:
        oversleep_s: by which a nap is longer than it was asked to be.
    """
    count, begins_s = np.zeros(len(waited_s)), 0.0
    for stage, (_, lasts_s) in enumerate(STAGES):
        count += np.clip(waited_s - begins_s, 0.0, lasts_s) * looks_per_s(stage, oversleep_s)
        begins_s += lasts_s
    return count
