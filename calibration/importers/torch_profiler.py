"""Traces of torch.profiler (Kineto), .json or .json.gz: computing and collectives of each step of one rank.

A trace is the Trace Event Format (Google, 2016): complete events (`ph` X) with `ts` and `dur` in microseconds. Those used are
`ProfilerStep#N` (profiler.step(), category user_annotation), kernels, copies and memsets of the GPU, and without a GPU operators of the CPU
(cpu_op). A kernel belongs to the step that launched it, known by `args.correlation`. NCCL's kernels are known by their names. Newer
versions write their sizes as `In msg nelems`, `dtype` and `Group size`. Ranks are known by `distributedInfo`, or by the name of the
file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibration.importers.torch_events import (
    LATEST,
    MOST_RANKS,
    ON_CPU,
    STEP,
    Event,
    device_of,
    event_of,
    place_of,
    steps_of,
    whole,
)

MICRO = 1e-6
OF_GPU = {"kernel", "gpu_memcpy", "gpu_memset", "concurrent_kernel", "memcpy", "memset"}
LAUNCHES = {"cuda_runtime", "cuda_driver", "runtime", "hip_runtime"}
OF_LIBRARY = re.compile(r"nccl|rccl|gloo:|c10d::|record_param_comms", re.IGNORECASE)
CALL = re.compile(r"^gloo:|^nccl(?:Dev)?Kernel|^nccl:", re.IGNORECASE)
COLLECTIVES = {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter"}
ITEM_BYTES = {"float": 4, "float32": 4, "half": 2, "float16": 2, "bfloat16": 2, "double": 8, "float64": 8}
ITEM_BYTES |= {"int": 4, "int32": 4, "long": 8, "int64": 8, "byte": 1, "uint8": 1, "char": 1, "bool": 1}


class Call(NamedTuple):
    """One collective at one rank: which, its bytes (None if they are not said), the number of its ranks (0 likewise), seconds."""

    collective: str
    bytes: int | None
    group: int
    seconds: float


class Ranked(NamedTuple):
    """The contents of one rank's trace.

    Args:
        rank: its number; None if nothing says it.
        world: the number of ranks; None likewise.
        steps: their numbers, one after another.
        length_s, compute_s: of each step, shape (steps,); a step computes when a kernel that is not the library's runs.
        library_s, hidden_s: seconds of the library's kernels, and seconds of these in which others run.
        calls: of each step, in order.
        device: the GPU's name; "" without one.
    """

    rank: int | None
    world: int | None
    steps: tuple[int, ...]
    length_s: np.ndarray
    compute_s: np.ndarray
    library_s: np.ndarray
    hidden_s: np.ndarray
    calls: tuple[tuple[Call, ...], ...]
    device: str


def read(path: str | Path) -> Ranked:
    """The contents of the trace of one rank.

    Raises:
        WrongSetting: the file is no such trace, has fewer than two steps, or has impossible numbers.
    """
    path = Path(path)
    table = whole(path)
    kinds: dict[str, list[Event]] = {}
    for event in table["traceEvents"]:
        if isinstance(event, dict) and event.get("ph") == "X" and isinstance(event.get("cat"), str):
            kinds.setdefault(event["cat"].lower(), []).append(event_of(event, str(path)))
    windows = steps_of(kinds, str(path))
    gpu = [one for kind in OF_GPU for one in kinds.get(kind, ())]
    starts = [window.start for _, window in windows]
    launched = {
        one.args["correlation"]: one.start
        for kind in LAUNCHES
        for one in kinds.get(kind, ())
        if isinstance(one.args.get("correlation"), int)
    }
    work = gpu or [one for kind in ON_CPU for one in kinds.get(kind, ())]
    if not gpu:
        work += [one for one in kinds.get("user_annotation", ()) if CALL.match(one.name)]
    by_step: list[list[Event]] = [[] for _ in windows]
    for one in work:
        correlation = one.args.get("correlation")
        at = launched.get(correlation, one.start) if isinstance(correlation, int) else one.start
        number = bisect_right(starts, at) - 1
        if number >= 0 and at < windows[number][1].end:
            by_step[number].append(one)
    rank, world = place_of(table, path)
    return _ranked(rank, world, windows, by_step, bool(gpu), device_of(table) if gpu else "")


def _ranked(
    rank, world, windows: list[tuple[int, Event]], by_step: list[list[Event]], gpu: bool, device: str
) -> Ranked:
    spans = [[_union(_of(events, library)) for library in (False, True)] for events in by_step]
    length_s = _lengths(windows, spans if gpu else None)
    compute_s, library_s = (np.array([MICRO * _total(pair[i]) for pair in spans]) for i in (0, 1))
    together_s = np.array([MICRO * _total(_union([*pair[0], *pair[1]])) for pair in spans])
    calls = tuple(
        tuple(_call(one) for one in sorted(events, key=lambda one: one.start) if CALL.match(one.name))
        for events in by_step
    )
    return Ranked(
        rank,
        world,
        tuple(number for number, _ in windows),
        length_s,
        np.minimum(compute_s, length_s),
        np.minimum(library_s, length_s),
        np.clip(compute_s + library_s - together_s, 0, length_s),
        calls,
        device,
    )


def _lengths(windows: list[tuple[int, Event]], spans: list | None) -> np.ndarray:
    """Seconds of each step. On a GPU they are from its first kernel to the next step's, because the CPU runs ahead."""
    starts = [window.start for _, window in windows]
    ends = [*starts[1:], windows[-1][1].end]
    if spans and all(compute for compute, _ in spans):
        starts = [compute[0][0] for compute, _ in spans]
        ends = [*starts[1:], max(pair[-1][1] for pair in spans[-1] if pair)]
    lengths = MICRO * (np.array(ends) - np.array(starts))
    if (lengths <= 0).any():  # kernels of one step ran before those of the one before
        lengths = MICRO * np.array([window.end - window.start for _, window in windows])
    return lengths


def _of(events: list[Event], library: bool) -> list[tuple[float, float]]:
    wanted = [one for one in events if bool(OF_LIBRARY.search(one.name)) == library and not STEP.fullmatch(one.name)]
    return [(one.start, one.end) for one in wanted if not library or CALL.match(one.name)]


def _union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans that do not overlap, in order."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif end > start:
            found.append((start, end))
    return found


def _total(spans: list[tuple[float, float]]) -> float:
    return sum(end - start for start, end in spans)


def _call(one: Event) -> Call:
    plain = re.sub(r"[^a-z]", "", one.name.lower())
    which = next((name for key, name in COLLECTIVES.items() if key in plain), "another")
    items, size = one.args.get("In msg nelems"), ITEM_BYTES.get(str(one.args.get("dtype", "")).lower())
    group = one.args.get("Group size", 0)
    known = isinstance(items, int) and not isinstance(items, bool) and 0 < items < LATEST
    group = group if isinstance(group, int) and not isinstance(group, bool) and 0 < group <= MOST_RANKS else 0
    return Call(which, int(items or 0) * size if known and size else None, group, MICRO * (one.end - one.start))
