"""Horovod's timeline (HOROVOD_TIMELINE=FILE): what each reduction waited for and moved, and the costs that follow.

A timeline is rank 0's view, in the Trace Event Format (Google, 2016), one `pid` a tensor; `ts` in microseconds. A tensor's events:
NEGOTIATE_ALLREDUCE from the first rank that has it to the last, with a mark for each; ALLREDUCE around the rest: MEMCPY_IN_FUSION_BUFFER,
GLOO_ALLREDUCE (MPI_ALLREDUCE, NCCL_ALLREDUCE), MEMCPY_OUT_FUSION_BUFFER; the bytes are in its end. Tensors that were fused have the
same spans, one beside another: a `Reduction` is all of them.

    python -m calibration.importers.horovod_timeline FILE --ranks 4
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np

from calibration import lines
from sim import command
from sim.errors import WrongSetting

MICRO = 1e-6
NEVER = 0
ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int32": 4, "int64": 8, "uint8": 1, "int8": 1}
NEGOTIATION, WHOLE = "NEGOTIATE_ALLREDUCE", "ALLREDUCE"
INTO, OUT = "MEMCPY_IN_FUSION_BUFFER", "MEMCPY_OUT_FUSION_BUFFER"
MOVES = ("GLOO_ALLREDUCE", "MPI_ALLREDUCE", "NCCL_ALLREDUCE")


@dataclass
class Reduction:
    """One call of the library's allreduce.

    Args:
        tensors: that it fused.
        bytes: of all of them.
        ready_s: from the first rank that had any of them to the last that had all.
        agreed_s: from there to the begin of the work: cycles, and the negotiation.
        copied_s: into the fusion buffer and out of it.
        moved_s: the library's allreduce.
    """

    tensors: int = 0
    bytes: int = 0
    ready_s: float = 0.0
    agreed_s: float = 0.0
    copied_s: float = 0.0
    moved_s: float = 0.0


@dataclass(frozen=True)
class Costs:
    """What a simulation is told: of a ring's links, and of one copy.

    Args:
        latency_s, bandwidth_bytes_per_s: of a link, for 2 (n - 1) (L + bytes / (n G)) seconds a ring (Patarasuk and Yuan, 2009).
        copy_s: seconds for each byte of one copy, a `pack` slope.
        agreed_s: the median of a reduction's.
    """

    latency_s: float
    bandwidth_bytes_per_s: float
    copy_s: float
    agreed_s: float


@dataclass
class _Tensor:
    """What happened to a tensor since its negotiation began; spans in microseconds."""

    spans: dict[str, list[float]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    moving: int = NEVER  # which move it was in
    bytes: int = 0


def read(path: str | Path) -> list[Reduction]:
    """All reductions of a timeline, in order; a run that was cut short leaves out its last.

    Raises:
        WrongSetting: no such file, or no timeline of Horovod's.
    """
    done = _tensors(_events(path), str(path))
    if not done:
        raise WrongSetting("timeline", str(path), "a file written for HOROVOD_TIMELINE, with a reduction at least")
    moves: dict[int, list[_Tensor]] = {}
    for tensor in done:
        moves.setdefault(tensor.moving, []).append(tensor)
    return [_reduction(moves[number]) for number in sorted(moves)]


def costs(reductions: list[Reduction], ranks: int) -> Costs:
    """The costs of a ring of `ranks` ranks, as fitted.

    Raises:
        WrongSetting: fewer than two ranks, or nothing that moved.
    """
    if ranks < 2:
        raise WrongSetting("--ranks", ranks, "2 or more: nobody sums alone")
    sizes = np.array([r.bytes for r in reductions], float)
    moved_s = np.array([r.moved_s for r in reductions])
    kept = moved_s > 0
    if not kept.any():
        raise WrongSetting("timeline", "reductions without bytes that move", "one of several ranks")
    base_s, slope_s = lines.line(sizes[kept], moved_s[kept])
    steps = 2 * (ranks - 1)
    copied = [(r.copied_s / 2, r.bytes) for r in reductions if r.copied_s > 0]
    return Costs(
        latency_s=base_s / steps,
        bandwidth_bytes_per_s=steps / (ranks * slope_s) if slope_s else float("inf"),
        copy_s=float(np.median([seconds / size for seconds, size in copied])) if copied else 0.0,
        agreed_s=float(np.median([r.agreed_s for r in reductions])),
    )


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = command.Parser(prog="calibration.importers.horovod_timeline", description="What Horovod's timeline says.")
    parser.add_argument("timeline", metavar="FILE", help="written with HOROVOD_TIMELINE=FILE")
    parser.add_argument("--ranks", type=int, required=True, metavar="N", help="of the run")
    given = parser.parse_args(sys.argv[1:] if argv is None else argv)
    reductions = read(given.timeline)
    found = costs(reductions, given.ranks)
    print(f"{len(reductions)} reductions, {np.mean([r.tensors for r in reductions]):.1f} tensors each; medians:")
    for name in ("bytes", "ready_s", "agreed_s", "copied_s", "moved_s"):
        value = float(np.median([getattr(r, name) for r in reductions]))
        print(f"  {name:9} {value:,.0f}" if name == "bytes" else f"  {name:9} {value * 1e3:.3f} ms")
    print(f"as a ring of {given.ranks}: latency_s = {found.latency_s:.3g}, ", end="")
    print(f"bandwidth_bytes_per_s = {found.bandwidth_bytes_per_s:.3g}, pack slope_s = {found.copy_s:.3g}")
    return 0


def _events(path: str | Path) -> list[dict]:
    """The events of a file that may lack its end."""
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise WrongSetting("timeline", str(path), f"a file that can be read ({error.strerror})") from error
    try:
        return json.loads(text)
    except ValueError:
        pass
    for end in re.finditer(r"\}", text[::-1]):
        try:
            return json.loads(text[: len(text) - end.start()] + "]")
        except ValueError:
            if end.start() > 1000:  # longer than any event
                break
    raise WrongSetting("timeline", str(path), "a file written for HOROVOD_TIMELINE")


def _tensors(events: list[dict], path: str) -> list[_Tensor]:
    """Every tensor each time it was reduced."""
    at: dict[int, _Tensor] = {}
    done, moves, moving = [], 0, set()
    try:
        for event in events:
            phase, pid = event["ph"], event.get("pid")
            if phase == "B":
                name, tensor = event["name"], at.setdefault(pid, _Tensor())
                tensor.open.append(name)
                tensor.spans[name] = [event["ts"], event["ts"]]
                if name in MOVES:
                    moves += not moving
                    moving.add(pid)
                    tensor.moving = moves
            elif phase == "E" and at.get(pid) and at[pid].open:
                tensor = at[pid]
                name = tensor.open.pop()
                tensor.spans[name][1] = event["ts"]
                if name in MOVES:
                    moving.discard(pid)
                if name == WHOLE:
                    done.append(_finished(tensor, event))
                    del at[pid]
    except (KeyError, TypeError, AttributeError) as error:
        raise WrongSetting("timeline", path, f"a file written for HOROVOD_TIMELINE ({error!r})") from error
    unfinished = {tensor.moving for tensor in at.values()} | {NEVER}
    return [tensor for tensor in done if tensor.moving not in unfinished]


def _finished(tensor: _Tensor, event: dict) -> _Tensor:
    about = event["args"]
    tensor.bytes = ITEM_BYTES[about["dtype"]] * prod(int(size) for size in re.findall(r"\d+", about["shape"]))
    return tensor


def _reduction(tensors: list[_Tensor]) -> Reduction:
    def span(*names: str) -> float:
        """The longest time that one of the tensors was in these phases; fused ones are so side by side."""
        return MICRO * max(sum(end - begin for name, (begin, end) in t.spans.items() if name in names) for t in tensors)

    asked = [t.spans[NEGOTIATION] for t in tensors if NEGOTIATION in t.spans]
    first, last = min((b for b, _ in asked), default=0), max((e for _, e in asked), default=0)
    begun = min(t.spans[WHOLE][0] for t in tensors)
    return Reduction(
        tensors=len(tensors),
        bytes=sum(t.bytes for t in tensors),
        ready_s=MICRO * (last - first),
        agreed_s=MICRO * (begun - last) if asked else 0.0,
        copied_s=span(INTO, OUT),
        moved_s=span(*MOVES),
    )


if __name__ == "__main__":
    command.run("calibration.importers.horovod_timeline", main)
