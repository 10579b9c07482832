"""The rows of a run, as a trace and as a timeline: what the event world records."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.engine.arrays import rows as arrays
from sim.engine.kernel import activities
from sim.recording.activity import Activity

if TYPE_CHECKING:
    import pandas as pd

    from sim.engine.arrays.shape import Shape
    from sim.engine.kernel.state import State
    from sim.recording.horovod_timeline import Timeline

BLOCK = 2**16  # rows that are taken at a time: some megabytes
ROWS_OF_AN_INSTRUCTION = 8  # at most, besides one a rank and one a variable
NAMES = {
    activities.SLEEP: "sleep",
    activities.INPUT: "input",
    activities.TO_DEVICE: "copy to device",
    activities.COMPUTE: "compute",
    activities.PACK: "pack",
    activities.TO_HOST: "copy to host",
    activities.SEND: "send",
    activities.RECEIVE: "receive",
    activities.WAIT: "wait",
    activities.REDUCE: "reduce",
    activities.UPDATE: "update",
    activities.EVALUATE: "evaluate",
}


class Asked(NamedTuple):
    """What a run records."""

    trace: bool = False
    timeline: Timeline | None = None

    @property
    def anything(self) -> bool:
        """Whether it records anything."""
        return self.trace or self.timeline is not None


NOTHING = Asked()


class Rows:
    """The rows of a run, which are taken from its arrays a block at a time.

    Args:
        shape: of the run.
        state: of it; from now on it adds rows, and takes no short cuts.
        asked: what it records.
    """

    def __init__(self, shape: Shape, state: State, asked: Asked):
        self._state, self._blocks = state, list[np.ndarray]()
        self._least_kind = activities.SLEEP if asked.trace else activities.READY
        numbers = state.record
        spare = ROWS_OF_AN_INSTRUCTION * numbers["instruction_count"][0] + numbers["ranks"][0] + numbers["variables"][0]
        numbers["traced"], numbers["timed"], numbers["activity_room"] = 1, asked.timeline is not None, BLOCK
        numbers["rings"] = numbers["memo"] = 0
        for name, array in arrays.rows(shape, BLOCK + int(spare)).items():
            state.place(name, array)

    def take(self) -> None:
        """Empty the block."""
        numbers = self._state.record
        block = self._state.arrays["activity"][: int(numbers["activities"][0])]
        self._blocks.append(block[block["kind"] >= self._least_kind])
        numbers["activities"] = numbers["short"] = 0

    def joined(self) -> np.ndarray:
        """All rows, in the order in which they were added."""
        self.take()
        return np.concatenate(self._blocks)


def table(rows: np.ndarray) -> pd.DataFrame:
    """The activities, with the columns of sim.recording.activity.Activity."""
    import pandas as pd

    rows = rows[rows["kind"] < activities.READY]
    names = np.array([NAMES.get(kind, "") for kind in range(activities.READY)], object)
    found = {"start_s": rows["start_s"], "end_s": rows["end_s"], "activity": names[rows["kind"]]}
    found |= {name: rows[name].astype(np.int64) for name in ("rank", "step", "samples", "bytes", "peer", "version")}
    return pd.DataFrame(found, columns=list(Activity._fields))


def fill(timeline: Timeline, rows: np.ndarray) -> None:
    """Tell a timeline what it collects."""
    rows = rows[rows["kind"] >= activities.READY]
    names = ("kind", "rank", "step", "start_s", "end_s", "samples", "bytes")
    for kind, rank, number, start_s, end_s, *between in zip(*(rows[name].tolist() for name in names), strict=True):
        first, stop = map(int, between)
        if kind == activities.READY:
            timeline.ready(rank, int(number), end_s)
        elif kind == activities.CYCLE:
            timeline.cycle(end_s)
        elif kind == activities.AGREED:
            timeline.agreed(range(first, stop), end_s)
        elif kind == activities.COPIED:
            timeline.copied(slice(first, stop), start_s, end_s)
        else:
            timeline.moved(slice(first, stop), start_s, end_s)
