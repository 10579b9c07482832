"""A rank's activities as they happen: kept for the trace, and written block by block so that a crash loses the last only."""

from __future__ import annotations

import json
import time
from pathlib import Path

from sim.traces import Activity, part_file

BLOCK_S = 0.5  # a crash loses at most what happened since


class Recorder:
    """Activities of one rank.

    Args:
        folder: where its part of the trace goes while it grows; none if no trace is kept.
    """

    def __init__(self, rank: int, folder: Path | None = None):
        self.activities = []
        self._written, self._flushed_s = 0, time.perf_counter()
        self._file = part_file(folder, rank).open("w") if folder else None

    def add(self, activity: Activity) -> None:
        """Keep one activity."""
        self.activities.append(activity)
        if self._file and time.perf_counter() - self._flushed_s > BLOCK_S:
            self.flush()

    def flush(self) -> None:
        """Write what has not been written."""
        if self._file is None:
            return
        self._file.writelines(json.dumps(row) + "\n" for row in self.activities[self._written :])
        self._file.flush()
        self._written, self._flushed_s = len(self.activities), time.perf_counter()

    def close(self) -> None:
        """Write the rest."""
        if self._file:
            self.flush()
            self._file.close()
            self._file = None
