"""Background work: other threads of a runtime do it, no rank waits for it, and it slows ranks that need the cores."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sim.event.machines.cores import ROUND_OFF_S
from sim.laws.randomness import generator

PIECES = (
    8  # pieces of a step's background work, which comes with messages: a pull and a push have four, with two ends each
)


class OtherThreads:
    """The other threads of one rank's process.

    Args:
        mechanics: sim.event.machines.contended.Contended.
    """

    def __init__(self, mechanics):
        self._env, self._cores, self._begun_s = mechanics.env, mechanics.cores, 0.0
        self._random_key = mechanics.rank.random_key

    @cached_property
    def _moments(self) -> np.random.Generator:
        seed, replication, number = self._random_key
        return generator(seed, replication, number, "background")

    def begin_step(self, seconds: float, slept_s: float) -> None:
        """Begin a step's background work, spread over as long as the step before took without the `slept_s` of this one.

        It comes in pieces at random moments. All at once, it would delay the step's first phase. At even distances, workers that
        share cores and ports would stay in step for ever, which real ones do not.
        """
        now_s = self._env.now
        span_s, self._begun_s = now_s - self._begun_s - slept_s, now_s
        if seconds > ROUND_OFF_S:
            moments_s = now_s + span_s * np.sort(self._moments.random(PIECES))
            self._env.process(self._piecemeal(seconds / PIECES, moments_s))

    def _piecemeal(self, piece_s: float, moments_s: np.ndarray):
        """Do equal pieces one after another, each at its moment or later."""
        for moment_s in moments_s:
            yield self._env.timeout(max(0.0, moment_s - self._env.now))
            yield self._cores.work(piece_s)

    def work(self, seconds: float) -> None:
        """Do some background work at once."""
        if seconds > ROUND_OFF_S:
            self._cores.work(seconds)
