"""What one rank of a text does, as rows of a trace: what computes, moves, joins a sum; and waits, where nothing of the rank computes."""

from __future__ import annotations

import math
import threading

from real.launching.clock import Clock
from real.recording.recorder import Recorder
from sim.base.activity import NOBODY, Activity
from sim.language.pieces import Piece
from sim.language.rank import Rank


class Record:
    """The rows of one rank.

    Args:
        by_updates: rows are numbered by the updates that the rank has made, as each gradient is one.

    Attributes:
        version: updates that the weights at hand have seen.
        computed: the version on which the gradient at hand was begun.
    """

    def __init__(self, me: Rank, clock: Clock, recorder: Recorder, by_updates: bool = False):
        self._by_updates = by_updates
        self._me, self._clock, self._recorder = me, clock, recorder
        self.version = self.computed = 0
        self._works, self._idle_from_s, self._lock = 0, 0.0, threading.Lock()
        self._first: Piece | None = None  # that was updated

    @property
    def round(self) -> int:
        """The round of the rank, from 0, by which its rows are numbered."""
        return max(0, self._me.round)

    @property
    def now_s(self) -> float:
        """Seconds since the run's common start."""
        return self._clock()

    def add(
        self, activity: str, start_s: float, end_s: float, samples=0.0, bytes=0.0, peer=NOBODY, version=None, step=None
    ) -> None:
        """An activity that has ended."""
        me, version = self._me, self.version if version is None else version
        step = self.round if step is None else step
        step = self.version - (activity == "update") if self._by_updates else step
        self._recorder.add(
            Activity(start_s, end_s, me.rank, step, activity, round(samples), round(bytes), peer, version)
        )

    def updated(self, piece: Piece) -> bool:
        """A piece of the weights has been updated; whether it is the rank's first, so that the weights have another version."""
        self._first = self._first or piece
        self.version += piece == self._first
        return piece == self._first

    def begin_work(self) -> None:
        """A text of the rank begins to compute or sleep: until it ends nothing counts as waiting."""
        with self._lock:
            self._works += 1

    def end_work(self) -> None:
        """It has ended."""
        with self._lock:
            self._works -= 1
            self._idle_from_s = max(self._idle_from_s, self.now_s)

    def waited(self, start_s: float, end_s: float, peer: int = NOBODY, step: int | None = None) -> None:
        """A text has waited, which counts where no other one computes or has waited, too."""
        with self._lock:
            idle_s = math.inf if self._works else self._idle_from_s
            self._idle_from_s = max(self._idle_from_s, end_s)
        self.add("wait", min(end_s, max(start_s, idle_s)), end_s, peer=peer, step=step)
