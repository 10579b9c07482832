"""A gradient whose variables are ready one by one, computed in a thread of its own while the rank's text communicates.

The main thread alone calls MPI. The text that computes, if another runs beside it, has a second thread, and TensorFlow a third.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from sim.verbs.me import Layer

from real.worlds.polling import poll
from sim.base.errors import RunFailed
from sim.recording.traces import NOBODY

NONE_READY = "deadlock: me.cycle waits for gradients, of which none will be ready"
ALL = 1 - 1e-9  # of a gradient's computing time, but for rounding


class Layers:
    """The variables of one rank's gradients, by their numbers.

    Args:
        me: real.worlds.mpi.Rank, whose trainee has real.training.layered.LayeredGradients.
        variables: in each variable of the model, the numbers that texts give to its pieces, and where these lie in it.
        into: where the gradient of each number goes, float32.
        holders: the server of each number, where gradients go to servers; without, a gradient that is ready is counted (`me.ready`), since
            ranks negotiate about it.
    """

    def __init__(
        self,
        me,
        variables: Sequence[Sequence[tuple[int, slice]]],
        into: dict[int, np.ndarray],
        holders: Sequence[int] | None = None,
    ):
        self._me, self._variables, self._into, self._holders = me, variables, into, holders
        self._changed, self._pool = threading.Condition(), ThreadPoolExecutor(2)
        self._open, self._made = set(), set()  # numbers whose parameters may be read, and whose gradient is there
        self._graph: Future | None = None
        self._beside: Future | None = None
        self._share, self._since_s, self._cycle_s = 0.0, 0.0, -math.inf

    # ---- in the text

    def compute(self, part: Layer) -> None:
        """Wait for the forward or the backward pass through one variable, while TensorFlow computes in the background."""
        if self._graph is None:
            self._begin()
        if not part.backward:
            self._release(range(len(self._into)) if part.variable is None else [part.variable])
        if self._graph is None:
            self._start()
        self._share += part.share
        hands_over = part.backward and part.variable is not None
        if hands_over:
            self._wait(lambda: part.variable in self._made)
        if self._share > ALL:
            self._wait(self._graph.done)
            self._graph.result()
        if hands_over and self._holders is None:
            with self._changed:
                self._me.ready += 1
                self._changed.notify_all()
        if part.last:
            self._end()

    def _begin(self) -> None:
        me = self._me
        if not me.has_fetched:
            me.at_hand.begin_gradient()
        me.idle_from_s = math.inf
        self._minibatch = x, _ = me.minibatch()
        me.samples, me.minibatches, me.oldest = len(x), 1, me.version
        self._open, self._made, self._share = set(), set(), 0.0

    def _start(self) -> None:
        self._since_s = self._me.now_s
        self._graph = self._pool.submit(self._run)
        self._graph.add_done_callback(self._notify)

    def _end(self) -> None:
        """Take note that the gradient is complete."""
        self._wait(self._graph.done)
        end_s, self._graph = self._graph.result(), None
        self._me.idle_from_s = end_s
        self._me.record("compute", self._since_s, end_s, samples=len(self._minibatch[0]))

    def _release(self, numbers) -> None:
        with self._changed:
            self._open.update(numbers)
            self._changed.notify_all()

    def _wait(self, done) -> None:
        """Wait until a condition holds, or computing has failed. Messages move meanwhile, if this is the thread that calls MPI."""
        if threading.current_thread() is threading.main_thread():
            poll(lambda: self._me.settle() or done() or self._graph.done(), "a gradient")
        else:
            with self._changed:
                self._changed.wait_for(lambda: done() or self._graph.done())
        if not done():
            self._graph.result()

    def _notify(self, _=None) -> None:
        with self._changed:
            self._changed.notify_all()

    # ---- in the graph, in a thread of TensorFlow's

    def _run(self) -> float:
        """Compute; the time at which that has ended, seconds."""
        self._me.trainee.gradients.by_layer(self, *self._minibatch)
        return self._me.now_s

    def read(self, variable: int) -> np.ndarray:
        """The parameters of a variable, once the text has released them."""
        numbers, start_s = [number for number, _ in self._variables[variable]], self._me.now_s
        with self._changed:
            if not self._open.issuperset(numbers):
                self._changed.wait_for(lambda: self._open.issuperset(numbers))
                self._paused(start_s, numbers[-1])
        return self._me.variable(variable)

    def _paused(self, from_s: float, number: int) -> None:
        """Record that computing has waited for parameters until now."""
        me = self._me
        me.record("compute", self._since_s, from_s)
        me.record("wait", from_s, peer=NOBODY if self._holders is None else self._holders[number])
        self._since_s = me.now_s

    def made(self, variable: int, gradient: np.ndarray) -> None:
        """Put the gradient of a variable where it is sent or summed from."""
        flat = gradient.ravel()
        for number, piece in self._variables[variable]:
            np.copyto(self._into[number], flat[piece])
        with self._changed:
            self._made.update(number for number, _ in self._variables[variable])
            self._changed.notify_all()

    # ---- two texts

    def beside(self, computing, communicating):
        """Run both texts at once, until both have ended; the one that computes is in another thread."""
        self._me.idle_from_s = math.inf
        self._beside = self._pool.submit(self._follow, computing)
        self._beside.add_done_callback(self._notify)
        yield from communicating
        self._beside.result()
        self._beside = None

    def _follow(self, computing) -> None:
        for _ in computing:
            pass
        self._me.idle_from_s = min(self._me.idle_from_s, self._me.now_s)

    def cycle(self, cycle_s: float) -> None:
        """Sleep until the first cycle in which this rank has a gradient that has not been reduced.

        Cycles before it are left out: no gradient would be ready at all ranks.
        """
        me, asleep_s = self._me, self._me.now_s
        begin_s = max(asleep_s, self._cycle_s + cycle_s)
        with self._changed:
            self._changed.wait_for(lambda: me.ready > me.book.reduced or self._beside is None or self._beside.done())
        if me.ready <= me.book.reduced:
            self._complain()
        if me.now_s > begin_s and cycle_s:
            begin_s += math.ceil((me.now_s - begin_s) / cycle_s) * cycle_s
        time.sleep(max(0.0, begin_s - me.now_s))
        self._cycle_s = me.now_s
        me.waited(asleep_s, self._cycle_s)

    def _complain(self) -> None:
        """Fail: no further gradient will be ready.

        Raises:
            RunFailed: no gradient is left. If the text that computes has failed, its own error is raised.
        """
        if self._beside is not None:
            self._beside.result()
        raise RunFailed(NONE_READY)

    def end(self) -> None:
        """End the threads: the run is over."""
        self._pool.shutdown()
