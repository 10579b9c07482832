"""A row that was held out, beside what the two commands say of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sim.answers.extrapolation import Unknown


class Held(NamedTuple):
    """One measured step, predicted from smaller sizes of its table.

    Args:
        source: the published table.
        split: a description of the rows that were fitted.
        hosts, gpus: of the job; GPUs of all hosts together.
        batch: samples of a GPU and step.
        doublings: of hosts (or of GPUs, on one host) beyond the largest number that was fitted.
        measured_s, predicted_s: seconds of a step.
        low_s, high_s: seconds between which the step is, nine times in ten, as it was answered.
        trivial_s: of the largest size that was fitted, as if nothing changed.
        trivial_off: root mean square of the logarithm by which that rule misses the fitted rows; None if it predicts none of them.
        unknown: what is unknown of the job, as it is compared with others (sim.answers.paired).
    """

    source: str
    split: str
    hosts: int
    gpus: int
    batch: int
    doublings: float
    measured_s: float
    predicted_s: float
    low_s: float
    high_s: float
    trivial_s: float
    trivial_off: float | None = None
    unknown: tuple[Unknown, ...] = ()

    @property
    def row(self) -> str:
        """In a table."""
        return f"{self.hosts} hosts, {self.gpus} GPUs, batch {self.batch}"

    @property
    def off(self) -> float:
        """The logarithm of measured over predicted seconds."""
        return log(self.measured_s / self.predicted_s)

    @property
    def covered(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low_s <= self.measured_s <= self.high_s


class Refused(NamedTuple):
    """Rows that were not predicted, because a command refuses the table or the job; `why` is what it says."""

    source: str
    split: str
    rows: int
    why: str


def mean_error(rows: Sequence[Held], name: str = "predicted_s") -> float:
    """Mean absolute error of a column of seconds, as a share of what was measured."""
    return sum(abs(getattr(row, name) / row.measured_s - 1) for row in rows) / len(rows)


def by_source(rows: Sequence[Held]) -> dict[str, list[Held]]:
    """The rows of each source."""
    found: dict[str, list[Held]] = {}
    for row in rows:
        found.setdefault(row.source, []).append(row)
    return found
