"""Steps of a master and its workers, by loops."""

from __future__ import annotations

import numpy as np

from sim.vector.exchanges import Unsettled
from sim.vector.lowered.plan import Plan, PlannedWorld

MASTER, WORKERS = ("send", "gather", "update"), ("receive", "send")


class HubSteps:
    """Steps, one after another.

    Args:
        world: of the scenario.
        plan: of the first of them.
    """

    @staticmethod
    def suits(plan: Plan) -> bool:
        """Whether ranks do so in these steps, and work nowhere but where the loop has it."""
        if not plan.does(MASTER, WORKERS):
            return False
        return all(stretch.work_s is None for stretch in (plan.master[1], plan.workers[0], plan.workers[2]))

    def __init__(self, world: PlannedWorld, plan: Plan):
        master, scenario = world.master, world.scenario
        replications, workers = world.workers.speeds.shape
        link, size_bytes = scenario.network, master.message_bytes
        self._warmup, self._link = scenario.warmup, (link.latency_s, link.occupancy_s(float(size_bytes)))
        core_s = link.overhead_s, link.overhead_s + scenario.costs.reduce(size_bytes)
        self._costs = tuple(seconds / np.ascontiguousarray(master.speeds[:, 0]) for seconds in core_s)
        self._shape = replications, scenario.ranks
        masters = np.zeros((replications, 4))
        masters[:, 3] = -np.inf
        begins_s, low_s = np.zeros((2, replications))
        self._state = begins_s, low_s, masters, np.zeros((replications, 3, workers))

    def play(self, plan: Plan, first: int, ends_s: np.ndarray) -> np.ndarray:
        """The next steps.

        Args:
            first: the number of the first.
            ends_s: when each ends, shape (steps, replications); overwritten.

        Returns:
            Seconds that ranks wait after the warm-up in all of them but the last, in that if the run goes on, and if it ends there;
            shape (3, replications, ranks).

        Raises:
            Unsettled: which message passes a port first cannot be told.
        """
        from sim.vector.compiled.hub import play_steps

        works = plan.of_master(0), plan.of_master(2), plan.of_master(3), plan.of_workers(1)
        idle_s = np.zeros((3, *self._shape))  # nobody waits when a step is over
        if not play_steps(first, self._warmup, self._link, self._costs, works, self._state, (ends_s, idle_s[0])):
            raise Unsettled
        return idle_s
