"""The ranks that hold up a run, throughout or now and then, and its long steps: by what cause, and what they cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.evidence import host_speeds
from calibration.evidence.factors import NORMAL_MAD

REST = "messages and all else"  # of a step, besides the work of its slowest rank
SHUFFLES = 199  # of the ranks in each step, none of which may hold up steps as long as a rank that is named
LONG, LEAST = 1.25, 0.005  # times the median step, from which a step is long, if such steps cost this share of all time


class Run(NamedTuple):
    """The steps of a run, without its warm-up.

    Args:
        length_s: of each step, shape (steps,).
        own_s: seconds that each rank worked before it waited for others, by cause, each of shape (steps, ranks); empty if unknown.
        ranks: their numbers.
        world: how many ranks there were.
        called: by what file.
    """

    length_s: np.ndarray
    own_s: dict[str, np.ndarray]
    ranks: tuple[int, ...]
    world: int
    called: str


class Slow(NamedTuple):
    """A rank that is slower than the others.

    Args:
        cause: of its slowness, most of it.
        times: as long as the median rank has it take, in the rank's slow steps.
        steps: in which it is slow.
        cost_s: that steps would be shorter in all if it were as the median rank.
    """

    rank: int
    cause: str
    times: float
    steps: int
    cost_s: float


class Long(NamedTuple):
    """Steps that are long, and no rank is so more often than the others.

    Args:
        cause: of most of it; empty if the run does not say.
        ranks: that were long alone in one of them; empty if all ranks were long together.
        steps, length_s: their number, and the mean length.
        cost_s: that they are longer in all than the median step.
    """

    cause: str
    ranks: tuple[int, ...]
    steps: int
    length_s: float
    cost_s: float


class Found(NamedTuple):
    """What holds up a run; `without_s` is its mean step with each slow rank as the median one."""

    step_s: float
    without_s: float
    slow: list[Slow]
    long: Long | None


def slowness(run: Run) -> Found:
    """What holds up a run whose ranks wait for one another in each step.

    A rank is slow throughout if its part of the run lasts from its first quarter to its last (calibration.evidence.host_speeds). It is
    slow now and then if its steps over the median rank's, in all, are more than those of any rank where ranks are shuffled in each step.
    """
    mean_s, slow, left_s = float(run.length_s.mean()), [], run.length_s
    if len(run.ranks) > 1 and run.own_s:
        total_s = np.sum(list(run.own_s.values()), axis=0)
        median_s = _middle_s(total_s)
        late = _late(total_s, median_s)
        evened = np.where(late.any(axis=0), np.minimum(total_s, median_s[:, None]), total_s)
        left_s = run.length_s - (total_s.max(axis=1) - evened.max(axis=1))
        slow = [_slow(run, int(at), late[:, at], total_s, median_s) for at in np.flatnonzero(late.any(axis=0))]
    return Found(mean_s, float(left_s.mean()), sorted(slow, key=lambda one: -one.cost_s), _long(run, left_s))


def _late(total_s: np.ndarray, median_s: np.ndarray) -> np.ndarray:
    """Whether a rank that is slow, throughout or now and then, is so in each step; shape (steps, ranks)."""
    steps, ranks = total_s.shape
    factor = total_s / median_s[:, None]
    parts = np.array([np.median(part, axis=0) for part in np.array_split(factor, min(host_speeds.QUARTERS, steps))])
    known = host_speeds.tell_apart(np.median(factor, axis=0), np.arange(ranks), ranks, parts.T)
    throughout = known.speeds < 1 / (1 + host_speeds.LEAST) if steps > 1 else np.zeros(ranks, bool)
    spread = NORMAL_MAD * np.median(np.abs(np.log(factor)))
    above = np.exp(max(np.log1p(host_speeds.LEAST), min(3 * spread, np.log(2))))
    rest_s = np.where(throughout, 0.0, np.maximum(0.0, total_s - above * median_s[:, None]))
    rng = np.random.default_rng(0)
    most_s = max(rng.permuted(rest_s, axis=1).sum(axis=0).max() for _ in range(SHUFFLES))
    return np.where(throughout, factor > 1 + host_speeds.LEAST, (rest_s > 0) & (rest_s.sum(axis=0) > most_s))


def _middle_s(own_s: np.ndarray) -> np.ndarray:
    """Seconds of the median rank in each step, or of the faster one of two; shape (steps,)."""
    return own_s.min(axis=1) if own_s.shape[1] == 2 else np.median(own_s, axis=1)


def _slow(run: Run, at: int, late: np.ndarray, total_s: np.ndarray, median_s: np.ndarray) -> Slow:
    others_s = {name: _middle_s(own_s)[late].sum() for name, own_s in run.own_s.items()}
    more_s = {name: own_s[late, at].sum() - others_s[name] for name, own_s in run.own_s.items()}
    cause = max(more_s, key=lambda name: more_s[name])
    evened = total_s.copy()
    evened[:, at] = np.minimum(evened[:, at], median_s)
    cost_s = float((total_s.max(axis=1) - evened.max(axis=1)).sum())
    times = 1 + more_s[cause] / others_s[cause] if others_s[cause] > 0 else np.inf
    return Slow(run.ranks[at], cause, float(times), int(late.sum()), cost_s)


def _long(run: Run, length_s: np.ndarray) -> Long | None:
    """The steps that are long whatever rank is slow."""
    long, median_s = length_s > LONG * np.median(length_s), float(np.median(length_s))
    cost_s = float((length_s[long] - median_s).sum())
    if long.mean() > 1 / 2 or cost_s < LEAST * length_s.sum():
        return None
    found = Long("", (), int(long.sum()), float(length_s[long].mean()), cost_s)
    if not run.own_s:
        return found

    def more_s(seconds: np.ndarray) -> float:
        return float(seconds[long].mean() - seconds[~long].mean())

    total_s = np.sum(list(run.own_s.values()), axis=0)
    parts = {name: own_s.max(axis=1) for name, own_s in run.own_s.items()} | {REST: length_s - total_s.max(axis=1)}
    cause = max(parts, key=lambda name: more_s(parts[name]))
    alone = cause != REST and more_s(np.median(total_s, axis=1)) < more_s(total_s.max(axis=1)) / 2
    at = sorted({run.ranks[one] for one in total_s[long].argmax(axis=1)}) if alone else ()
    return found._replace(cause=cause, ranks=tuple(at))
