"""The view of a text in the vector world: a `me` that stands for all ranks of a group, in every replication, at once.

A text takes one way there, so it may not ask what differs between those ranks. A verb that could distinguish them is refused.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from sim.base.errors import WrongSetting
from sim.protocols.base import VERBS

LINEAR = (np.add, np.subtract, np.multiply, np.true_divide, np.negative)
LOOKED = "the text reads me.now_s, of which each rank has its own"


class Refused(WrongSetting):
    """The vector world cannot run a scenario exactly; the event world can, or says what is wrong."""

    def __init__(self, reason: str):
        super().__init__("--world", "vector", f"event: {reason}")


class Together:
    """`me` of the vector world; peers and the number of ranks look as in the other worlds.

    Args:
        group: sim.vector.group.Group, whose verbs these are.
    """

    def __init__(self, group):
        world = group.world
        self._group, self.scenario, self.master = group, world.scenario, 0
        self.book = group.book  # of a worker, of which it holds whether training is over
        self.servers, self.workers = world.master.ranks, world.workers.ranks
        self.steps, self.sleep, self.compute = group.steps, group.sleep, group.compute
        self.gather, self.update, self.evaluate = group.gather, group.update, group.evaluate
        self.send, self.receive, self.take_up = group.send, group.receive, group.take_up
        self.allreduce, self.allgather = group.allreduce, group.allgather
        self.beside, self.compute_by_layer = group.beside, group.compute_by_layer
        self.reduce_in_cycles = group.reduce_in_cycles
        self.fetch, self.pull, self.push, self.take_first = group.fetch, group.pull, group.push, group.take_first
        self.hear, self.let_go = group.hear, group.let_go

    @property
    def now_s(self) -> Any:
        """The clocks of the group's ranks: Each, which a text may use as a number."""
        return Each(self._group.now_s, self._group.world.refuse)

    @property
    def rank(self) -> int:
        """The rank, of a group of one."""
        if len(self._group.ranks) > 1:
            raise self._group.world.refuse("the text uses me.rank")
        return self._group.ranks[0]

    def compute_until(self, deadline_s, partitions):
        """As the group's."""
        deadline_s = deadline_s.values if isinstance(deadline_s, Each) else deadline_s
        return self._group.compute_until(deadline_s, partitions)

    def refuse_verb(self, name: str):
        """The exception to raise where a text uses a verb that is not done for all ranks at once."""
        return self._group.world.refuse(f"the text uses {name}")

    def __getattr__(self, name: str):
        if name not in VERBS:
            raise AttributeError(name)
        raise self._group.world.refuse(f"the text uses me.{name}")


class Each(NDArrayOperatorsMixin):
    """A number of which each rank of each replication has its own: a text may add to it and scale it, but not read it.

    Args:
        values: shape (replications, ranks).
        refuse: makes the exception that is raised where a text asks for more.
    """

    def __init__(self, values: np.ndarray, refuse):
        self.values, self._refuse = values, refuse

    def __array_ufunc__(self, ufunc, method, *inputs, **_out):
        if ufunc not in LINEAR or method != "__call__" or not all(isinstance(x, Each | Real) for x in inputs):
            raise self._refuse(LOOKED)
        return Each(ufunc(*(x.values if isinstance(x, Each) else x for x in inputs)), self._refuse)

    def __hash__(self):
        raise self._refuse(LOOKED)

    def _look(self, *_given, **_named):
        raise self._refuse(LOOKED)

    __bool__ = __float__ = __int__ = __complex__ = __index__ = _look
    __round__ = __trunc__ = __floor__ = __ceil__ = _look
    __iter__ = __len__ = __getitem__ = __contains__ = __array__ = __str__ = __format__ = _look
