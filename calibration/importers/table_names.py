"""The names of a table's columns and the unit of its times, as a user says them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from sim.base.errors import WrongSetting, nearest
from sim.base.units import parts

STEP, RANK, SECONDS, COMPUTE, SAMPLES = "step", "rank", "seconds", "compute_s", "samples"
ELAPSED, EPOCH = "elapsed", "epoch"  # seconds since the start, in place of a step's; and what counts steps anew
NAMES = {  # words of a name, in lower case
    STEP: ("step", "global step", "trainer global step", "iteration", "iter", "batch idx", "update"),
    RANK: ("rank", "global rank", "worker", "process"),
    SAMPLES: ("samples",),
    EPOCH: ("epoch",),
}
OURS = (STEP, RANK, SECONDS, COMPUTE, SAMPLES, ELAPSED)
SHORT = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class Names(NamedTuple):
    """What a user says of a table.

    Args:
        columns: the table's names of ours: step, rank, seconds, compute_s, samples and elapsed.
        unit: of its times, s, ms, us or ns; None if the names say it.
    """

    columns: Mapping[str, str] = {}
    unit: str | None = None


AS_NAMED = Names()


def names_of(columns: str | None, unit: str | None) -> Names:
    """What the options say: --columns "seconds=train/step_time,rank=global_rank" and --unit ms.

    Raises:
        WrongSetting: a name that is none of ours, twice, or without one of the table; an unknown unit.
    """
    found: dict[str, str] = {}
    for part in parts(columns) if columns is not None else ():
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        if not (equals and theirs) or ours not in OURS or ours in found:
            allowed = f"OURS=THEIRS, with commas between them, each once; ours are {', '.join(OURS)}"
            raise WrongSetting("--columns", columns, f"{allowed}{nearest(ours, OURS)}")
        found[ours] = theirs.strip("\"'")
    if unit is not None and unit not in SHORT:
        raise WrongSetting("--unit", unit, ", ".join(SHORT))
    return Names(found, unit)


def words(name: str) -> str:
    """The words of a column's name, in lower case: `train/step_time (ms)` is "train step time ms"."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return " ".join(re.findall(r"[^\W_]+", apart)).lower()
