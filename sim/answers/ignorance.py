"""A model's ignorance about unmeasured jobs: its error grows with each doubling beyond the measured sizes.

The law was learned on published tables: rows were held out, predicted from the others, and its parameters are those whose intervals score
best (T. Gneiting and A. E. Raftery, Strictly Proper Scoring Rules, Prediction, and Estimation, 2007, section 6.2), each source weighing as
one. A source's intervals come from the other sources alone when they are judged. What a table of sizes tells of larger ones is
sim.answers.growth's. `python -m experiments.run evidence` prints the parameters and that test.
"""

from __future__ import annotations

from math import exp, hypot, log2
from typing import NamedTuple

from sim.base.interval import of_normal
from sim.platform.named_links import Spread


class Law(NamedTuple):
    """Standard deviations of the logarithm of a step's seconds, as it may take longer; variances grow with doublings as of a random walk.

    Args:
        step: of a step at sizes that were measured, where smaller sizes told all others.
        by_change: so many times what they did not tell, besides.
        unseen: what they are taken not to have told where that is not known.
        faster: times as much may a step take less: steps take longer than predicted more often.
    """

    step: float
    by_change: float = 0.0
    unseen: float = 0.0
    faster: float = 1.0

    def deviation(self, doublings: float, changed: float | None = None) -> float:
        """The deviation of the logarithm of a step.

        Args:
            doublings: of hosts or ranks beyond those that were measured.
            changed: root mean square of the logarithm by which measured sizes differed from what smaller ones told; None if not known.
        """
        return self._measured(changed) * (1 + doublings) ** 0.5

    def common(self, doublings: float, changed: float | None = None) -> float:
        """The part of that deviation that cancels between two jobs: all growth. At sizes that were measured each is off by itself."""
        return self._measured(changed) * doublings**0.5

    def factor(self, doublings: float, changed: float | None = None) -> float:
        """The factor by which a step may take longer, nine times in ten."""
        return exp(of_normal(self.deviation(doublings, changed)))

    def _measured(self, changed: float | None) -> float:
        return hypot(self.step, self.by_change * (self.unseen if changed is None else changed))


def doublings(asked: float, known: float) -> float:
    """The number of doublings from `known` to `asked`; 0 if `known` is more."""
    return max(0.0, log2(asked / known))


# Of all sources in experiments/figures/sources.toml but those that are held out, as `evidence` prints it.
LAW = Law(step=0.055, by_change=0.78, unseen=0.142, faster=0.26)
# Deviation of the logarithm of a step for each doubling, where all that is known is a smaller job's step.
UNCHANGED = 0.26
# Times as long as a step of one GPU, and what its links at their medians add, where several GPUs share a host, besides what is not known
# of links; as `evidence` prints it.
HOST = Spread(0.02, 0.28)
CORE = Spread(0.0, 1.48)  # times as long as a nominal core computes
