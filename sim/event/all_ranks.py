"""The steps of a user's text without a master: each is over when its last rank has ended it, and has the samples of all ranks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sim.event.world import EventWorld


class AllRanks:
    """What every rank does in each step.

    Args:
        world: whose ranks all are workers.
    """

    def __init__(self, world: EventWorld):
        self._world, ranks = world, world.scenario.ranks
        self._ends_s: list[list[float]] = [[] for _ in range(ranks)]
        self._updated_s: list[float | None] = [None] * ranks  # when each has updated in the step that it is in
        self._computed, self._applied = Counter[int](), Counter[int]()  # samples, by step
        self._ended = Counter[int]()  # ranks, by step
        self._unmade: set[int] = set()  # steps without an update of rank 0

    def computed(self, rank: Any, samples: int) -> None:
        """A rank has computed a gradient, or a part of one."""
        self._computed[rank.step] += samples

    def updated(self, rank: Any, samples: int) -> None:
        """A rank has made an update."""
        self._applied[rank.step] += samples
        self._updated_s[rank.rank] = rank.clock_s

    def ended(self, rank: Any) -> None:
        """A rank has ended its round: with its last update, or now if it has made none."""
        number, step = rank.rank, rank.step
        updated_s, self._updated_s[number] = self._updated_s[number], None
        self._ends_s[number].append(rank.clock_s if updated_s is None else updated_s)
        if number == 0 and updated_s is None:
            self._unmade.add(step)
        self._ended[step] += 1
        if self._ended[step] == len(self._ends_s) and step not in self._unmade:
            end_s = max(own[step] for own in self._ends_s)
            self._world.step_over(end_s, samples_of(self._applied[step], self._computed[step]))

    def step_s(self, warmup: int, steps: int) -> np.ndarray:
        """Seconds of each rank's own steps after the warm-up, shape (steps, ranks)."""
        ends_s = np.array([[0.0, *own[: warmup + steps]] for own in self._ends_s])
        return np.diff(ends_s, axis=1)[:, warmup:].T


def samples_of(applied: int, computed: int) -> int:
    """Samples of a step whose gradients are applied anywhere: an allreduce applies each at all ranks, and it counts once.

    Args:
        applied: in the updates of all ranks.
        computed: by all ranks.
    """
    return min(applied, computed)
