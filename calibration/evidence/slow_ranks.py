"""What holds up a run: ranks that are slow throughout or now and then, and steps that are long whatever rank is slow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.evidence import host_speeds
from calibration.evidence.factors import NORMAL_MAD

REST = "messages and all else"  # of a step, besides the work of its slowest rank
SHUFFLES = 199  # of the ranks in each step, none of which may hold up steps as long as a rank that is named
LONG, LEAST = 1.25, 0.005  # times the median step, from which a step is long, if such steps cost this share of all time


class Run(NamedTuple):
    """Seconds of steps, shape (steps,), and of each rank before it waited, by cause, shape (steps, ranks); and how they were read."""

    length_s: np.ndarray
    own_s: dict[str, np.ndarray]
    ranks: tuple[int, ...]
    notes: tuple[str, ...] = ()


class Delay(NamedTuple):
    """What holds up a run.

    Args:
        ranks: that do; empty of all together.
        cause: of most of it; empty if the run does not say.
        times: as long as the median rank has it take; of long steps, over the median step.
        cost_s: that all steps would be shorter without it.
    """

    ranks: tuple[int, ...]
    cause: str
    times: float
    steps: int
    cost_s: float


def slowness(run: Run) -> tuple[list[Delay], np.ndarray, Delay | None]:
    """The slow ranks, seconds of each step if they were as the median one, and the long steps.

    A rank is slow throughout if that lasts from the first quarter to the last (calibration.evidence.host_speeds). It is slow now and
    then if its seconds over the median rank's are more in all than those of any rank where ranks are shuffled in each step.
    """
    if len(run.ranks) < 2 or not run.own_s:
        return [], run.length_s, _long(run, run.length_s)
    total_s = sum(run.own_s.values(), np.zeros(1))
    median_s = _middle_s(total_s)
    late = _late(total_s, median_s)
    evened_s = np.where(late.any(axis=0), np.minimum(total_s, median_s[:, None]), total_s)
    left_s = run.length_s - (total_s.max(axis=1) - evened_s.max(axis=1))
    found = []
    for at in np.flatnonzero(late.any(axis=0)):
        usual_s = {name: _middle_s(own_s)[late[:, at]].sum() for name, own_s in run.own_s.items()}
        more_s = {name: own_s[late[:, at], at].sum() - usual_s[name] for name, own_s in run.own_s.items()}
        cause = max(more_s, key=lambda name: more_s[name])
        alone_s = np.where(np.arange(len(run.ranks)) == at, np.minimum(total_s, median_s[:, None]), total_s)
        cost_s = float((total_s.max(axis=1) - alone_s.max(axis=1)).sum())
        times = 1 + more_s[cause] / usual_s[cause] if usual_s[cause] > 0 else np.inf
        found.append(Delay((run.ranks[at],), cause, float(times), int(late[:, at].sum()), cost_s))
    return sorted(found, key=lambda one: -one.cost_s), left_s, _long(run, left_s)


def _middle_s(own_s: np.ndarray) -> np.ndarray:
    """Seconds of the median rank in each step, or of the faster one of two; shape (steps,)."""
    return own_s.min(axis=1) if own_s.shape[1] == 2 else np.median(own_s, axis=1)


def _late(total_s: np.ndarray, median_s: np.ndarray) -> np.ndarray:
    """Whether a rank that is slow, throughout or now and then, is so in each step; shape (steps, ranks)."""
    factor = total_s / median_s[:, None]
    throughout = host_speeds.are_slow(*host_speeds.of_ranks(list(factor.T))) & (len(factor) > 1)
    spread = 3 * NORMAL_MAD * np.median(np.abs(np.log(factor)))
    above = np.exp(np.clip(spread, np.log1p(host_speeds.LEAST), np.log(2)))
    rest_s = np.where(throughout, 0.0, np.maximum(0.0, total_s - above * median_s[:, None]))
    rng = np.random.default_rng(0)
    most_s = max(rng.permuted(rest_s, axis=1).sum(axis=0).max() for _ in range(SHUFFLES))
    return np.where(throughout, factor > 1 + host_speeds.LEAST, (rest_s > 0) & (rest_s.sum(axis=0) > most_s))


def _long(run: Run, length_s: np.ndarray) -> Delay | None:
    """The long steps; with ranks if these were long alone."""
    median_s = float(np.median(length_s))
    long = length_s > LONG * median_s
    cost_s = float((length_s[long] - median_s).sum())
    if long.mean() > 1 / 2 or cost_s < LEAST * length_s.sum():
        return None
    found = Delay((), "", float(length_s[long].mean()) / median_s, int(long.sum()), cost_s)
    if not run.own_s:
        return found

    def more_s(seconds: np.ndarray) -> float:
        return float(seconds[long].mean() - seconds[~long].mean())

    total_s = sum(run.own_s.values(), np.zeros(1))
    parts = {name: own_s.max(axis=1) for name, own_s in run.own_s.items()} | {REST: length_s - total_s.max(axis=1)}
    cause = max(parts, key=lambda name: more_s(parts[name]))
    alone = cause != REST and more_s(np.median(total_s, axis=1)) < more_s(total_s.max(axis=1)) / 2
    at = sorted({run.ranks[one] for one in total_s[long].argmax(axis=1)}) if alone else ()
    return found._replace(cause=cause, ranks=tuple(at))
