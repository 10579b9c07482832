"""A simulated run of protocol horovod as the timeline that Horovod itself would write (HOROVOD_TIMELINE=FILE): rank 0's view.

The Trace Event Format with one `pid` a tensor and `ts` in whole microseconds, as horovod/common/timeline.cc (0.28) writes it:
NEGOTIATE_ALLREDUCE from the first rank that has a gradient to the agreement that all have it, with a mark for each rank; ALLREDUCE
around MEMCPY_IN_FUSION_BUFFER, GLOO_ALLREDUCE and MEMCPY_OUT_FUSION_BUFFER, each of all tensors that share the buffer, or the middle one
alone; CYCLE_START as with HOROVOD_TIMELINE_MARK_CYCLES=1. `calibration.fit --from horovod-timeline` reads it like a real one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sim import collectives
from sim.base.errors import WrongSetting
from sim.base.files import write_text

if TYPE_CHECKING:
    from pathlib import Path

    from sim.job.scenario import Scenario

NEGOTIATION, WHOLE = "NEGOTIATE_ALLREDUCE", "ALLREDUCE"
INTO, MOVE, OUT = "MEMCPY_IN_FUSION_BUFFER", "GLOO_ALLREDUCE", "MEMCPY_OUT_FUSION_BUFFER"
CYCLE = "CYCLE_START"


def check(given: object) -> None:
    """Refuse what collects nothing, such as the name of a file.

    Raises:
        WrongSetting: it is no Timeline.
    """
    if not isinstance(given, Timeline):
        raise WrongSetting("timeline", given, "a sim.recording.horovod_timeline.Timeline of the scenario")


class Timeline:
    """Collects events of the verbs of sim.verbs.fusion; seconds since the start.

    Raises:
        WrongSetting: the protocol is not horovod.
    """

    def __init__(self, scenario: Scenario):
        if not scenario.protocol.uses("reduce_in_cycles"):
            raise WrongSetting("--horovod-timeline", scenario.protocol.name, "--protocol horovod")
        self._variables = scenario.summed
        self._starts = [piece.start for piece in collectives.pieces(self._variables, fused=False)]
        self._ready: dict[int, list[tuple[int, float]]] = {}
        self._free_s = [0.0] * len(self._variables)  # when each tensor's last reduction ended
        self._events: list[dict] = []
        self._moved = False  # what the buffer holds

    def ready(self, rank: int, count: int, now_s: float) -> None:
        """A rank has its `count`th gradient since the start, counted from 1; rank 0 hears of it when all have it."""
        self._ready.setdefault(count, []).append((rank, now_s))

    def cycle(self, now_s: float) -> None:
        """A cycle begins that finds gradients ready everywhere."""
        self._events.append({"ph": "i", "name": CYCLE, "ts": _micro(now_s), "s": "g"})

    def agreed(self, counts: range, now_s: float) -> None:
        """All ranks have these gradients, counted from 0 as they became ready."""
        for count in counts:
            variable = len(self._variables) - 1 - count % len(self._variables)
            marks = sorted(self._ready.pop(count + 1), key=lambda mark: mark[1])
            marks = [(rank, max(ready_s, self._free_s[variable])) for rank, ready_s in marks]
            self._begin(NEGOTIATION, [variable], marks[0][1])
            for rank, ready_s in marks:
                self._add([variable], ready_s, ph="X", name=str(rank), dur=0)
            self._add([variable], now_s, ph="E")

    def copied(self, piece: slice, start_s: float, end_s: float) -> None:
        """Tensors were copied into the buffer or, once they are summed, out of it."""
        variables = self._of(piece)
        if not self._moved:
            self._begin(WHOLE, variables, start_s)
        self._span(OUT if self._moved else INTO, variables, start_s, end_s)
        if self._moved:
            self._end(variables, end_s)

    def moved(self, piece: slice, start_s: float, end_s: float) -> None:
        """Tensors were summed; one alone has not been copied."""
        variables = self._of(piece)
        if len(variables) == 1:
            self._begin(WHOLE, variables, start_s)
        self._span(MOVE, variables, start_s, end_s)
        self._moved = len(variables) > 1
        if not self._moved:
            self._end(variables, end_s)

    def write(self, path: str | Path) -> None:
        """Write the file whole, or not at all.

        Raises:
            WrongSetting: a folder that cannot be written.
        """
        names = []
        for pid, variable in enumerate(self._variables, 1):
            names.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": variable.name}})
            names.append({"name": "process_sort_index", "ph": "M", "pid": pid, "args": {"sort_index": pid}})
        events = sorted(self._events, key=lambda event: event["ts"])  # stable: equal times keep their order
        lines = ",\n".join(json.dumps(event) for event in [*names, *events])
        write_text(path, f"[\n{lines}]")

    def _of(self, piece: slice) -> list[int]:
        """The variables of a piece of the vector that is summed, the last first, as they became ready."""
        return [v for v, start in enumerate(self._starts) if piece.start <= start < piece.stop][::-1]

    def _span(self, name: str, variables: list[int], start_s: float, end_s: float) -> None:
        self._begin(name, variables, start_s)
        self._add(variables, end_s, ph="E")

    def _begin(self, name: str, variables: list[int], start_s: float) -> None:
        self._add(variables, start_s, ph="B", name=name)

    def _end(self, variables: list[int], end_s: float) -> None:
        self._moved = False
        for variable in variables:
            shape = str(list(self._variables[variable].shape))
            self._add([variable], end_s, ph="E", args={"dtype": "float32", "shape": shape})
            self._free_s[variable] = end_s

    def _add(self, variables: list[int], at_s: float, **event) -> None:
        self._events += [{**event, "ts": _micro(at_s), "pid": variable + 1} for variable in variables]


def _micro(seconds: float) -> int:
    return round(seconds * 1e6)
