"""The records of a run: its updates, its waits, and all activities if a trace is asked for."""

from __future__ import annotations

import math

import numpy as np

from sim.answers.outcome import Outcome
from sim.base.errors import WrongSetting
from sim.base.ranges import SHORTEST_S
from sim.recording.traces import NOBODY, Activity

MOST_NUMBERS = 600_000  # of waits, three each, before they are summed up


class Recorder:
    """Records all ranks of a run.

    Args:
        warmups: numbers of steps that may turn out to be the warm-up: the least, and the one asked for.
        want_rows: keep a row for every activity.
    """

    def __init__(self, scenario, warmups: set[int], want_rows: bool):
        self.scenario, self.each = scenario, scenario.updates_per_step
        self.rows: list[Activity] | None = [] if want_rows else None
        self.ends_s: list[float] = []  # of the updates of rank 0
        self.samples: list[int] = []
        self.ran_out = 0
        self.waits: list[float] = []  # rank, from, to, rank, from, to, ...; ranks add to it
        self._idle_s = {steps: np.zeros(scenario.ranks) for steps in warmups}
        self.room = MOST_NUMBERS

    def updated(self, end_s: float, samples: int) -> None:
        """Rank 0 has made an update."""
        self.ends_s.append(end_s)
        self.samples.append(samples)
        if len(self.waits) > self.room:
            self._fold()

    def row(self, start_s, end_s, rank, step, activity, samples=0, size_bytes=0, peer=NOBODY, version=0) -> None:
        """An activity; called where rows are kept."""
        assert self.rows is not None
        self.rows.append(Activity(start_s, end_s, rank, step, activity, samples, size_bytes, peer, version))

    def outcome(self, warmup: int) -> Outcome:
        """The outcome of the run, as one replication."""
        ends_s = np.array(self.ends_s).reshape(-1)
        steps = len(ends_s) // self.each
        ends_s = ends_s[: steps * self.each].reshape(steps, self.each)[:, -1]
        samples = np.array(self.samples[: steps * self.each]).reshape(steps, self.each).sum(axis=1)
        step_s = np.diff(ends_s, prepend=0.0)[warmup:]
        if steps <= warmup:
            raise WrongSetting("trace", f"{steps} steps, {warmup} of warm-up", "at least one step after warm-up")
        start_s, end_s = ends_s[warmup - 1] if warmup else 0.0, ends_s[-1]
        if not end_s - start_s > SHORTEST_S * (steps - warmup):
            raise WrongSetting("trace", f"steps from {start_s:g} s to {end_s:g} s", "measured steps that take time")
        idle_s = self._idle_s[warmup] + self._between(self._taken(), start_s, end_s)
        return Outcome(step_s[None], samples[warmup:][None], idle_s[None] / (end_s - start_s), self.ran_out, warmup)

    def _fold(self) -> None:
        """Sum up the waits that ended before the last update: no end of the run will cut them."""
        until_s = self.ends_s[-1] if self.ends_s else 0.0
        waits = self._taken()
        ended = waits[:, 2] <= until_s
        settled, rest = waits[ended], waits[~ended].ravel().tolist()
        for steps, idle_s in self._idle_s.items():
            done = steps * self.each
            if len(self.ends_s) >= done:
                self._idle_s[steps] = idle_s + self._between(settled, self.ends_s[done - 1] if done else 0.0, math.inf)
        self.waits[:], self.room = rest, len(rest) + MOST_NUMBERS

    def _taken(self) -> np.ndarray:
        """All waits, shape (waits, 3), which are then kept no more."""
        found = np.array(self.waits).reshape(-1, 3)
        self.waits.clear()
        return found

    def _between(self, waits: np.ndarray, start_s: float, end_s: float) -> np.ndarray:
        """Seconds of the waits from start_s to end_s, by rank; shape (ranks,)."""
        rank, from_s, to_s = waits.T
        inside_s = np.clip(np.minimum(to_s, end_s) - np.maximum(from_s, start_s), 0, None)
        return np.bincount(rank.astype(int), inside_s, self.scenario.ranks)
