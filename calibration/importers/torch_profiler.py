"""Traces of torch.profiler (Kineto), .json or .json.gz: computing and collectives of each step of one rank.

A trace is the Trace Event Format (Google, 2016): complete events (`ph` X) with `ts` and `dur` in microseconds. Those used are
`ProfilerStep#N` (profiler.step(), category user_annotation), kernels, copies and memsets of the GPU, and without a GPU operators of the CPU
(cpu_op). A kernel belongs to the step that launched it, known by `args.correlation`. NCCL's kernels are known by their names. Newer
versions write their sizes as `In msg nelems`, `dtype` and `Group size`. Ranks are known by `distributedInfo`, or by the name of the
file. A loop that accumulates gradients may have a profiler step for each micro-batch: `torch_steps` puts these together.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibration.importers import torch_events, torch_steps
from calibration.importers.torch_events import LATEST, MOST_RANKS, ON_CPU, STEP, Event
from calibration.importers.torch_steps import Window

MICRO = 1e-6
OF_GPU = {"kernel", "gpu_memcpy", "gpu_memset", "concurrent_kernel", "memcpy", "memset"}
LAUNCHES = {"cuda_runtime", "cuda_driver", "runtime", "hip_runtime"}
OF_LIBRARY = re.compile(r"nccl|rccl|msccl|hccl|gloo:|ucc:|mpi:|c10d::|record_param_comms", re.IGNORECASE)
CALL = re.compile(r"^(?:gloo|ucc|mpi):|^(?:nccl|rccl|mscclk?)\w*Kernel|^h?[nr]?ccl:", re.IGNORECASE)
ALLREDUCE = "all_reduce"
COLLECTIVES = {
    "allreduce": ALLREDUCE,
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "sendrecv": "SendRecv",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "barrier": "barrier",
    "send": "SendRecv",
    "recv": "SendRecv",
    "reduce": "reduce",
}
ITEM_BYTES = {"float": 4, "float32": 4, "half": 2, "float16": 2, "bfloat16": 2, "double": 8, "float64": 8}
ITEM_BYTES |= {"int": 4, "int32": 4, "long": 8, "int64": 8, "byte": 1, "uint8": 1, "char": 1, "int8": 1, "bool": 1}


class Call(NamedTuple):
    """One collective at one rank.

    Args:
        bytes: None if they are not said.
        item_bytes: of a number; None likewise.
        group: the number of its ranks; 0 likewise.
    """

    collective: str
    bytes: int | None
    item_bytes: int | None
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
        idle_s: seconds in which neither runs.
        calls: of each step, in order.
        device: the GPU's name; "" without one.
        notes: what was put together or left out, in lines.
    """

    rank: int | None
    world: int | None
    steps: tuple[int, ...]
    length_s: np.ndarray
    compute_s: np.ndarray
    library_s: np.ndarray
    hidden_s: np.ndarray
    idle_s: np.ndarray
    calls: tuple[tuple[Call, ...], ...]
    device: str
    notes: tuple[str, ...]


def read(path: str | Path) -> Ranked:
    """The contents of the trace of one rank.

    Raises:
        WrongSetting: the file is no such trace, has fewer than two steps, or has impossible numbers.
    """
    path = Path(path)
    kinds, steps, rank, world, device = torch_events.read(path)
    launched = {_correlation(one): one.start for kind in LAUNCHES for one in kinds.get(kind, ())}
    launched.pop(None, None)
    gpu = [one for kind in OF_GPU for one in kinds.get(kind, ())]
    gpu, of_before = _launched_here(gpu, launched)
    work = gpu or [
        *(one for kind in ON_CPU for one in kinds.get(kind, ())),
        *(one for one in kinds.get("user_annotation", ()) if CALL.match(one.name)),
    ]
    windows = [Window(number, one.start, one.end, []) for number, one in steps]
    starts = [window.start for window in windows]
    for one in work:  # of the step that launched it
        launch = launched.get(_correlation(one), one.start)
        at = bisect_right(starts, launch) - 1
        if at >= 0 and launch < windows[at].end:
            windows[at].events.append(one)
    windows, of_batches = torch_steps.joined(windows, [_summed(_calls(one.events)) for one in windows], str(path))
    windows, of_cut = torch_steps.uncut(windows, str(path))
    device = (device or "a GPU") if gpu else ""
    return _ranked((rank, world), windows, bool(gpu), device, (*of_before, *of_batches, *of_cut))


def _correlation(one: Event) -> int | None:
    """The number that work of the GPU and its launch at the CPU have in common."""
    found = one.args.get("correlation")
    return found if isinstance(found, int) else None


def _launched_here(gpu: list[Event], launched: dict[int | None, float]) -> tuple[list[Event], list[str]]:
    """The work of the GPU without that which was launched before recording began, and a note; all of it if no launch was recorded."""
    before = [one for one in gpu if _correlation(one) not in launched and _correlation(one) is not None]
    if not before or not any(_correlation(one) in launched for one in gpu):
        return gpu, []
    lasted_ms = _total(_union([(one.start, one.end) for one in before])) * MICRO * 1e3
    said = f"{len(before):,} of {len(gpu):,} operations of the GPU, {lasted_ms:.4g} ms, left out: launched before recording began"
    return [one for one in gpu if _correlation(one) in launched or _correlation(one) is None], [said]


def _summed(calls: tuple[Call, ...]) -> float:
    """Bytes of allreduces; or their number, if some do not say their bytes."""
    sizes = [call.bytes for call in calls if call.collective == ALLREDUCE]
    return float(len(sizes) if None in sizes else sum(size or 0 for size in sizes))


def _ranked(
    place: tuple[int | None, int | None], windows: list[Window], gpu: bool, device: str, notes: tuple[str, ...]
) -> Ranked:
    spans = [[_union(_of(window.events, library)) for library in (False, True)] for window in windows]
    length_s = _lengths(windows, spans if gpu else None)
    compute_s, library_s = (np.array([MICRO * _total(pair[i]) for pair in spans]) for i in (0, 1))
    together_s = np.array([MICRO * _total(_union([*pair[0], *pair[1]])) for pair in spans])
    return Ranked(
        *place,
        tuple(window.number for window in windows),
        length_s,
        np.minimum(compute_s, length_s),
        np.minimum(library_s, length_s),
        np.clip(compute_s + library_s - together_s, 0, length_s),
        np.clip(length_s - together_s, 0, None),
        tuple(_calls(window.events) for window in windows),
        device,
        notes,
    )


def _lengths(windows: list[Window], spans: list | None) -> np.ndarray:
    """Seconds of each step, from its beginning to that of the next one.

    On a GPU a step begins with its first kernel, because the CPU runs ahead. The last step has none after it: it takes as long as at the
    CPU, with what passes there between two steps, or until its last kernel.
    """
    starts = np.array([window.start for window in windows])
    ends = np.array([window.end for window in windows])
    last = ends[-1] - starts[-1] + float(np.median(starts[1:] - ends[:-1]))
    at_cpu = np.append(np.diff(starts), last)
    if not (spans and all(compute for compute, _ in spans)):
        return MICRO * at_cpu
    first = np.array([compute[0][0] for compute, _ in spans])
    until = max(pair[-1][1] for pair in spans[-1] if pair) - first[-1]
    lengths = np.append(np.diff(first), max(last, until))
    in_order = (lengths > 0).all()  # or kernels of one step ran before those of the one before
    return MICRO * (lengths if in_order else at_cpu)


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


def _calls(events: list[Event]) -> tuple[Call, ...]:
    """The library's calls, in order."""
    return tuple(_call(one) for one in sorted(events, key=lambda one: one.start) if CALL.match(one.name))


def _collective(name: str) -> str | None:
    plain = re.sub(r"[^a-z]", "", name.lower())
    return next((found for key, found in COLLECTIVES.items() if key in plain), None)


def _call(one: Event) -> Call:
    named = (_collective(str(name)) for name in (one.name, one.args.get("Collective name", "")))
    which = next(filter(None, named), one.name.partition("(")[0][:60])
    items, size = one.args.get("In msg nelems"), ITEM_BYTES.get(str(one.args.get("dtype", "")).lower())
    group = one.args.get("Group size", 0)
    known = isinstance(items, int) and not isinstance(items, bool) and 0 < items < LATEST
    group = group if isinstance(group, int) and not isinstance(group, bool) and 0 < group <= MOST_RANKS else 0
    size = size if known else None
    return Call(which, int(items or 0) * size if size else None, size, group, MICRO * (one.end - one.start))
