"""What a trace is made of: rows, and what the next rows say of strands and of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.engine.kernel import layout

if TYPE_CHECKING:
    from sim.engine.arrays.shape import Shape


def nothing(_job: Shape) -> dict[str, np.ndarray]:
    """Where none is asked for."""
    return _of(1, 1, 1, np.zeros(1))


def rows(job: Shape, room: int) -> dict[str, np.ndarray]:
    """Where one is asked for, with room for so many rows."""
    of = job.scenario
    updated_bytes = np.zeros(of.ranks)
    for rank in range(min(of.ranks, of.servers + 1)):  # workers are alike
        updated_bytes[rank:] = sum(of.traffic.updated_bytes(rank))
    return _of(room, job.strands, job.most, updated_bytes)


def _of(room: int, strands: int, departures: int, updated_bytes: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "activity": np.zeros(room, layout.ACTIVITY),
        "doing": np.zeros(strands, layout.DOING),
        "leaving": np.zeros(departures, layout.LEAVING),
        "updated_bytes": updated_bytes,
    }
