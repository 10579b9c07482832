"""`Recorder`: it records a training loop as a trace, by three lines in it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from platform import python_version
from time import perf_counter
from typing import Any

from sim.base.errors import WrongSetting
from sim.recording.pauses import PAUSES
from trainsim.recording import place
from trainsim.recording.files import BLOCK_S, Files, Variables
from trainsim.recording.loops import Guard, Loop
from trainsim.recording.samples import Samples
from trainsim.recording.steps import Iteration, Pause, Steps, rows
from trainsim.recording.verdict import Verdict

WARMUP = 5
SCHEMA = "recorded/1"


class Recorder:
    """Records the steps of a training loop, one file a rank, in a folder that fit, check, plots and timelines read.

    >>> import tempfile
    >>> recorder = Recorder(tempfile.mkdtemp(), batch=32)
    >>> for number in recorder.steps(range(3)):
    ...     pass
    >>> recorder.close()

    PyTorch's hooks show the steps of optimisers and the allreduces of DistributedDataParallel. Nothing waits for a GPU.
    A training that has begun is never ended by it: what goes wrong is said in one line, and the loop goes on without it.

    Args:
        folder: of the run, the same for all ranks; new, or without a run.
        batch: samples of a batch that this rank gets from the loop, or a function of the batch; counted in the batch if None.
        workload: a name that the simulator knows, or a TOML file, of a model that is not PyTorch's or Keras's.
        warmup: steps that are not measured.

    Raises:
        WrongSetting: the folder cannot be written or has a run, or no such batch, workload or warm-up.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        batch: int | Callable[[Any], int] | None = None,
        *,
        workload: str | None = None,
        warmup: int = WARMUP,
    ):
        self._samples = Samples(batch)
        if workload is not None:
            from sim.model.workload import read

            read(workload)  # a wrong one is said now, and not when the run is over
        if isinstance(warmup, bool) or not isinstance(warmup, int) or not 0 <= warmup <= 10**6:
            raise WrongSetting("Recorder: warmup", warmup, "an integer from 0 to 1000000")
        if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
            raise WrongSetting("Recorder: folder", folder, "the name of a folder")
        self._place, again = place.here(), place.restarts()
        path = Path(folder)
        self.warmup, self._began_s, self._pid = warmup, perf_counter(), os.getpid()
        self._facts: dict[str, Any] = {
            "schema": SCHEMA,
            **self._place._asdict(),
            "began_unix_s": time.time(),
            "warmup": warmup,
            "workload": workload and (os.path.abspath(workload) if os.path.exists(workload) else workload),
            "versions": {"python": python_version()},
        }
        self._files = Files(path.with_name(f"{path.name}.{again}") if again else path, self._place.rank, self._facts)
        self._steps, self._count, self._paused_s, self._verdict = Steps(), 0, 0.0, Verdict(warmup)
        self._waiting: list[list[Iteration]] = []  # steps whose moments have not all happened yet
        self._turn: object | None = None  # the loop that is recorded
        self._thread = 0
        self.now: Callable[[], Any] = perf_counter
        self.samples_since = 0  # the last update, which an engine sees
        self._ended: list[Iteration] = []  # since the last block was written
        self._written_s = self._began_s
        self._iteration: Iteration | None = None
        self.iteration: Iteration | None = None  # the same, once it has its batch: what an engine adds to
        self._last_end_s: float | None = None
        self._engine: Any = None
        self._failed, self._closed, self._whole, self._pausing = False, False, True, False
        atexit.register(self.close)

    # ---- around a loop

    def steps(self, loader: Iterable) -> Loop:
        """The batches of a loader, one after another; each turn of a `for` over them is recorded."""
        with Guard(self):
            workers = getattr(loader, "num_workers", None)  # of PyTorch's DataLoader
            if "loader_workers" not in self._facts and type(workers) is int and workers >= 0:
                self._facts["loader_workers"] = workers  # written with what else becomes known
        return Loop(self, loader)

    @contextmanager
    def pause(self, activity: str = PAUSES[0]) -> Iterator[None]:
        """Within it the loop does what is no part of a step and gets a row of its own: "evaluate" or "checkpoint"."""
        iteration, pause, within = self.iteration, None, self._pausing
        with Guard(self):
            if activity not in PAUSES:
                self.warn(f"pause: given {activity!r}; allowed: {' or '.join(PAUSES)}; taken as {PAUSES[0]}")
            if iteration is not None:
                pause = Pause(activity if activity in PAUSES else PAUSES[0], self.now())
        self._pausing, self.iteration = True, None
        try:
            yield
        finally:
            self._pausing = within
            with Guard(self):
                if pause is not None and iteration is not None and not self._failed:
                    pause.end, self.iteration = self.now(), iteration
                    iteration.pauses.append(pause)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *raised) -> None:
        self._close(complete=raised[0] is None)

    def close(self) -> None:
        """Write what is left. At the end of the program it is called by itself."""
        self._close(complete=getattr(sys, "last_value", None) is None)

    # ---- for libraries that have the loop

    def keras(self):
        """A callback for `model.fit(..., callbacks=[recorder.keras()])`.

        Raises:
            WrongSetting: the batch is not known, because Keras does not show it.
        """
        from trainsim.recording.callbacks import keras

        self._samples.need("keras()")
        return keras(self)

    def lightning(self):
        """A callback for `Trainer(callbacks=[recorder.lightning()])` of Lightning."""
        from trainsim.recording.callbacks import lightning

        return lightning(self)

    def transformers(self):
        """A callback for `Trainer(callbacks=[recorder.transformers()])` of Hugging Face."""
        from trainsim.recording.callbacks import transformers

        return transformers(self)

    # ---- what a loop tells

    def begin(self, turn: object) -> None:
        """A loop begins, or goes on after it was left; the loop within another one is recorded."""
        if self._failed or self._pausing:
            return
        with Guard(self):
            if self._turn is not None and self._turn is not turn:
                if self._thread != threading.get_ident():
                    self.warn("a loop in another thread is not recorded: one loop at a time")
                    return
                if self.iteration is not None:
                    self.warn("a loop within a loop: the inner one is recorded")
            self._turn, self._thread = turn, threading.get_ident()
            self.iteration, self._iteration = None, Iteration(self.now(), resumed=True)

    def arrived(self, turn: object, batch: Any = None, samples: int | None = None) -> None:
        """The loop has its next batch."""
        iteration = self._iteration
        if turn is not self._turn or iteration is None:
            return
        try:
            if self._engine is None and "torch" in sys.modules:
                from trainsim.recording.pytorch import Torch

                self._engine = Torch(self)
                self._steps.joins = self._engine.sees_updates
            self._whole = False
            iteration.arrived = self.now()
            iteration.samples = self._samples.of(batch) if samples is None else samples
            self.samples_since += iteration.samples
            self.iteration = iteration
        except Exception as error:
            self.give_up(error)

    def done(self, turn: object) -> None:
        """The loop is done with its batch, and asks for the next one."""
        iteration = self.iteration
        if turn is not self._turn or iteration is None:
            return
        try:
            iteration.ended = now = self.now()
            if self._engine:
                self._engine.done(iteration)
            self.iteration, self._iteration = None, Iteration(now)
            self._ended.append(iteration)
            if perf_counter() - self._written_s > BLOCK_S:
                self._write()
        except Exception as error:
            self.give_up(error)

    def end(self, turn: object, whole: bool = True) -> None:
        """The loop has no more batches, or was left before it came to its end."""
        if turn is self._turn:
            if self._engine:
                self._engine.done()
            self._turn, self._iteration, self.iteration, self._whole = None, None, None, whole

    # ---- what an engine tells

    def learn(self, **facts: Any) -> None:
        """Keep what has become known of the run."""
        self._facts |= facts
        self._files.tell(self._facts)

    def describe(
        self,
        name: str,
        variables: Variables,
        optimiser: str | None = None,
        samples: int = 0,
        counted: dict[str, Any] | None = None,
    ) -> None:
        """Keep the model that is trained, the samples of a step, and what was `counted`; rank 0 writes it, unless the user did."""
        if self._place.rank == 0 and not self._facts["workload"]:
            said = (counted or {}) | ({"optimiser": optimiser} if optimiser else {})
            self._files.describe(name, variables, samples or self._samples.last, said)

    def learn_version(self, library: str, version: str) -> None:
        """Keep the version of the library that computes."""
        self.learn(engine=library, versions=self._facts["versions"] | {library: version})

    # ---- writing

    def _write(self) -> None:
        """Write a block: the steps that have ended, and on a GPU have happened."""
        if os.getpid() != self._pid:
            self.give_up(RuntimeError("the loop goes on in a process that was forked"))
            return
        self._written_s = perf_counter()
        ended, self._ended = self._ended, []
        for iteration in ended:
            self._waiting += self._steps.add(iteration)
        resolve = self._engine.resolve if self._engine else None
        while self._waiting and (resolve is None or resolve(self._waiting[0])):
            iterations = self._waiting.pop(0)
            for one in iterations:
                self._shift(one)
            of_step = rows(self._count, iterations, self._place.rank, self._place.world)
            self._files.add(of_step)
            self._verdict.add(of_step)
            self._count += 1
        self._files.flush()

    def _shift(self, one: Iteration) -> None:
        """Count from the beginning of the run, without what passed while the loop was left."""
        if one.resumed and self._last_end_s is not None:
            self._paused_s += max(0.0, one.asked - self._last_end_s)
        self._last_end_s = one.ended
        by_s = self._began_s + self._paused_s
        for holder, name in one.places():
            if (moment := getattr(holder, name)) is not None:
                setattr(holder, name, moment - by_s)

    def _close(self, complete: bool) -> None:
        if self._closed or os.getpid() != self._pid:  # a process that the loop's own has forked has nothing to write
            return
        self._closed = True
        atexit.unregister(self.close)
        with Guard(self):
            if self._engine:
                self._engine.close()
            self._write()
            self._waiting += self._steps.left()
            self._write()
            self.learn(complete=complete and self._whole and not self._failed, steps=self._count)
            said = self._verdict.said(self._place.world, self._facts.get("loader_workers"))
            if said and complete and self._place.rank == 0 and not self._failed:
                self._print(said)
        self._failed = True

    def give_up(self, error: BaseException) -> None:
        """Say what went wrong, once, and record no more."""
        if not self._failed:
            self._failed, self._turn, self._iteration, self.iteration = True, None, None, None
            why = type(error).__name__
            with suppress(Exception):  # one that cannot be told
                why = " ".join(str(error).split()) or why
            self.warn(f"nothing more is recorded: {why}")

    def warn(self, said: str) -> None:
        """Say something once, on stderr and in the trace."""
        if said not in self._facts.setdefault("notes", []):
            self._facts["notes"].append(said)
            self._print(f"rank {self._place.rank}: {said}")

    def _print(self, said: str) -> None:
        if sys.stderr is not None:
            with suppress(Exception):  # it may be closed, or its disk full
                print(f"trainsim Recorder: {said}", file=sys.stderr)
