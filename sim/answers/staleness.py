"""The staleness of gradients: the updates that each had missed when a server added it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from sim.recording.traces import Trace


def of_trace(trace: Trace) -> np.ndarray:
    """Updates that each gradient had missed when the first server added it, shape (gradients,), after warm-up."""
    rows = trace.rows[trace.rows["rank"] == 0]
    rows = rows[rows["activity"].isin(["reduce", "update"])].sort_values(["end_s", "start_s"], kind="stable")
    made = (rows["activity"] == "update").cumsum()
    added = rows["activity"] == "reduce"
    warm = made >= trace.header.warmup * trace.header.updates_per_step
    return (made - rows["version"])[added & warm].to_numpy(int)
