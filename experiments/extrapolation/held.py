"""A row that was held out, with all that its interval needs."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, nan
from typing import NamedTuple


class Held(NamedTuple):
    """One measured step, predicted from other rows of its table.

    Args:
        source: the published table.
        split: a description of the rows that were held out.
        row: the name of this one.
        doublings: of hosts (or of ranks, on one host) beyond the largest number that was fitted.
        measured_s, predicted_s: seconds of a step; the geometric mean where several candidates were run.
        residual: standard deviation of the logarithm of fitted rows around the fit, and between the candidates; 0 if it has no freedom.
        trivial_s: of the largest number of hosts that was fitted, as if nothing changed.
        slower, faster: standard deviations of the logarithm by which a step may take longer alone, and less.
        changed: root mean square of the logarithm by which fitted rows differ from what smaller sizes say; None if that is not known.
        trivial_off: the same, if smaller sizes say that nothing changes.
        ideal_s: as long as on the smallest number of hosts or GPUs; NaN if that is not known.
        ideal_off: as `trivial_off`, from the smallest size.
    """

    source: str
    split: str
    row: str
    doublings: float
    measured_s: float
    predicted_s: float
    residual: float
    trivial_s: float
    slower: float = 0.0
    faster: float = 0.0
    changed: float | None = None
    trivial_off: float | None = None
    ideal_s: float = nan
    ideal_off: float | None = None


class Unmeasured(NamedTuple):
    """A measured step of which nothing like it was fitted.

    Args:
        row: its name.
        measured_s, computing_s: seconds of a step, and of its computing.
        said_s: seconds with each algorithm that may be it, at the bandwidth that the link is called by.
        reading: error of `measured_s` as a share, as far as it was read off a figure.
    """

    row: str
    measured_s: float
    computing_s: float
    said_s: list[float]
    reading: float = 0.0


def doublings(asked: float, fitted: float) -> float:
    """The number of doublings from `fitted` to `asked`; 0 if `fitted` is more."""
    return max(0.0, log2(asked / fitted))


def mean_error(rows: Sequence[Held], name: str = "predicted_s") -> float:
    """Mean absolute error of a column of seconds, as a share of what was measured."""
    return sum(abs(getattr(row, name) / row.measured_s - 1) for row in rows) / len(rows)
