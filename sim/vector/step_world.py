"""A world of which each replication is one step of a run, that begins as it is told to."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from sim.vector.cycles.late_waits import LateBetween
from sim.vector.draws import Chosen, Listed, Rounds
from sim.vector.waits import Between
from sim.vector.world import VectorWorld
from sim.worlds.time_budget import Patience

GRID_PER_S = (
    2.0**44
)  # moments are rounded to less than a tenth of a picosecond, so that equal beginnings are seen to be equal


@dataclass(frozen=True)
class Rows:
    """Some steps of some replications, a row each.

    Args:
        steps: next to one another, whose rows are there.
        replications: how many.
        chosen: the numbers of those rows that are meant, shape (rows,); the replications of a step are next to one another.
    """

    steps: range
    replications: int
    chosen: np.ndarray

    @property
    def of(self) -> np.ndarray:
        """The replication of each."""
        return self.chosen % self.replications

    @property
    def step(self) -> np.ndarray:
        """The step of each."""
        return self.steps.start + self.chosen // self.replications

    def drawn(self, numbers: Rounds | Listed) -> Chosen:
        """What was drawn for each."""
        found = numbers.several(self.steps)
        if isinstance(found, np.ndarray) and found.ndim == 3:
            return Chosen(found.reshape(-1, found.shape[2])[self.chosen])
        return Chosen(found[self.of] if isinstance(found, np.ndarray) else found)


class Carried:
    """What ranks carry from one step to the next as one array, a row for each replication; moments from when rank 0 begins the step.

    Args:
        world: at the end of a step.
    """

    def __init__(self, world: VectorWorld):
        parts = [group.carried() for group in world.groups]
        self._counts = [(len(moments), len(numbers)) for moments, numbers in parts]
        self._widths = [[one.shape[1] for part in parts for one in part[kind]] for kind in (0, 1)]
        self._moments = sum(self._widths[0])

    def after(self, world: VectorWorld) -> np.ndarray:
        """At the end of a step, shape (replications, numbers), moments before all others."""
        parts = [group.carried() for group in world.groups]
        found = np.concatenate([one for kind in (0, 1) for part in parts for one in part[kind]], axis=1)
        moments = found[:, : self._moments]
        moments -= world.clock_s[:, None]
        moments *= GRID_PER_S
        np.rint(moments, out=moments)
        moments /= GRID_PER_S
        return found

    def of_groups(self, carried: np.ndarray) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
        """As each group's `carried` has it."""
        ends = np.cumsum([*self._widths[0], *self._widths[1]]).tolist()
        parts = [carried[:, begin:end] for begin, end in pairwise([0, *ends])]
        moments, numbers = iter(parts[: len(self._widths[0])]), iter(parts[len(self._widths[0]) :])
        return [(list(islice(moments, of[0])), list(islice(numbers, of[1]))) for of in self._counts]


class StepWorld(VectorWorld):
    """One step in each row.

    Args:
        first: the world that has made the first step of each replication.
        rows: which step of which replication each row is.
        carried: what each group begins with.
        window_s: the moments between which waits count, shape (2, rows); all count if None.
        counts_own: whether a master's waits count, shape (rows,).
    """

    def __init__(
        self, first: VectorWorld, rows: Rows, carried: list, window_s: np.ndarray | None, counts_own: np.ndarray
    ):
        self.scenario, self.replications, self.rounds = first.scenario, range(len(rows.chosen)), range(1)
        self.patience, self.updates, self.lows_s, self.refused = Patience(first.scenario), [], {}, None
        self._rows, self.master, self.workers = rows, first.master, first.workers
        for group, own in zip(first.groups, carried, strict=True):
            shape = len(rows.chosen), len(group.ranks)
            waits, late = Between(shape, window_s, counts_own), LateBetween(shape, window_s)
            resumed = group.resumed(self, rows.of, rows.drawn, own, waits, late)
            if group is first.master:
                self.master = resumed
            else:
                self.workers = resumed

    def evaluates(self, _step: int) -> np.ndarray:
        """Which rows' steps end with it, shape (rows, 1)."""
        due = np.array([self.scenario.evaluates(step) for step in self._rows.steps])
        return due[self._rows.chosen // self._rows.replications][:, None]

    def ended(self, end_s: np.ndarray, samples: np.ndarray) -> None:
        """Rank 0 has made the update of each row's step."""
        self.updates.append((end_s, samples))

    def fall_apart(self) -> None:
        """Groups and world refer to one another no more, so that memory is free at once."""
        for group in self.groups:
            vars(group).pop("world", None)
            vars(group).pop("background", None)
