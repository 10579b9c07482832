"""The same GPUs and batch on fewer or on more hosts: which is faster, and how sure a fit of few hosts is of that."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from experiments.extrapolation import t4
from experiments.kit import pages

if TYPE_CHECKING:
    from rich.table import Table as Page

    from calibration.scaling.steps import Scaling
    from calibration.scaling.table import Table

APART = 0.05  # steps that differ by less are no choice
SURE = 0.8  # probability from which on a fit is called sure


class Choice(NamedTuple):
    """A pair of steps of the same GPUs, of which one was held out.

    Args:
        right: whether the fit names the faster one.
        sure: the probability by which it does.
        more: whether more hosts are faster.
    """

    right: bool
    sure: float
    more: bool


def choices(rows: Table, most: float, found: Scaling) -> Iterator[Choice]:
    """Of all pairs whose measured steps differ by APART or more.

    Args:
        most: hosts that were fitted; more are held out.
    """
    from scipy.special import ndtr

    said, slopes = np.log(found.step_s(rows)), found.slopes(rows)
    for one, other in combinations(range(rows.size), 2):
        alike = rows.gpus[one] == rows.gpus[other] and rows.batch[one] == rows.batch[other]
        hosts = rows.hosts[[one, other]]
        if not alike or hosts[0] == hosts[1] or max(hosts) <= most:
            continue
        measured = float(np.log(rows.step_s[one] / rows.step_s[other]))
        if abs(measured) < np.log1p(APART):
            continue
        apart, slope = said[one] - said[other], slopes[:, one] - slopes[:, other]
        deviation = (slope @ found.covariance @ slope + 2 * found.residual**2) ** 0.5
        sure = float(ndtr(abs(apart) / deviation))
        yield Choice(bool(apart * measured > 0), sure, bool((measured < 0) == (hosts[0] > hosts[1])))


def table() -> Page:
    """Of hosts of 4 T4 GPUs."""
    heads = ("fitted on 1 to", "pairs", "right", "if more hosts always", "as sure as", "sure", "right when sure")
    title = f"The same T4 GPUs on fewer or more hosts, one held out, steps that differ by {APART:.0%}; sure: P of {SURE:.0%}"
    made = pages.table(title, "", *heads)
    shares = []
    for name in t4.MODELS:
        rows = t4.table(name)
        for most in t4.UP_TO[name]:
            found = t4.fitted(name, rows.where(rows.hosts <= most))
            right, sure, more = map(np.array, zip(*choices(rows, most, found), strict=True))
            known = sure >= SURE
            shares.append((right.mean(), more.mean(), sure.mean(), known.mean()))
            of_sure = f"{right[known].mean():.0%}" if known.any() else ""
            made.add_row(name, f"{most} hosts", f"{len(right)}", *(f"{share:.0%}" for share in shares[-1]), of_sure)
    made.add_row("average", "", "", *(f"{share:.0%}" for share in np.mean(shares, axis=0)), "")
    return made
