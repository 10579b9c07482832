"""A model's ignorance about unmeasured jobs: its error grows with each doubling beyond the measured sizes.

Its parameters were those of an earlier law whose intervals scored best on published tables (T. Gneiting and A. E. Raftery, Strictly Proper
Scoring Rules, Prediction, and Estimation, 2007, section 6.2). `python -m experiments.run growth` finds none near them that is surely
better; no row tells `step`. What a table of sizes tells of larger ones is sim.answers.growth's.
"""

from __future__ import annotations

from math import log2
from typing import NamedTuple

from sim.platform.named_links import Spread


class Law(NamedTuple):
    """Standard deviations of the logarithm of a step's seconds, as it may take longer; variances grow with doublings as of a random walk.

    Args:
        step: of a step at sizes that were measured.
        elsewhere: of a step at others, before any doubling: how much steps of published tables changed is in it.
        faster: times as much may a step take less: steps take longer than predicted more often.
        unchanged: of a step for each doubling besides, where links are free and nothing changes.
    """

    step: float
    elsewhere: float
    faster: float
    unchanged: float

    def deviation(self, doublings: float | None = None) -> float:
        """The deviation of the logarithm of a step.

        Args:
            doublings: of hosts or ranks beyond those that were measured; None at sizes that were.
        """
        return self.step if doublings is None else self.elsewhere * (1 + doublings) ** 0.5

    def common(self, doublings: float | None = None) -> float:
        """The part of that deviation that cancels between two jobs: all growth. At sizes that were measured each is off by itself."""
        return 0.0 if doublings is None else self.elsewhere * doublings**0.5


def doublings(asked: float, known: float) -> float:
    """The number of doublings from `known` to `asked`; 0 if `known` is more."""
    return max(0.0, log2(asked / known))


LAW = Law(step=0.055, elsewhere=0.1238, faster=0.26, unchanged=0.26)
# Times as long as a step of one GPU, and what its links at their medians add, where several GPUs share a host, besides what is not known
# of links; as `evidence` prints it.
HOST = Spread(-0.01, 0.26)
CORE = Spread(0.0, 1.48)  # times as long as a nominal core computes
