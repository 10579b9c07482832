"""The verbs of the vector world by which ranks sum gradients while they compute: Horovod's background thread, in every replication."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from sim.vector.by_name import ByName
from sim.vector.by_tree import ByTree
from sim.vector.calls import TooMany
from sim.vector.decided import Decided
from sim.vector.exchanges import Unsettled
from sim.vector.late_waits import Cycle, LateWaits
from sim.vector.negotiation import Begun
from sim.verbs.fusion import layer_shares

ALONE = "the text computes by layer, or sums in cycles, and does nothing beside"
NEAR_S = 2e-13  # moments that differ by less may come in either order, as rounding has it
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


class Overlap:
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
        self.samples = np.broadcast_to(self.samples.sum(axis=1, keepdims=True), self.samples.shape)
        yield from self._did()

    def _compute_layers(self, order: str) -> np.ndarray:
        """When each gradient is ready, in the order in which they become so; shape (gradients, replications, ranks)."""
        scenario, costs = self.world.scenario, self.world.scenario.costs
        self.at_hand.begin_gradient()
        self._input(scenario.batch)
        cold_s = costs.compute.cold(self.now_s - self._warm_s)
        layers_s = self._of_step(self._factors) * costs.compute(scenario.batch) + cold_s
        shares = layer_shares([variable.size for variable in scenario.workload.variables], order)
        shares = np.array([1 - sum(shares), *reversed(shares)])
        spent_s = np.multiply.outer(shares, layers_s)
        spent_s = np.where(spent_s > ROUND_OFF_S, spent_s / self.speeds, 0.0)
        spent_s[0] += self.now_s
        ready_s = np.cumsum(spent_s, axis=0)[1:]
        self.now_s = self._warm_s = ready_s[-1]
        self.samples = np.full(self.now_s.shape, scenario.batch)
        return ready_s

    def _sum_in_cycles(self, begun_s: np.ndarray, ready_s: np.ndarray, *settings) -> np.ndarray:
        """When each rank's background thread has summed all."""
        if self._background is None:
            self._background = Background(self, *settings)
        elif self._background.settings != settings:
            raise self.world.refuse("the text sums in cycles of several kinds")
        self._late.begin_step(self._background.table, [self.world.end_s(n) for n in range(len(self.world.updates) + 1)])
        return self._background.step(begun_s, ready_s, self.now_s)

    _background = None

    @cached_property
    def _late(self) -> LateWaits:
        return LateWaits(*self.now_s.shape, set(self._idle_s))


class Background:
    """The background threads of all ranks, in every replication.

    Args:
        group: sim.vector.world.Group, of the ranks.
        algorithm, fusion_bytes, cycle_s, by_name: settings of the verb.
    """

    def __init__(self, group, algorithm: str, fusion_bytes: int, cycle_s: float, by_name: bool):
        scenario, (replications, ranks) = group.world.scenario, group.now_s.shape
        self.settings, self._group, self._cycle_s = (algorithm, fusion_bytes, cycle_s, by_name), group, cycle_s
        speeds, self._kinds = np.unique(group.speeds, axis=0, return_inverse=True)
        link = scenario.network
        self._negotiation = ByName(replications, ranks, link) if by_name else ByTree(ranks, link)
        self.table = Decided(scenario, self._negotiation, speeds, algorithm, fusion_bytes)
        self._overhead_s = link.overhead_s / speeds
        self._from_s = np.full(group.now_s.shape, -np.inf)  # when the last cycle of each rank began
        self._fresh = True  # nobody has begun a cycle
        # The decision that each replication has behind it, and when all requests for it had come.
        self._after, self._after_s = np.zeros(replications, int), np.full((replications, 1), -np.inf)

    def step(self, now_s: np.ndarray, ready_s: np.ndarray, computed_s: np.ndarray) -> np.ndarray:
        """All cycles of a step; when each rank's thread is at its end, shape (replications, ranks).

        Args:
            now_s: when it begins, likewise.
            ready_s: when each gradient is ready, shape (gradients, replications, ranks).
            computed_s: when each rank has computed.
        """
        self._negotiation.begin()
        everywhere_s, first_s = ready_s.max(axis=2), computed_s.min(axis=1)
        rows, count, table = np.arange(len(now_s)), np.zeros(len(now_s), int), self.table
        ended_s = np.empty_like(now_s)
        while rows.size:
            begin_s = self._cycle(now_s, self._from_s[rows], everywhere_s[count, rows][:, None])
            self._from_s[rows] = begin_s
            last = self._agreed(begin_s, ready_s, everywhere_s, rows, count)
            in_turn = self._in_turn(now_s, begin_s, everywhere_s[count, rows])
            asked = self._negotiation.ask(self._begun(begin_s, ready_s, rows, in_turn))
            kinds = self._kinds[rows]
            numbers = np.array(table.numbers(kinds, count, last))
            root_s = asked.root_s
            if (root_s[:, 0] + table.last_s[numbers] > first_s[rows]).any():
                waits = [(slice(None), now_s, begin_s), *asked.waits]
                self._group._late.add(Cycle(rows, computed_s[rows], waits, asked.left_s, root_s, numbers, kinds))
            now_s, count = root_s + table.ends_s[numbers], last
            self._after[rows], self._after_s[rows] = numbers, root_s
            over = count == len(ready_s)
            if over.any():
                ended_s[rows[over]] = now_s[over]
                rows, count, now_s = rows[~over], count[~over], now_s[~over]
        return ended_s

    def _cycle(self, now_s: np.ndarray, from_s: np.ndarray, everywhere_s: np.ndarray) -> np.ndarray:
        """When each rank's next cycle begins: the first that finds a gradient ready everywhere, as the event world's `cycle`."""
        begin_s, ready_s = np.maximum(now_s, from_s + self._cycle_s), np.maximum(now_s, everywhere_s)
        if not self._cycle_s:
            return np.maximum(ready_s, begin_s)
        cycles = (ready_s - begin_s) / self._cycle_s
        whole = np.ceil(cycles)
        odd_s = np.abs(cycles - np.rint(cycles)) * self._cycle_s
        if ((odd_s < NEAR_S) & (cycles > -0.5) & (cycles != 0)).any():
            raise self._group.world.refuse("a gradient becomes ready as a cycle begins")
        return np.maximum(ready_s, begin_s + np.maximum(whole, 0) * self._cycle_s)

    def _in_turn(self, now_s: np.ndarray, begin_s: np.ndarray, everywhere_s: np.ndarray) -> np.ndarray:
        """Whether ranks begin in the order of their numbers, if at one instant: they have waited for the same and go on in that order."""
        alike = (begin_s == everywhere_s[:, None]).all(axis=1)
        if self._fresh:
            self._fresh, alike = False, alike | (now_s == now_s[:, :1]).all(axis=1)
        return alike

    def _agreed(self, begin_s, ready_s, everywhere_s, rows, count) -> np.ndarray:
        """How many gradients are ready at all ranks when each begins, shape (rows,); one more than were before, at least."""
        last, certain_s = count + 1, everywhere_s[count, rows]
        asks = np.flatnonzero(last < len(ready_s))
        while asks.size:
            number, row = last[asks], rows[asks]
            behind_s = (ready_s[number, row] - begin_s[asks]).max(axis=1)
            if ((np.abs(behind_s) < NEAR_S) & (everywhere_s[number, row] > certain_s[asks])).any():
                raise self._group.world.refuse("a gradient becomes ready as a cycle begins")
            asks = asks[behind_s <= 0]
            last[asks] += 1
            asks = asks[last[asks] < len(ready_s)]
        return last

    def _begun(self, begin_s: np.ndarray, ready_s: np.ndarray, rows: np.ndarray, in_turn: np.ndarray) -> Begun:
        overhead_s = self._overhead_s if len(self._overhead_s) == 1 else self._overhead_s[self._kinds[rows]]
        numbers, root_s, table = self._after[rows], self._after_s[rows], self.table
        ports = root_s + table.in_free_s[numbers], root_s + table.last_reach_s[numbers]
        idle = partial(_later, table.idle_s, numbers, root_s)
        return Begun(
            rows, begin_s, overhead_s, *ports, idle, in_turn, lambda: (ready_s[:, rows] <= begin_s).sum(axis=0)
        )


def _later(idle_s: np.ndarray, numbers: np.ndarray, root_s: np.ndarray) -> np.ndarray:
    return root_s + idle_s[:, :, numbers]
