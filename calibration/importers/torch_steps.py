"""The steps of a trace of torch.profiler: micro-batches put together, and a last step that was cut left out."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from calibration.importers.torch_events import Event
from sim.base.errors import WrongSetting

LARGE = 0.5  # of the bytes of the largest step's allreduces: with less, a step sums metrics and no gradients
CUT = 0.5  # of the events of the median step: a last step with fewer was cut


class Window(NamedTuple):
    """One step of the training loop.

    Args:
        number: of its last profiler step.
        start, end: microseconds of the process that launches.
        events: of work that was launched in it.
    """

    number: int
    start: float
    end: float
    events: list[Event]


def joined(windows: list[Window], summed: list[float], path: str) -> tuple[list[Window], list[str]]:
    """Steps that end with the allreduce, where some profiler steps have none (a loop that accumulates gradients), and notes.

    Steps of another number of profiler steps than most are left out, and those that they separate from most others.

    Args:
        summed: of each window, the bytes that its allreduces sum, or their number if bytes are not said.

    Raises:
        WrongSetting: fewer than two whole steps.
    """
    ends = [at for at, amount in enumerate(summed) if amount > 0 and amount >= LARGE * max(summed)]
    if not ends or len(ends) == len(windows):
        return windows, []
    counts = [end - before for before, end in zip([-1, *ends], ends, strict=False)]
    usual = Counter(counts[1:] or counts).most_common(1)[0][0]
    stretches: list[list[int]] = [[]]
    for end, count in zip(ends, counts, strict=True):
        if count == usual:
            stretches[-1].append(end)
        else:
            stretches.append([])
    found = [_one(windows[end - usual + 1 : end + 1]) for end in max(stretches, key=len)]
    left = len(windows) - usual * len(found)
    said = f"{len(windows)} profiler steps, of which {len(ends)} allreduce gradients: taken as {len(found)} steps"
    said += f" of {usual} micro-batches, and --batch of all of these" * (usual > 1)
    if len(found) < 2:
        raise WrongSetting(f"{path}: steps", said, "two or more whole ones: profile more")
    return found, [f"{said}; {left} left out" if left else said]


def _one(windows: list[Window]) -> Window:
    events = [event for window in windows for event in window.events]
    return Window(windows[-1].number, windows[0].start, windows[-1].end, events)


def uncut(windows: list[Window], path: str) -> tuple[list[Window], list[str]]:
    """Without the last step, if it has much less work than the others, and a note.

    Raises:
        WrongSetting: fewer than two whole steps.
    """
    counts = [len(window.events) for window in windows]
    if counts[-1] >= CUT * np.median(counts[:-1]):
        return windows, []
    said = f"the last step left out: cut, with {counts[-1]} of {np.median(counts[:-1]):.0f} operations"
    if len(windows) < 3:
        raise WrongSetting(f"{path}: steps", said, "two or more whole ones: profile more")
    return windows[:-1], [said]
