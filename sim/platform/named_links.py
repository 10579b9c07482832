"""Links that are known by name alone stand at the median of what published runs reached.

One place makes a link of a job from a link of a cluster (Scenario.network and Scenario.local). Both worlds, bounds of plans, notes and
intervals therefore see one rate.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, NamedTuple

from sim.base.interval import of_normal

if TYPE_CHECKING:
    from sim.platform.cluster import Link


class Spread(NamedTuple):
    """A factor's law: mean and standard deviation of its logarithm."""

    mean: float
    deviation: float

    def at(self, side: int) -> float:
        """The factor's bound, nine times in ten: the lower one at -1, the upper one at 1."""
        return exp(self.mean + side * of_normal(self.deviation))


# Times as long as a byte takes at the rate that a link is called by, between hosts and within one. The median is the point of an answer.
# Of experiments.extrapolation.links.factors (5 clusters) and one_host.links (3, all of PCIe), as `experiments.run evidence` prints them.
LINK = Spread(0.49, 1.09)
LOCAL = Spread(2.47, 0.82)
# Of links within a host that no PCIe is as fast as: of one_host.direct (A100, H100, H200, B200 and GB200), which it prints, too.
DIRECT = Spread(0.16, 0.18)
FASTEST_PCIE = 50e9  # bytes a second


def within(link: Link) -> Spread:
    """The law of a link within a host, by the rate that it is called by."""
    return DIRECT if link.bandwidth_bytes_per_s > FASTEST_PCIE else LOCAL


def reached(link: Link, known: Spread) -> Link:
    """The link with its bytes as slow as the median; as it is if its rate is not a name.

    What a port passes in the long run (`sustained_bytes_per_s`) is a limit that is enforced, and stays.

    Args:
        known: times as long as a byte takes.
    """
    times = median(link, known)
    return link if times == 1 else link.model_copy(update={"bandwidth_bytes_per_s": link.bandwidth_bytes_per_s / times})


def median(link: Link, known: Spread) -> float:
    """Times as long as a byte is taken to take as at the rate that the link says."""
    return exp(known.mean) if link.named else 1.0
