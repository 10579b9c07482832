"""Work that nobody waits for: other threads of a runtime. It slows whoever needs the cores."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sim.cpu import ROUND_OFF_S
from sim.randomness import generator

PIECES = 8  # of a step's: it comes with messages, and a pull and a push have four, of two ends each


class Behind:
    """Verbs of a rank behind which other threads work. The event world gives `world`, `machine`, `now_s` and `luck`."""

    _begun_s = 0.0

    @cached_property
    def _moments(self) -> np.random.Generator:
        return generator(*self.luck, "behind")

    def work_behind_step(self, seconds: float, slept_s: float) -> None:
        """A step's begins, for as long as the step before took without the `slept_s` that this one slept.

        In pieces at random moments: all at once it would hold up the step's first phase, and at even distances workers that
        share cores and ports would stay in step for ever, as real ones do not.
        """
        span_s, self._begun_s = self.now_s - self._begun_s - slept_s, self.now_s
        if seconds > ROUND_OFF_S:
            moments_s = self.now_s + span_s * np.sort(self._moments.random(PIECES))
            self.world.env.process(self._piecemeal(seconds / PIECES, moments_s))

    def _piecemeal(self, piece_s: float, moments_s: np.ndarray):
        """Equal pieces, one after another, none before its moment."""
        for moment_s in moments_s:
            yield self.world.env.timeout(max(0.0, moment_s - self.now_s))
            yield self.machine.cores.work(piece_s)

    @staticmethod
    def work_behind(machine, seconds: float) -> None:
        """Some, at once."""
        if seconds > ROUND_OFF_S:
            machine.cores.work(seconds)
