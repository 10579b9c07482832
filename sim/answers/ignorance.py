"""A model's ignorance about unmeasured jobs: its error grows with each doubling beyond the measured sizes.

The law was learned on published tables: rows were held out, predicted from the others, and their errors make its parameters. What all rows
of a source have in common is a draw for each source. A source's intervals come from the other sources alone when they are judged.
`python -m experiments.run evidence` prints the parameters and that test.
"""

from __future__ import annotations

from math import exp, log2
from typing import NamedTuple

from sim.answers.interval import of_normal


class Law(NamedTuple):
    """Standard deviations of the logarithm of a step's seconds, of which messages and waiting are a share.

    Args:
        step: of a step, at sizes that were measured.
        step_growth: of a step, for each doubling beyond them.
        messages: of a step that is messages alone, at sizes that were measured.
        growth: of such a step, for each doubling beyond them.
        own: the part of `messages` that each job has for itself; the rest, and all growth, is common to the jobs of one cluster.
    """

    step: float
    step_growth: float
    messages: float
    growth: float
    own: float = 0.0

    def deviation(self, doublings: float, share: float) -> float:
        """The deviation of the logarithm of a step. Variance is in proportion to the share, because small shares are known worse.

        Args:
            doublings: of hosts or ranks beyond those that were measured.
            share: of the step that is not computing, from 0 to 1.
        """
        of_messages = self.messages**2 + (self.growth * doublings) ** 2
        return (self.step**2 + (self.step_growth * doublings) ** 2 + share * of_messages) ** 0.5

    def common(self, doublings: float, share: float) -> tuple[float, float, float]:
        """The common part of that deviation, which cancels between two jobs: of messages, of their growth, of the growth of steps."""
        messages = max(0.0, self.messages**2 - self.own**2) ** 0.5
        return share**0.5 * messages, share**0.5 * self.growth * doublings, self.step_growth * doublings

    def factor(self, doublings: float, share: float) -> float:
        """The 90 % limit of a step's deviation."""
        return exp(of_normal(self.deviation(doublings, share)))


def doublings(asked: float, known: float) -> float:
    """The number of doublings from `known` to `asked`; 0 if `known` is more."""
    return max(0.0, log2(asked / known))


class Spread(NamedTuple):
    """A factor's law: mean and standard deviation of its logarithm."""

    mean: float
    deviation: float

    def at(self, side: int) -> float:
        """The factor's bound, nine times in ten: the lower one at -1, the upper one at 1."""
        return exp(self.mean + side * of_normal(self.deviation))


# Of all sources in experiments/figures/sources.toml but those that are held out, as `evidence` prints it.
LAW = Law(step=0.025, step_growth=0.075, messages=0.087, growth=0.295, own=0.087)
# Deviation of the logarithm of a step for each doubling, where all that is known is a smaller job's step.
UNCHANGED = 0.26
# Times as long as a byte takes at the rate that a link is called by, between hosts and within one. The median is the point of an answer
# (sim.platform.named_links). Of experiments.extrapolation.links.factors (5 clusters) and one_host.links (3), as `evidence` prints them.
LINK = Spread(0.49, 1.09)
LOCAL = Spread(2.53, 0.72)
# Times as long as a step of one GPU, and what its links at their medians add, where several GPUs share a host, besides what is not known
# of links; as `evidence` prints it.
HOST = Spread(0.02, 0.28)
CORE = Spread(0.0, 1.48)  # times as long as a nominal core computes
