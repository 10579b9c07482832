"""Many steps of a run at once: each as a row of the same arrays, as if it were a replication that begins in the midst of things.

How a step goes depends on the steps before it by little: by how far ranks and ports are apart when it begins. First each is taken to
begin as the first step ended; then each is reckoned again that does not begin as the one before it ends, until all do. The step after
the first is then right at once, and so on, so that nothing is approximated. In most jobs ranks meet in each step, and all is right
after two or three rounds. Moments are counted from when rank 0 begins the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from sim.answers.outcome import Outcome
from sim.job.scenario import Scenario
from sim.protocols import is_ours
from sim.randomness import BLOCK
from sim.vector.draws import Chosen, Listed, Rounds
from sim.vector.late_waits import LateBetween, LateUnheeded
from sim.vector.together import Refused
from sim.vector.waits import Between, Unheeded
from sim.vector.world import VectorWorld, outcome_of
from sim.worlds.time_budget import Patience

MOST_RANKS = 2**15  # of all steps and replications at once; with more the arrays leave the cache
GRID_PER_S = (
    2.0**44
)  # moments are rounded to less than a tenth of a picosecond, so that steps that begin alike are known to
FEWEST, MOST_ROUNDS = 4, 12  # steps at once, and rounds of reckoning: otherwise one after another is as fast


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
        if np.ndim(found) == 3:
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
        waits, late: make what counts the waits of so many ranks; they do not count if None.
    """

    def __init__(self, first: VectorWorld, rows: Rows, carried: list, waits: Callable | None, late: Callable | None):
        self.scenario, self.replications, self.rounds = first.scenario, range(len(rows.chosen)), range(1)
        self.patience, self.updates, self.lows_s, self.refused = Patience(first.scenario), [], {}, None
        self._rows, self.master, self.workers = rows, first.master, first.workers
        for group, own in zip(first.groups, carried, strict=True):
            count = len(group.ranks)
            counts = (waits(count), late(count)) if waits and late else (Unheeded(), LateUnheeded())
            resumed = group.resumed(self, rows.of, rows.drawn, own, *counts)
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
            group.world = group.background = None


class Counted(NamedTuple):
    """What some steps come to, a row each.

    Args:
        samples: of each update, shape (rows,).
        idle_s: that each rank waits, shape (rows, ranks); None if that was not counted.
        ran_out: how often a rank had no more partitions to compute, and time left.
    """

    samples: np.ndarray
    idle_s: np.ndarray | None
    ran_out: int


class Apart(Exception):
    """Steps hang together by more than can be settled soon."""


class Block:
    """Steps of every replication that are made at once.

    Args:
        first: the world that has made the first step.
        layout: of what is carried.
        steps: next to one another, of one block of random numbers.
        begin: what each replication begins the first of them with, shape (replications, numbers).
    """

    def __init__(self, first: VectorWorld, layout: Carried, steps: range, begin: np.ndarray):
        self._first, self._layout, self._steps, self._replications = first, layout, steps, len(begin)
        self._begin = np.tile(begin, (len(steps), 1))
        self._all, self._after = np.arange(len(self._begin)), np.empty_like(self._begin)
        self._times_s = np.empty((2, len(self._all)))  # for which each takes rank 0; when it makes its update

    def settle(self) -> None:
        """Find out what each step begins with.

        Raises:
            Apart: it does not settle soon.
        """
        left = self._all
        for _ in range(MOST_ROUNDS):
            self._reckon(left)
            begins = np.concatenate([self._begin[: self._replications], self._after[: -self._replications]])
            left = np.flatnonzero((begins != self._begin).any(axis=1))
            self._begin = begins
            if not left.size:
                return
        raise Apart

    @property
    def after(self) -> np.ndarray:
        """What each replication carries on, shape (replications, numbers)."""
        return self._after[-self._replications :]

    @property
    def times_s(self) -> np.ndarray:
        """For which each step takes rank 0, and after how much of it comes its update; shape (2, steps, replications)."""
        return self._times_s.reshape(2, len(self._steps), self._replications)

    def counted(self, low_s: np.ndarray, high_s: np.ndarray, counts_own: np.ndarray) -> Counted:
        """The settled steps once more, whose waits are counted between two moments of each.

        Args:
            low_s, high_s: the moments, from when rank 0 begins each step, shape (steps, replications).
            counts_own: whether a master's waits count, likewise.
        """
        low_s, high_s, counts_own = low_s.ravel(), high_s.ravel(), counts_own.ravel()
        return self._reckon(self._all, partial(Between, low_s, high_s, counts_own), partial(LateBetween, low_s, high_s))

    def _reckon(self, chosen: np.ndarray, waits: Callable | None = None, late: Callable | None = None) -> Counted:
        rows = Rows(self._steps, self._replications, chosen)
        world = StepWorld(self._first, rows, self._layout.of_groups(self._begin[chosen]), waits, late)
        world.play()
        self._after[chosen] = self._layout.after(world)
        self._times_s[:, chosen] = world.clock_s, world.end_s(1)
        idle_s = world.idle_s(0, *world.updates[0]) if waits is not None else None  # between moments that are known
        found = Counted(world.updates[0][1], idle_s, world.ran_out)
        world.fall_apart()
        return found


class Run:
    """All steps of a scenario, block by block.

    Args:
        scenario: the job.
        replications: their numbers.
        together: steps that are made at once.
    """

    def __init__(self, scenario: Scenario, replications: range, together: int):
        self._scenario, self._together = scenario, together
        self._first = VectorWorld(scenario, replications, rounds=range(1))
        self._first.play()
        (end_s, samples), self._now_s = self._first.updates[0], self._first.clock_s.copy()
        self._ends_s, self._samples = [np.zeros((1, len(end_s))), end_s[None]], [samples[None]]
        self._idle_s, self._ran_out = np.zeros((len(end_s), scenario.ranks)), self._first.ran_out

    def outcome(self) -> Outcome:
        """What they come to.

        Raises:
            Refused, Apart: steps have to be made one after another.
        """
        warmup, rounds, layout = self._scenario.warmup, self._scenario.rounds, Carried(self._first)
        begin, step = layout.after(self._first), 1
        while step < rounds:
            steps = range(step, min(rounds, step + self._together, (step // BLOCK + 1) * BLOCK))
            block = Block(self._first, layout, steps, begin)
            block.settle()
            self._count(block, steps)
            begin, step = block.after.copy(), steps.stop  # the rest of the block is let go
        end_s = np.concatenate(self._ends_s).T
        self._idle_s += self._first.idle_s(warmup, end_s[:, warmup], end_s[:, -1])
        return outcome_of(end_s, np.concatenate(self._samples).T.astype(int), self._idle_s, self._ran_out, warmup)

    def _count(self, block: Block, steps: range) -> None:
        """Waits between warm-up's end and that of the last step; no step before the last is cut by that, for ranks meet in the next."""
        took_s, ends_s = block.times_s
        begins_s = self._now_s + np.concatenate([np.zeros((1, len(self._now_s))), np.cumsum(took_s, axis=0)])
        self._ends_s.append(begins_s[:-1] + ends_s)
        self._now_s, warmup = begins_s[-1], self._scenario.warmup
        known_s = np.concatenate(self._ends_s)
        low_s = known_s[warmup] if warmup < len(known_s) else np.full(len(self._now_s), np.inf)
        high_s = known_s[-1] if steps.stop == self._scenario.rounds else np.full(len(self._now_s), np.inf)
        counts_own = np.broadcast_to(np.array(steps)[:, None] >= warmup, took_s.shape)
        found = block.counted(low_s - begins_s[:-1], high_s - begins_s[:-1], counts_own)
        self._samples.append(found.samples.reshape(took_s.shape))
        self._idle_s += found.idle_s.reshape(*took_s.shape, -1).sum(axis=0)
        self._ran_out += found.ran_out


def run(scenario: Scenario, replications: range) -> Outcome | None:
    """What all steps come to; None where they have to be made one after another.

    Our own texts do the same in each step and remember nothing; a user's may not.
    """
    together = min(MOST_RANKS // (len(replications) * scenario.ranks), scenario.rounds - 1)
    if together < FEWEST or scenario.protocol.has_servers or not is_ours(scenario.protocol):
        return None
    try:
        return Run(scenario, replications, together).outcome()
    except (Refused, Apart):
        return None
