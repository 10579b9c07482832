"""Steps of workers that sum by collective calls, by loops."""

from __future__ import annotations

import numpy as np

from sim import collectives
from sim.collectives.schedule import Schedule
from sim.model.sizes import ITEM_BYTES
from sim.vector.calls import Calls
from sim.vector.exchanges import Unsettled, limits_of
from sim.vector.lowered.plan import Plan, PlannedWorld

KINDS = {"ring": 0}  # as sim.vector.compiled.sums has them
LAID_OUT = 1


class SumSteps:
    """Steps, one after another.

    Args:
        world: of the scenario.
        plan: of the first of them.

    Raises:
        TooMany: a call has too many messages to lay them out.
    """

    @staticmethod
    def suits(plan: Plan) -> bool:
        """Whether ranks do so in these steps."""
        return plan.does((), ("allreduce", "update"))

    def __init__(self, world: PlannedWorld, plan: Plan):
        scenario, speeds = world.scenario, world.workers.speeds
        self._scenario, self._warmup, self._calls_of = scenario, scenario.warmup, world.workers.collectives
        self._settings = plan.workers[0].about
        link = scenario.network
        self._limits, self._by_rank = limits_of(link), np.stack([link.overhead_s / speeds, speeds])
        clocks = np.zeros((len(speeds), 4, speeds.shape[1]))
        clocks[:, 3] = -np.inf
        self._state = *np.zeros((2, len(speeds))), clocks
        self._calls, self._ring, self._laid_out = self._lay_out(link)

    def _lay_out(self, link) -> tuple:
        """The calls of a step, as `play_steps` has them."""
        scenario, known = self._scenario, self._calls_of
        algorithm, fused = self._settings
        assert isinstance(known, Calls)  # such ranks have hosts of their own
        numbers: list[tuple[int, ...]] = []
        rings: list[np.ndarray] = []
        plans: dict[int, Schedule] = {}
        spent_s, costs = [], [np.empty((2, 0))]
        costs_of, ranks, messages = scenario.costs, scenario.workers, 0
        pieces = collectives.pieces(scenario.summed, fused)
        names = [known.named(algorithm, piece) for piece in pieces]
        for name, before, piece in zip(names, [names[-1], *names], pieces, strict=False):
            call_s = costs_of.call(ITEM_BYTES * (piece.stop - piece.start))
            spent_s.append((costs_of.agree_s, (ranks > 1) * costs_of.negotiate_s + call_s))
            if name == "ring":
                numbers.append((KINDS[name], before == "ring", 0, 0, 0))
                rings.append(np.array([one[0] for one in known.ring_pieces(((piece.start, piece.stop),))]))
                continue
            plan = known.plan(name, [piece])
            size_bytes = plan.size_bytes.ravel()
            rings.append(np.zeros((2, 2 * ranks)))
            costs.append(np.stack(np.broadcast_arrays(link.occupancy_s(size_bytes), scenario.costs.reduce(size_bytes))))
            number = list(plans).index(id(plan.listed)) if id(plan.listed) in plans else len(plans)
            plans[id(plan.listed)] = plan
            numbers.append((LAID_OUT, 0, number, messages, messages + len(size_bytes)))
            messages += len(size_bytes)
        laid_out = [[one.operations() for one in plans.values()]]
        laid_out += [[getattr(one, name) for one in plans.values()] for name in ("sources", "ahead")]
        ends = [np.cumsum([0, *map(len, parts)]) for parts in laid_out]
        bounds = np.array([end for both in ends for end in (both[:-1], both[1:])], int).T
        empty = np.empty((0, 6), int), np.empty((0, ranks), int), np.empty(0, int)
        joined = [np.concatenate([none, *parts]) for none, parts in zip(empty, laid_out, strict=True)]
        rounds = np.array(known.rounds, int).reshape(-1, 3)
        calls = np.array(numbers, int).reshape(-1, 5), np.array(spent_s, float).reshape(-1, 2)
        by_call = np.ascontiguousarray(np.array(rings, float).swapaxes(0, 1))
        return calls, (rounds, by_call), (*joined, np.ascontiguousarray(bounds), np.concatenate(costs, axis=1))

    def play(self, plan: Plan, first: int, ends_s: np.ndarray) -> np.ndarray:
        """As of sim.vector.lowered.hub."""
        from sim.vector.compiled.sums import play_steps

        works, idle_s = tuple(plan.of_workers(stretch) for stretch in range(3)), np.zeros((3, *self._by_rank.shape[1:]))
        jobs = self._calls, self._ring, self._laid_out, self._limits, self._by_rank
        if not play_steps(first, self._warmup, *jobs, works, self._state, (ends_s, idle_s)):
            raise Unsettled
        return idle_s
