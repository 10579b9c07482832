"""Iterations of a loop, the steps that they make up, and the rows of a trace for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

UNDECIDED = 64  # iterations in which an optimiser must have made two steps, or each iteration is taken as a step
Moment = Any  # seconds of this process's clock, or an event of a GPU until it has happened


@dataclass(slots=True)
class Call:
    """One allreduce of a bucket of gradients: when the bucket was ready, when the sum was there, its bytes, and its numbers."""

    start: Moment
    bytes: int
    end: Moment = None
    items: int = 0


@dataclass(slots=True)
class Pause:
    """An evaluation or a checkpoint within the loop: its activity, and when it began and ended."""

    activity: str
    start: Moment
    end: Moment = None


@dataclass(slots=True)
class Iteration:
    """One turn of the loop.

    Args:
        asked: when the loop asked for the next batch; `arrived`, when it had it; `ended`, when it was done with it.
        samples: of the batch.
        computed: when the last optimiser's step began, so that its gradients were there; None if none made one.
        calls: that communicated.
        pauses: that are no part of a step.
        resumed: whether the loop had been left before, for an evaluation or the end of an epoch.
    """

    asked: Moment
    arrived: Moment = None
    ended: Moment = None
    samples: int = 0
    computed: Moment = None
    calls: list[Call] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    resumed: bool = False

    def places(self) -> Iterator[tuple[Any, str]]:
        """Of each of its moments, known or not, the object that has it and its name there."""
        yield from ((self, name) for name in ("asked", "arrived", "computed", "ended"))
        yield from ((call, name) for call in (*self.calls, *self.pauses) for name in ("start", "end"))


class Steps:
    """Puts iterations together: a step is what one update of the parameters takes, of one minibatch or of several.

    Args:
        joins: whether an optimiser's steps can be seen at all; if not, each iteration is a step.
    """

    def __init__(self) -> None:
        self.joins = False
        self._held: list[Iteration] = []
        self._several: int | None = None  # iterations of a step, once two updates have told

    def add(self, iteration: Iteration) -> list[list[Iteration]]:
        """The steps that are whole now."""
        self._held.append(iteration)
        if not self.joins:
            return self._each()
        if self._several is None:
            return self._decided()
        whole = iteration.computed is not None or len(self._held) >= self._several
        return self._taken([self._held]) if whole else []

    def left(self) -> list[list[Iteration]]:
        """Steps that are held back when no more will come: without two updates nobody knows how many iterations make one."""
        updates = self._updates()
        if self._several is None and updates:
            return self._taken([self._held[: updates[0] + 1]])
        return self._each() if self._several is None else []

    def _decided(self) -> list[list[Iteration]]:
        updates = self._updates()
        if len(updates) > 1:
            first, second = updates[0] + 1, updates[1] + 1
            self._several = second - first
            return self._taken([self._held[max(0, first - self._several) : first], self._held[first:second]])
        if len(self._held) < UNDECIDED:
            return []
        self._several = 1
        return self._each()

    def _updates(self) -> list[int]:
        return [index for index, one in enumerate(self._held) if one.computed is not None]

    def _each(self) -> list[list[Iteration]]:
        return self._taken([[one] for one in self._held])

    def _taken(self, found: list[list[Iteration]]) -> list[list[Iteration]]:
        self._held = []
        return found


def rows(step: int, iterations: list[Iteration], rank: int, world: int) -> list[tuple]:
    """The rows of a step, as sim.base.activity has them; all moments are seconds.

    A step begins with `input`, which lasts as long as the waiting for all of its minibatches. `compute` lasts until the last gradient is
    there. What then passes until all sums are there is `wait`, and the rest of the step is `update`. A pause has a row of its own before
    the rest of the activity that it interrupted. Each call has a row `receive`, hidden or not.
    """
    first, last = iterations[0], iterations[-1]
    samples = sum(one.samples for one in iterations)
    calls = [call for one in iterations for call in one.calls]
    pauses = [pause for one in iterations for pause in one.pauses]
    gradients_s = last.ended if last.computed is None else last.computed
    summed_s = gradients_s
    if last.calls:
        gradients_s = last.calls[-1].start
        summed_s = max(last.ended if call.end is None else call.end for call in last.calls)
    arrived_s = min(first.asked + sum(max(0.0, one.arrived - one.asked) for one in iterations), last.ended)
    gradients_s = min(max(gradients_s, arrived_s), last.ended)
    summed_s = min(max(summed_s, gradients_s), last.ended)
    found: list[tuple] = [(first.asked, arrived_s, rank, step, "input", samples, 0, -1, step)]
    for call in calls:
        end_s = max(call.start, last.ended if call.end is None else call.end)
        found.append((call.start, end_s, rank, step, "receive", 0, call.bytes, -1, step))
    parts = [("compute", gradients_s, samples, step), ("wait", summed_s, 0, step)]
    now_s = arrived_s
    for name, end_s, of, version in (*parts[: 1 + bool(last.calls)], ("update", last.ended, samples * world, step + 1)):
        while pauses and (pauses[0].start < end_s or name == "update"):
            pause = pauses.pop(0)
            until_s = min(now_s + pause.end - pause.start, end_s)
            found.append((now_s, until_s, rank, step, pause.activity, 0, 0, -1, step))
            now_s = until_s
        found.append((now_s, end_s, rank, step, name, of, 0, -1, version))
        now_s = end_s
    return found
