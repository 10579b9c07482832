"""Waiting in the MPI world, real and simulated: a rank polls, and sleeps in between, longer and longer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

SHORTEST_S, LONGEST_S = 50e-6, 400e-6  # between polls, each of which takes a core from another rank
SHARE = 20  # a sleep is so small a part of the time waited
# The stages of a wait. Sleeps of a stage are nearly equal: one sleep, and the length of the stage, seconds.
STAGES = ((50e-6, 1e-3), (71e-6, 1e-3), (141e-6, 2e-3), (283e-6, 4e-3), (400e-6, math.inf))


def pause_s(waited_s: float, longest_s: float = LONGEST_S) -> float:
    """Seconds of the next sleep after waiting for `waited_s`: a twentieth of that, within bounds."""
    return min(max(SHORTEST_S, waited_s / SHARE), longest_s)


def late_s(waited_s: float, oversleep_s: float, share: float = 0.5) -> float:
    """Seconds from a message's arrival to the next poll, after waiting for `waited_s`: a `share` (0 to 1) of a sleep, half on average."""
    return share * (pause_s(waited_s) + oversleep_s)


def polls_per_s(stage: int, oversleep_s: float) -> float:
    """Polls a second in a stage of a wait."""
    return 1 / (STAGES[stage][0] + oversleep_s)


def polls(waited_s: np.ndarray, oversleep_s: float) -> np.ndarray:
    """Polls in waits of these lengths, not rounded; shape (waits,).

    Args:
        oversleep_s: by which a sleep is longer than asked.
    """
    import numpy as np  # here, so that texts load without arrays

    count, begins_s = np.zeros(len(waited_s)), 0.0
    for stage, (_, lasts_s) in enumerate(STAGES):
        count += np.clip(waited_s - begins_s, 0.0, lasts_s) * polls_per_s(stage, oversleep_s)
        begins_s += lasts_s
    return count
