"""A rank's activities as they happen: kept for the trace, and written block by block so that a crash loses the last only."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from sim.base.errors import RunFailed, of_system
from sim.recording.traces import Activity, part_file

BLOCK_S = 0.5  # a crash loses at most what happened since


class Recorder:
    """Activities of one rank.

    Args:
        folder: where its part of the trace goes while it grows; none if no trace is kept.
        warmup: steps that are not measured.
    """

    def __init__(self, rank: int, folder: Path | None = None, warmup: int = 0):
        self.rank, self.warmup, self.activities = rank, warmup, []
        self._used_s = self._began_s = time.process_time()
        self._written, self._flushed_s, self._lock = 0, time.perf_counter(), threading.Lock()
        self._file = part_file(folder, rank).open("w", encoding="utf-8") if folder else None

    def add(self, activity: Activity) -> None:
        """Keep one activity."""
        if activity.rank == self.rank:
            self._used_s = time.process_time()
            if activity.step < self.warmup:
                self._began_s = self._used_s
        self.activities.append(activity)
        if self._file and time.perf_counter() - self._flushed_s > BLOCK_S:
            self.flush()

    @property
    def cpu_s(self) -> float:
        """Processor seconds of this process, all threads, in the steps after its warm-up; the first has a start's expenses."""
        return self._used_s - self._began_s

    def flush(self) -> None:
        """Write what has not been written."""
        if self._file is None:
            return
        with self._lock:  # a rank may compute in one thread and communicate in another
            rows = self.activities[self._written :]
            try:
                self._file.writelines(json.dumps(row) + "\n" for row in rows)
                self._file.flush()
            except OSError as error:
                raise RunFailed(f"{self._file.name} could not be written ({of_system(error)})") from error
            self._written, self._flushed_s = self._written + len(rows), time.perf_counter()

    def close(self) -> None:
        """Write the rest."""
        if self._file:
            self.flush()
            self._file.close()
            self._file = None
