"""Many steps of a run at once: each as a row of the same arrays, as if it were a replication that begins in the midst of things.

How a step goes depends on the steps before it by little: by how far ranks and ports are apart when it begins. First each is taken to
begin as the first step ended; then each is reckoned again that does not begin as the one before it ends, until all do. The step after
the first is then right at once, and so on, so that nothing is approximated. In most jobs ranks meet in each step, and all is right
after two or three rounds. Moments are counted from when rank 0 begins the step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from sim.answers.outcome import Outcome
from sim.job.scenario import Scenario
from sim.protocols import is_ours
from sim.randomness import BLOCK
from sim.vector import compiled, lowered
from sim.vector.calls import TooMany
from sim.vector.exchanges import Unsettled
from sim.vector.step_world import Carried, Rows, StepWorld
from sim.vector.together import Refused
from sim.vector.world import VectorWorld, outcome_of, refusal

MOST_RANKS = 2**15  # of all steps and replications at once; with more the arrays leave the cache
FEWEST = 4  # steps at once; fewer are as fast one after another
MOST_ROUNDS, MOST_LEFT = 40, 12  # rounds of reckoning, and how many more there may be, as it looks after three


class Apart(Exception):
    """Steps hang together by more than can be settled soon."""


class Block:
    """Steps of every replication that are made at once.

    Args:
        first: the world that has made the first step.
        layout: of what is carried.
        steps: next to one another, of one block of random numbers.
        begin: what each replication begins the first of them with, shape (replications, numbers).

    Attributes:
        took_s: for which each step takes rank 0, shape (steps * replications,).
        ends_s: when its update comes, from when it begins, likewise.
        samples, ran_out: of each, likewise.
        idle_s: for which each rank waits in each, shape (steps * replications, ranks).
    """

    def __init__(self, first: VectorWorld, layout: Carried, steps: range, begin: np.ndarray):
        self._first, self._layout, self.steps, self._replications = first, layout, steps, len(begin)
        self._begin = np.tile(begin, (len(steps), 1))
        rows = len(self._begin)
        self._after, self.idle_s = np.empty_like(self._begin), np.empty((rows, first.scenario.ranks))
        self.took_s, self.ends_s, self.samples, self.ran_out = (np.empty(rows) for _ in range(4))

    def settle(self) -> None:
        """Find out what each step begins with.

        Raises:
            Apart: it does not settle soon.
        """
        left = np.arange(len(self._begin))
        for number in range(MOST_ROUNDS):
            self._reckon(left)
            begins = np.concatenate([self._begin[: self._replications], self._after[: -self._replications]])
            before, left = left.size, np.flatnonzero((begins != self._begin).any(axis=1))
            self._begin = begins
            if not left.size:
                return
            if number > 1 and left.size > MOST_LEFT * max(before - left.size, self._replications):
                break
        raise Apart

    @property
    def after(self) -> np.ndarray:
        """What each replication carries on, shape (replications, numbers)."""
        return self._after[-self._replications :].copy()

    def cut(self, steps: list[int], window_s: np.ndarray, counts_own: list[bool]) -> None:
        """Count the waits of some steps again, between two moments.

        Args:
            window_s: the moments, from when rank 0 begins each, shape (2, steps, replications).
            counts_own: whether a master's waits count in each.
        """
        firsts = (np.array(steps) - self.steps.start) * self._replications
        chosen = (firsts[:, None] + np.arange(self._replications)).ravel()
        self._reckon(chosen, window_s.reshape(2, -1), np.repeat(counts_own, self._replications))

    def _reckon(
        self, chosen: np.ndarray, window_s: np.ndarray | None = None, counts_own: np.ndarray | None = None
    ) -> None:
        rows, counts = Rows(self.steps, self._replications, chosen), np.ones(len(chosen), bool)
        counts = counts if counts_own is None else counts_own
        world = StepWorld(self._first, rows, self._layout.of_groups(self._begin[chosen]), window_s, counts)
        world.play()
        (end_s, samples) = world.updates[0]
        self._after[chosen], self.took_s[chosen] = self._layout.after(world), world.clock_s
        self.ends_s[chosen], self.samples[chosen], self.ran_out[chosen] = end_s, samples, world.ran_out
        self.idle_s[chosen] = world.idle_s(0, end_s, end_s)  # between moments that its waits know
        world.fall_apart()


class Run:
    """All steps of a scenario, block by block.

    Args:
        scenario: the job.
        replications: their numbers.
        together: steps that are made at once.
        within_s: after so many seconds the run ends with a block, once warm-up is over.
        also: see `run`.
    """

    def __init__(
        self,
        scenario: Scenario,
        replications: Sequence[int],
        together: int,
        within_s: float,
        also: Sequence[Scenario] = (),
    ):
        self._scenario, self._together, self._until_s = scenario, together, time.monotonic() + within_s
        self._first = VectorWorld(scenario, replications, rounds=range(1), also=also)
        self._first.play()
        (end_s, samples), self._now_s = self._first.updates[0], self._first.clock_s.copy()
        self._ends_s, self._samples = [np.zeros((1, len(end_s))), end_s[None]], [samples[None]]
        self._idle_s, self._ran_out = np.zeros((len(end_s), scenario.ranks)), self._first.ran_out.sum()

    def outcome(self) -> Outcome:
        """What they come to.

        Raises:
            Refused, Apart: steps have to be made one after another.
        """
        rounds, warmup, layout = self._scenario.rounds, self._scenario.warmup, Carried(self._first)
        begin, step, over = layout.after(self._first), 1, False
        while step < rounds and not over:
            steps = range(step, min(rounds, step + self._together, (step // BLOCK + 1) * BLOCK))
            block = Block(self._first, layout, steps, begin)
            block.settle()
            over = steps.stop > warmup and time.monotonic() > self._until_s
            self._count(block, is_last=over or steps.stop == rounds)
            begin, step = block.after, steps.stop
        end_s = np.concatenate(self._ends_s).T
        self._idle_s += self._first.idle_s(warmup, end_s[:, warmup], end_s[:, -1])
        return outcome_of(end_s, np.concatenate(self._samples).T.astype(int), self._idle_s, self._ran_out, warmup)

    def _count(self, block: Block, is_last: bool) -> None:
        """Waits between warm-up's end and that of the last step.

        Ranks meet in each step. Therefore warm-up's end cuts waits of its last step and of the next, and the run's end those of the last.
        """
        replications, steps, warmup = len(self._now_s), block.steps, self._scenario.warmup
        took_s, ends_s = (times_s.reshape(-1, replications) for times_s in (block.took_s, block.ends_s))
        begins_s = self._now_s + np.concatenate([np.zeros((1, replications)), np.cumsum(took_s, axis=0)])
        self._ends_s.append(begins_s[:-1] + ends_s)
        self._now_s, known_s = begins_s[-1], np.concatenate(self._ends_s)
        last, never_s = steps.stop - 1 if is_last else -1, np.full(replications, np.inf)
        cut = sorted({warmup - 1, warmup, last}.intersection(steps))
        if cut:
            windows_s = [
                np.array([known_s[warmup], known_s[-1] if step == last else never_s]) - begins_s[step - steps.start]
                for step in cut
            ]
            block.cut(cut, np.stack(windows_s, axis=1), [step >= warmup for step in cut])
        counted = slice(max(0, warmup - 1 - steps.start), None)
        self._samples.append(block.samples.reshape(-1, replications))
        self._idle_s += block.idle_s.reshape(len(steps), replications, -1)[counted].sum(axis=0)
        self._ran_out += block.ran_out.sum()


def run(
    scenario: Scenario,
    replications: int = 1,
    first: int = 0,
    within_s: float = math.inf,
    also: Sequence[Scenario] = (),
) -> Outcome:
    """So many replications of the scenario, from the `first` on; the same that the event world gives one by one.

    Args:
        within_s: as in the event world, for all of them together.
        also: the same job on hosts of other speeds: a run of each with the first one's random numbers comes after the others.

    Raises:
        Refused: the scenario needs the event world.
        RunFailed: the protocol's texts wait for one another for ever, or do what no world can run.
        WrongSetting: several servers are to evaluate.
    """
    scenario.check_evaluation()
    reason, until_s = refusal(scenario), time.monotonic() + within_s
    if reason:
        raise Refused(reason)
    numbers = [*range(first, first + replications), *[first] * len(also)]
    together = _together(scenario, len(numbers), within_s)
    if together >= FEWEST and compiled.in_use():
        with suppress(Refused, lowered.NotLowered, Unsettled, TooMany):  # arrays say then whether it is so
            return lowered.outcome(scenario, numbers, together, within_s, also)
    if min(together, scenario.rounds - 1) >= FEWEST:
        try:
            return Run(scenario, numbers, together, within_s, also).outcome()
        except (Refused, Apart):  # one after another may do
            pass
    return VectorWorld(scenario, numbers, until_s - time.monotonic(), also=also).run()


def repeats(scenario: Scenario) -> bool:
    """Whether its texts do the same in each step and remember nothing, as far as their protocol tells: our own do, a user's may not."""
    return not scenario.protocol.has_servers and is_ours(scenario.protocol)


def _together(scenario: Scenario, replications: int, within_s: float) -> int:
    """How many steps are made at once, at most."""
    if not repeats(scenario):
        return 0
    takes_long = within_s < math.inf and scenario.warmup > BLOCK  # and is all of it made
    return 0 if takes_long else MOST_RANKS // (replications * scenario.ranks)
