"""Steps of workers that sum in cycles while they compute, by loops."""

from __future__ import annotations

import numpy as np

from sim.vector.cycles.background import Background
from sim.vector.exchanges import Unsettled
from sim.vector.lowered.plan import NotLowered, Plan, PlannedWorld

MOMENTS = 64  # of each rank among the waits of decisions, before they are counted


class CycleSteps:
    """Steps, one after another.

    Args:
        world: of the scenario.
        plan: of the first of them.

    Raises:
        NotLowered: ranks agree otherwise than along a tree.
        Unsettled, TooMany: decisions cannot be worked out.
    """

    @staticmethod
    def suits(plan: Plan) -> bool:
        """Whether ranks do so in these steps."""
        return plan.does((), ("beside", "update"))

    def __init__(self, world: PlannedWorld, plan: Plan):
        self._warmup, self._threads = world.scenario.warmup, Background(world.workers, *plan.workers[0].about[0])
        if not self._threads.can_be_compiled:
            raise NotLowered
        shape = world.workers.speeds.shape
        begins_s, low_s, after_s = np.zeros(shape[0]), np.zeros(shape[0]), np.full(shape[0], -np.inf)
        clocks = np.stack([np.zeros(shape), np.full(shape, -np.inf)])
        self._shape, self._state = shape, (begins_s, low_s, clocks, after_s, np.zeros(shape[0], int))

    def play(self, plan: Plan, first: int, ends_s: np.ndarray) -> np.ndarray:
        """As of sim.vector.lowered.hub."""
        from sim.vector.compiled import background
        from sim.vector.compiled import cycles as loops

        replications, ranks = self._shape
        _, input_s, layers_s, shares = plan.workers[0].about
        works = (
            plan.of_workers(0),
            plan.in_steps(input_s),
            plan.of_workers(1),
            plan.of_workers(2),
            plan.in_steps(layers_s),
            shares,
        )
        state = np.zeros(replications, int), *self._state
        idle_s, ends = np.zeros((3 * replications, ranks)), np.empty((replications, 3), int)
        among = np.empty((MOMENTS * ranks, 4), int), np.empty(MOMENTS * ranks)
        rows, threads = np.arange(replications), self._threads
        while rows.size:
            jobs = threads.for_loops, threads.by_rank, threads.table.dense()
            count = loops.play_steps(rows, first, self._warmup, *jobs, works, state, (ends_s, idle_s, *among, ends))
            threads.add_among(among[0][:count], among[1][:count], idle_s)
            rows = rows[ends[rows, 0] != background.DONE]
            missing = rows[ends[rows, 0] == background.UNDECIDED]
            full = rows[ends[rows, 0] == background.FULL]
            if missing.size + full.size < rows.size or (full.size and not count):
                raise Unsettled
            threads.table.numbers(threads.by_rank[1][missing], ends[missing, 1], ends[missing, 2])
        return idle_s.reshape(3, replications, ranks)
