"""Data parallelism whose allreduce sums within groups first, and then between them."""

from dataclasses import dataclass

from sim.language.collectives import allgather, allreduce, reduce_scatter
from sim.language.text import Text, require
from sim.language.verbs import compute, of_host


@dataclass(frozen=True)
class Hierarchical(Text):
    """A reduce-scatter within each group of ranks, an allreduce of each part between groups, an allgather within.

    Jia et al., "Highly scalable deep learning training system", 2018 (arXiv 1807.11205), section 3.2; in two dimensions as in Mikami
    et al., 2018 (arXiv 1811.05233).

    Args:
        group: ranks of a group, which follow one another: those of a host, or of a rack; 0: as fits, see verbs.of_host.
    """

    group: int = 0

    name, in_step = "hierarchical", True

    def check(self, job):
        require(job.ranks % (self.group or 1) == 0, "--set group", self.group, f"a divisor of the {job.ranks} ranks")

    def __call__(self, me):
        group = self.group or of_host(me)
        place = me.rank % group
        inner = me.workers[me.rank - place : me.rank - place + group]
        outer = me.workers[place::group]
        for _ in me.steps():
            yield from me.sleep()
            yield from compute(me)
            yield from reduce_scatter(me, me.gradient, inner)
            yield from allreduce(me, me.gradient.part(place, group), outer)
            yield from allgather(me, me.gradient, inner)
            yield from me.update()
