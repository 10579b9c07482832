"""A run that is started again where it dies: its checkpoint, and the parts of the trace that earlier attempts have left.

The supervisor (real.launching.supervisor) makes the folder and keeps in it the parts of each attempt that died. Rank 0 keeps in it the
checkpoint, when the run began, and where and when each attempt went on. All times are seconds since the first attempt's common start.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim.base.files import write_text, write_whole
from sim.recording import traces
from sim.recording.traces import Activity, Trace

FOLDER = "TRAINSIM_ATTEMPTS"  # in the environment of ranks that are supervised
CHECKPOINT, SETTINGS, END = "checkpoint.npz", "settings.json", "end.json"
LOST, RESTART = "lost", "restart"  # activities


class Checkpoint(NamedTuple):
    """The state that a run continues from.

    Args:
        step: the next.
        parameters: float32 (parameters,).
        optimiser: its state, arrays.
        evaluations: step, loss and accuracy of each so far.
    """

    step: int
    parameters: np.ndarray
    optimiser: list[np.ndarray]
    evaluations: list[tuple[int, float, float]]

    @property
    def size_bytes(self) -> int:
        """Bytes of its numbers."""
        return self.parameters.nbytes + sum(array.nbytes for array in self.optimiser)


class Attempts:
    """The folder of a supervised run.

    Args:
        folder: where.
    """

    def __init__(self, folder: Path):
        self._folder = folder

    @classmethod
    def here(cls) -> Attempts | None:
        """The supervision of this rank's run, if there is any."""
        return cls(Path(os.environ[FOLDER])) if FOLDER in os.environ else None

    # ---- checkpoints

    @property
    def every(self) -> int:
        """Steps between checkpoints."""
        return self._read(SETTINGS)["every"]

    def begin(self, every: int) -> None:
        """Begin a run without attempts."""
        self._write(SETTINGS, {"every": every})

    def keep(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint, whole or not at all."""
        arrays = {f"optimiser_{n}": array for n, array in enumerate(checkpoint.optimiser)}
        arrays |= {"step": np.array(checkpoint.step), "parameters": checkpoint.parameters}
        arrays |= {"evaluations": np.array(checkpoint.evaluations).reshape(-1, 3)}
        write_whole(self._folder / CHECKPOINT, lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]

    def checkpoint(self) -> Checkpoint | None:
        """The last one; None if there is none."""
        if not (self._folder / CHECKPOINT).exists():
            return None
        with np.load(self._folder / CHECKPOINT) as stored:
            state = [stored[f"optimiser_{n}"] for n in range(len(stored.files) - 3)]
            evaluations = [(int(step), loss, accuracy) for step, loss, accuracy in stored["evaluations"].tolist()]
            return Checkpoint(int(stored["step"]), stored["parameters"], state, evaluations)

    # ---- attempts

    def resumed(self, counter_s: float, step: int) -> float:
        """An attempt trains from `step` on, by rank 0's perf_counter; when the run began, by the same."""
        file, settings = self._resumed(self._died), self._read(SETTINGS)
        settings.setdefault("began_s", counter_s)
        self._write(SETTINGS, settings)
        self._write(file, {"at_s": counter_s - settings["began_s"], "step": step})
        return settings["began_s"]

    def died(self, counter_s: float, parts: Path) -> None:
        """An attempt has ended, by the supervisor's perf_counter (it is on rank 0's machine); take its parts."""
        number, began_s = self._died, self._read(SETTINGS).get("began_s", counter_s)
        if parts.exists():
            parts.rename(self._folder / f"parts-{number}")
        self._write(f"died-{number}.json", {"at_s": counter_s - began_s})

    def end(self) -> None:
        """The run is over, and answered."""
        self._write(END, {})

    @property
    def ended(self) -> bool:
        """Whether it is; a rank that dies afterwards does no harm."""
        return (self._folder / END).exists()

    @property
    def _died(self) -> int:
        return len(list(self._folder.glob("died-*.json")))

    @staticmethod
    def _resumed(number: int) -> str:
        return f"resumed-{number}.json"

    def _write(self, name: str, table: dict[str, Any]) -> None:
        write_text(self._folder / name, json.dumps(table))

    def _read(self, name: str) -> dict[str, Any]:
        return json.loads((self._folder / name).read_text())

    # ---- the trace of the whole run

    def whole(self, trace: Trace) -> Trace:
        """The trace of the last attempt with those before it: work that was done in vain is `lost`, then comes `restart`."""
        kept, from_step, from_s, rows = [], trace.header.steps + trace.header.warmup, np.inf, list(_activities(trace))
        if (self._folder / self._resumed(self._died)).exists():
            last = self._read(self._resumed(self._died))
            from_step, from_s = last["step"], last["at_s"]
        for number in reversed(range(self._died)):
            died_s = self._read(f"died-{number}.json")["at_s"]
            if not (self._folder / self._resumed(number)).exists():  # it died before it trained
                continue
            resumed, before = self._read(self._resumed(number)), self._rows(number, from_step)
            kept += [*before, *_in_vain(before, trace.header.ranks, resumed["at_s"], died_s, from_s, from_step)]
            from_step, from_s = resumed["step"], resumed["at_s"]
        details = trace.header.details | {"restarts": self._died}
        return Trace.of(replace(trace.header, details=details), [*kept, *rows])

    def _rows(self, number: int, before_step: int) -> list[Activity]:
        """An attempt's activities that were not in vain."""
        parts = self._folder / f"parts-{number}"
        found = _activities(traces.read_parts(parts)) if parts.exists() else []
        return [row for row in found if row.step < before_step]


def _activities(trace: Trace) -> list[Activity]:
    return [Activity(*row) for row in trace.rows[list(Activity._fields)].itertuples(index=False)]


def _in_vain(
    kept: list[Activity], ranks: int, began_s: float, died_s: float, resumed_s: float, step: int
) -> list[Activity]:
    """The lost time of each rank: after its last activity that counts, and until the next attempt trains."""
    found = []
    for rank in range(ranks):
        end_s = max((row.end_s for row in kept if row.rank == rank), default=began_s)
        dead_s = max(end_s, died_s)
        found.append(Activity(end_s, dead_s, rank, step, LOST, version=step))
        if np.isfinite(resumed_s):
            found.append(Activity(dead_s, max(dead_s, resumed_s), rank, step, RESTART, version=step))
    return found


def shares(trace: Trace) -> dict[str, float]:
    """The shares of checkpoints, lost work and restarts in the time of a supervised run, at rank 0."""
    rows = trace.rows[trace.rows["rank"] == 0]
    seconds, whole_s = rows["end_s"] - rows["start_s"], rows["end_s"].max()
    return {name: float(seconds[rows["activity"] == name].sum() / whole_s) for name in ("checkpoint", LOST, RESTART)}
