"""What workers and parameter servers need of one another in the vector world, whatever they do between their messages."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sim.vector.exchanges import Unsettled
from sim.vector.ring import Lockstep
from sim.vector.servers.barrier_round import Sizes

NOT_ALL = (
    "the text does not pull from all servers, compute, and push to all, whose every update is of all workers' gradients"
)


class Serving(Lockstep):
    """All workers, or all servers; clocks have the shape (replications, ranks)."""

    pulled = False  # parameters have been asked for
    _asked_s: np.ndarray | None = None  # where ranks were then
    _computes = False  # and a gradient is to be computed on them
    requests_s: np.ndarray  # when requests for parameters reach servers

    def _has_computed(self, servers) -> bool:
        """Whether workers have asked all servers, which these are, and computed a gradient on the answers.

        Work between the answers and the gradient, but for its computing, would be taken for work before the answers.
        """
        all_asked = self.pulled and list(servers) == list(self.world.master.ranks)
        if not (all_asked and self._computes) or self._asked_s is None:
            return False
        return np.array_equal(self.now_s, self._asked_s)

    @cached_property
    def notes(self) -> list[np.ndarray]:
        """When notes reach this group, that it has not taken yet."""
        return []

    @cached_property
    def _sizes(self) -> Sizes:
        return Sizes.of(self.world.scenario)

    def _until_notes(self):
        while not self.notes:
            yield

    def _settled(self, function, *given):
        try:
            return function(*given)
        except Unsettled:
            raise self.world.refuse("which message passes a port first cannot be told") from None

    def _only(self, does: bool) -> None:
        if not (does and self.world.scenario.protocol.has_servers):
            raise self.world.refuse(NOT_ALL)

    def _wait_each(self, waits) -> None:
        """Waits of every rank, one after another."""
        from_s, to_s = waits
        for turn in range(from_s.shape[2]):
            self._wait(from_s[:, :, turn], to_s[:, :, turn])
