"""The verbs of the vector world by which ranks sum gradients while they compute: Horovod's background thread, in every replication."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sim.vector.calls import TooMany
from sim.vector.cycles.background import Background
from sim.vector.cycles.late_waits import LateWaits
from sim.vector.exchanges import Unsettled
from sim.vector.ring import Lockstep
from sim.verbs.fusion import layer_shares

ALONE = "the text computes by layer, or sums in cycles, and does nothing beside"
ROUND_OFF_S = 1e-12  # of work, that the event world leaves out


class Half:
    """One of the two texts that go on beside each other. It is not run by itself.

    Args:
        refuse: makes the exception that is raised where a text does so.
        settings: of the verb.
    """

    def __init__(self, refuse, *settings):
        self._refuse, self.settings = refuse, settings

    def __iter__(self):
        raise self._refuse(ALONE)


class ByLayer(Half):
    """compute_by_layer(me, order)."""


class InCycles(Half):
    """reduce_in_cycles(me, algorithm, fusion_bytes, cycle_s, by_name)."""


class Overlap(Lockstep):
    """Verbs of a group of workers without a master; clocks have the shape (replications, ranks)."""

    def compute_by_layer(self, order: str) -> ByLayer:
        """The computing half."""
        return ByLayer(self.world.refuse, order)

    def reduce_in_cycles(self, algorithm: str, fusion_bytes: int, cycle_s: float, by_name: bool = False) -> InCycles:
        """The background thread."""
        return InCycles(self.world.refuse, algorithm, fusion_bytes, cycle_s, by_name)

    def beside(self, computing, communicating):
        """Compute by layer, and sum in cycles what is ready everywhere.

        Raises:
            Refused: the text does something else at once, or the order of two things cannot be told.
        """
        if not (isinstance(computing, ByLayer) and isinstance(communicating, InCycles)):
            raise self.world.refuse("the text does other things at once than compute by layer and sum in cycles")
        begun_s = self.now_s
        ready_s = self._compute_layers(*computing.settings)
        try:
            ended_s = self._sum_in_cycles(begun_s, ready_s, *communicating.settings)
        except Unsettled:
            raise self.world.refuse("which message passes a port first cannot be told") from None
        except TooMany as error:
            raise self.world.refuse(str(error)) from None
        self.now_s = np.maximum(self.now_s, ended_s)
        self._all_samples()
        yield from self._did()

    def _compute_layers(self, order: str) -> np.ndarray:
        """When each gradient is ready, in the order in which they become so; shape (gradients, replications, ranks)."""
        layers_s, shares = self._layers(order)
        if all_count(shares, layers_s):
            ready_s = np.multiply.outer(np.cumsum(shares)[1:], layers_s / self.speeds)
            ready_s += self.now_s
        else:
            spent_s = np.multiply.outer(shares, layers_s)
            spent_s = np.where(spent_s > ROUND_OFF_S, spent_s / self.speeds, 0.0)
            spent_s[0] += self.now_s
            ready_s = np.cumsum(spent_s, axis=0)[1:]
        self.now_s = self._warm_s = ready_s[-1]
        self.samples = self._whole_batch
        self._count_computed()
        return ready_s

    def _layers(self, order: str) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of a core of speed 1 for all layers, shape (replications, ranks), and the share of each, after that of no gradient."""
        scenario, costs = self.world.scenario, self.world.scenario.costs
        self.at_hand.begin_gradient()
        self._input(scenario.batch)
        more_s = self._cold_s(costs.compute) + self._to_device_s + self._to_host_s
        layers_s = np.broadcast_to(
            self._of_step(self._factors) * costs.compute(scenario.batch) + more_s, self.now_s.shape
        )
        shares = layer_shares([variable.size for variable in scenario.workload.variables], order)
        return layers_s, np.array([1 - sum(shares), *reversed(shares)])

    def _sum_in_cycles(self, begun_s: np.ndarray, ready_s: np.ndarray, *settings) -> np.ndarray:
        """When each rank's background thread has summed all."""
        if self.background is None:
            self.background = Background(self, *settings)
        elif self.background.settings != settings:
            raise self.world.refuse("the text sums in cycles of several kinds")
        self.late.begin_step(self.background.table, [self.world.end_s(n) for n in range(len(self.world.updates) + 1)])
        return self.background.step(begun_s, ready_s, self.now_s, self.late)

    background: Background | None = None

    @cached_property
    def late(self) -> LateWaits:
        """Waits that are summed up when all steps are known."""
        replications, ranks = self.now_s.shape
        return LateWaits(replications, ranks, {self.world.patience.least_warmup, self.world.scenario.warmup})


def all_count(shares: np.ndarray, layers_s: np.ndarray) -> bool:
    """Whether no layer takes so little that the event world leaves it out."""
    return bool((shares[shares > 0].min() * layers_s > ROUND_OFF_S).all())
