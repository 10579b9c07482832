"""A law of one's own: `python -m sim.run --stragglers "own:Triangular(most=60ms)"` in this folder."""

from trainsim.base.ranges import Seconds
from trainsim.laws import Law


class Triangular(Law):
    """Triangular between 0 and `most`.

    Args:
        most: the longest sleep.
    """

    most: Seconds

    @property
    def mean(self):
        """The expected sleep, seconds."""
        return self.most / 2

    def draw(self, rng, size):
        """Independent draws."""
        return rng.triangular(0, self.most / 2, self.most, size)
