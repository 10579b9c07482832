"""Horovod's timeline (HOROVOD_TIMELINE=FILE): the waiting and the bytes of each reduction.

A timeline is rank 0's view, in the Trace Event Format (Google, 2016), one `pid` a tensor; `ts` in microseconds. A tensor's events:
NEGOTIATE_ALLREDUCE from the first rank that has it to the last, with a mark for each (where the response cache knows the tensor, from
when rank 0 has it, without marks); ALLREDUCE around the rest: MEMCPY_IN_FUSION_BUFFER, one activity or several that move (NCCL_ALLREDUCE;
NCCL_REDUCESCATTER, MEMCPY_IN_HOST_BUFFER, MPI_ALLREDUCE, MEMCPY_OUT_HOST_BUFFER and NCCL_ALLGATHER if hierarchical; CCL's, DDL's, Gloo's),
MEMCPY_OUT_FUSION_BUFFER; the type and the shape are in its end (horovod/common/common.h and timeline.cc). ADASUM is read likewise. Tensors
that were fused have the same spans, one beside another: a `Reduction` is all of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from calibration.importers import logs
from calibration.importers.torch_profiler import ITEM_BYTES
from sim.base.errors import WrongSetting

NEGOTIATION, WHOLE = "NEGOTIATE_ALLREDUCE", "ALLREDUCE"
INTO, OUT = "MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER"
MICRO = 1e-6
NEVER = 0
MOST_TEXT = 2**29  # bytes: some twenty times as many in memory
LATEST = 1e15  # microseconds since the start: thirty years
MOVES = re.compile(  # activities that move bytes between ranks, or copy them for that
    r"\w+_(?:ALLREDUCE|REDUCE_?SCATTER|ALLGATHER|REDUCE|BCAST|BROADCAST|ALLTOALL)|MEMCPY_(?:IN|OUT)_(?:HOST|SHARED)_BUFFER"
)
OF_ADASUM = {"NEGOTIATE_ADASUM": NEGOTIATION, "ADASUM": WHOLE}
FIRST_RANK = "0"
ALLOWED = "a file written for HOROVOD_TIMELINE"


@dataclass(frozen=True)
class Reduction:
    """One call of the library's allreduce.

    Args:
        step: in which each tensor is reduced once.
        tensors: that it fused.
        bytes, items: of all of them: numbers, and what they take.
        had_s: when rank 0 had all of them, since the timeline's start; so is ended_s.
        moved_s: the library's allreduce.
        ended_s: when all of them were reduced.
    """

    step: int
    tensors: int
    bytes: int
    items: int
    had_s: float
    moved_s: float
    ended_s: float


@dataclass(frozen=True)
class Timeline:
    """All reductions in order, and the number of ranks that marked them; 0 if none did.

    Args:
        other_s: seconds of activities that neither move bytes nor copy them into the buffer, by name: waiting, and the like.
        without_tensor: reductions that ended without one, and are left out.
    """

    reductions: list[Reduction]
    ranks: int
    other_s: dict[str, float] = field(default_factory=dict)
    without_tensor: int = 0


@dataclass
class _Tensor:
    """A tensor's events since its negotiation began; spans and marks in microseconds."""

    pid: int
    spans: dict[str, list[float]] = field(default_factory=dict)
    marks: dict[str, float] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    lasted: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # activities of its reduction
    moving: int = NEVER  # which move it was in
    bytes: int = 0
    items: int = 0

    @property
    def had(self) -> float:
        """When rank 0 had it: its mark, or else the begin of the negotiation."""
        return self.marks.get(FIRST_RANK, self.spans.get(NEGOTIATION, self.spans[WHOLE])[0])

    @property
    def moved_s(self) -> float:
        """Seconds of activities that move bytes."""
        return MICRO * sum(lasted for name, lasted in self.lasted.items() if _moves(name))


def read(path: str | Path) -> Timeline:
    """A timeline's reductions; a run that was cut short leaves out its last.

    Raises:
        WrongSetting: no such file, or no timeline of Horovod's.
    """
    table = logs.trace_events(Path(path), "timeline", ALLOWED, MOST_TEXT, open_end=True)
    done = _tensors(table["traceEvents"], str(path))
    if not done:
        raise WrongSetting("timeline", str(path), f"{ALLOWED}, with a reduction at least")
    if still := [tensor for tensor in done if tensor.moving == NEVER]:
        names = ", ".join(dict.fromkeys(name for tensor in still for name in tensor.lasted)) or "none"
        raise WrongSetting(
            f"{path}: activities of a reduction", names, "one that moves, as NCCL_ALLREDUCE or MPI_ALLREDUCE"
        )
    moves: dict[int, list[_Tensor]] = {}
    for tensor in done:
        moves.setdefault(tensor.moving, []).append(tensor)
    together = [moves[number] for number in sorted(moves)]
    steps = _steps(together)
    found = [_reduction(of, step) for of, step in zip(together, steps, strict=True) if all(one.items for one in of)]
    if not found:
        raise WrongSetting("timeline", str(path), f"{ALLOWED}, with a reduction whose end says its tensor")
    other_s: dict[str, float] = defaultdict(float)
    for tensors in together:
        for name in {name for one in tensors for name in one.lasted if not (_moves(name) or name in (INTO, OUT))}:
            other_s[name] += MICRO * max(one.lasted.get(name, 0.0) for one in tensors)
    ranks = len({mark for tensor in done for mark in tensor.marks})
    return Timeline(found, ranks, dict(other_s), len(together) - len(found))


def _moves(name: str) -> bool:
    return MOVES.fullmatch(name) is not None


def _steps(together: list[list[_Tensor]]) -> list[int]:
    """The step of each reduction: a new one begins with a tensor that this one has had."""
    step, seen, steps = 0, set(), []
    for tensors in together:
        pids = {tensor.pid for tensor in tensors}
        if pids & seen:
            step, seen = step + 1, set()
        seen |= pids
        steps.append(step)
    return steps


def _tensors(events: list[dict], path: str) -> list[_Tensor]:
    """Every tensor each time it was reduced."""
    at: dict[int, _Tensor] = {}
    ended: dict[int, float] = {}  # when each tensor's last phase did
    done, moves, moving = [], 0, set()
    try:
        for event in events:
            phase, pid = event["ph"], event.get("pid")
            if phase == "B":
                name, tensor = OF_ADASUM.get(event["name"], event["name"]), at.setdefault(pid, _Tensor(pid))
                tensor.open.append(name)
                tensor.spans[name] = [_time(event, ended, path), _time(event, ended, path)]
                if _moves(name) and tensor.open[0] == WHOLE:
                    moves += not moving
                    moving.add(pid)
                    tensor.moving = moves
            elif phase == "X" and pid in at:
                at[pid].marks[event["name"]] = _time(event, {}, path)
            elif phase == "E" and at.get(pid) and at[pid].open:
                tensor = at[pid]
                name = tensor.open.pop()
                tensor.spans[name][1] = ended[pid] = _time(event, ended, path)
                if tensor.open == [WHOLE]:
                    tensor.lasted[name] += tensor.spans[name][1] - tensor.spans[name][0]
                if _moves(name):
                    moving.discard(pid)
                if name == WHOLE:
                    about = event.get("args") or {}
                    if "shape" in about:  # the library ends without a tensor what it gives up
                        tensor.items = prod(int(size) for size in re.findall(r"\d+", about["shape"]))
                        tensor.bytes = ITEM_BYTES[about["dtype"]] * tensor.items
                    done.append(at.pop(pid))
    except WrongSetting:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise WrongSetting("timeline", path, f"{ALLOWED} (an event that is none of its own: {event!r:.150})") from error
    unfinished = {tensor.moving for tensor in at.values()} - {NEVER}
    return [tensor for tensor in done if tensor.moving not in unfinished]


def _time(event: dict, ended: dict[int, float], path: str) -> float:
    """Microseconds of an event, which is not before the end of its tensor's last phase."""
    now = event["ts"]
    if isinstance(now, bool) or not (isinstance(now, int | float) and 0 <= now <= LATEST):
        raise WrongSetting("timeline", path, f"{ALLOWED} (ts {now!r:.20}, no microseconds)")
    if now < ended.get(event.get("pid"), 0):
        raise WrongSetting("timeline", path, f"{ALLOWED} (ts {now}, before what comes before it)")
    return now


def _reduction(tensors: list[_Tensor], step: int) -> Reduction:
    """Of tensors that are in the same phases side by side: the longest time of one is that of all."""
    return Reduction(
        step=step,
        tensors=len(tensors),
        bytes=sum(t.bytes for t in tensors),
        items=sum(t.items for t in tensors),
        had_s=MICRO * max(t.had for t in tensors),
        moved_s=max(t.moved_s for t in tensors),
        ended_s=MICRO * max(t.spans[WHOLE][1] for t in tensors),
    )
