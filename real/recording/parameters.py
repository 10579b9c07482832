"""The parameters that a run ends with, as a file: an array for each variable, by name, .npz."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sim.base.files import write_whole
from sim.model.workload import Workload

Piece = tuple[slice | np.ndarray, np.ndarray]  # where in the flat vector of all parameters, and the numbers there


def joined(workload: Workload, pieces: Iterable[Piece]) -> dict[str, np.ndarray]:
    """Each variable by its name, in its shape, of pieces that cover all of them."""
    flat = np.full(workload.parameters, np.nan, np.float32)
    for place, values in pieces:
        flat[place] = values
    ends = np.cumsum([variable.size for variable in workload.variables])[:-1]
    parts = np.split(flat, ends)
    return {v.name: part.reshape(v.shape) for v, part in zip(workload.variables, parts, strict=True)}


def write(path: str | Path, variables: dict[str, np.ndarray]) -> None:
    """Write the file whole, or not at all."""
    write_whole(path, lambda file: np.savez(file, **variables))


def read(path: str | Path) -> dict[str, np.ndarray]:
    """The variables in a file by name."""
    with np.load(path) as stored:
        return dict(stored)
