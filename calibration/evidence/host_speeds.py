"""Why a rank is slow: its host, which stays, or the run, which passes. Repeated runs separate them.

A single run cannot separate them. A factor that lasted from its first quarter to its last is then taken to be the host's. A replay of
that run is then right, and so is another protocol on the same machines. Factors drawn anew in each replication would make one slow
host none or three. What all hosts had alike in a quarter says nothing of one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from calibration.evidence import factors

SIGNIFICANT = 0.01  # chance of such differences between equal hosts below which speeds are believed
QUARTERS = 4  # of a run
LEAST = 0.02  # difference from the median host that counts


class Slowness(NamedTuple):
    """The hosts' part of slowness.

    Args:
        speeds: of the hosts, 1 the typical one.
        note: why.
        believed: whether hosts differ.
    """

    speeds: np.ndarray
    note: str
    believed: bool

    def left(self, factor: np.ndarray, host: np.ndarray) -> np.ndarray:
        """Factors of each (run, host) without what is the host's in all runs."""
        if not self.believed:
            return factor
        logs = np.log(factor)
        return np.exp(logs - np.array([np.median(logs[host == one]) for one in host]))


def tell_apart(factor: np.ndarray, host: np.ndarray, count: int, quarters: np.ndarray | None = None) -> Slowness:
    """Speeds from the mean factor of each (run, host).

    A host's speed is believed if runs repeat it: analysis of variance of log factors between hosts, p < 0.01. Of a single run,
    its quarters are taken for runs.

    Args:
        factor: seconds over what the costs say, shape (runs x hosts,).
        host: index of each rank's host.
        count: number of hosts.
        quarters: the mean factors of a single run's quarters, shape (hosts, 4); None of several runs, or if not known.
    """
    logs = np.log(factor)
    believed, note = _repeats(logs, host) if quarters is None else _lasts(np.log(quarters))
    effect = np.array([np.median(logs[host == h]) if believed and (host == h).any() else np.nan for h in range(count)])
    effect = np.where(np.isnan(effect), np.nanmedian(effect) if believed else 0.0, effect)
    effect = effect - np.median(effect)
    effect = np.where(np.abs(effect) < LEAST, 0.0, effect)
    if believed and not effect.any():
        return Slowness(np.ones(count), f"hosts taken as equally fast: they differ by less than {LEAST:.0%}", False)
    return Slowness(np.exp(-effect), note, believed)


def of_ranks(values: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
    """Times as long as the median rank, or the faster of two, has each rank take, shape (ranks,); the chance of that between equal ranks.

    Args:
        values: of each rank in the order of its steps, above 0.
    """
    several = [np.array_split(np.log(one), min(QUARTERS, len(one))) for one in values]
    parts = np.array([[np.median(part) for part in of_rank] for of_rank in several])
    middle = np.array([np.median(np.log(one)) for one in values])
    p = 1.0 if np.ptp(parts.mean(axis=1)) < factors.ROUND_OFF else _chance_of_parts(parts)
    return np.exp(middle - (middle.min() if len(middle) == 2 else np.median(middle))), p


def are_slow(times: np.ndarray, p: float) -> np.ndarray:
    """Whether a rank is slow throughout, by what `of_ranks` says of each: beyond three deviations of all, of more than two."""
    logs = np.log(times)
    spread = 3 * factors.NORMAL_MAD * np.median(np.abs(logs)) if len(logs) > 2 else 0.0
    return (logs > np.clip(spread, np.log1p(LEAST), np.log(2))) & (p < SIGNIFICANT)


def _repeats(logs: np.ndarray, host: np.ndarray) -> tuple[bool, str]:
    groups = [logs[host == h] for h in np.unique(host)]
    if len(groups) < 2 or min(map(len, groups)) < 2:
        return False, "hosts taken as equally fast: no two runs on different hosts separate a slow host from a slow run"
    if np.ptp(logs) == 0:
        return False, "hosts equally fast"
    p = _chance(groups)
    if p < SIGNIFICANT:
        return True, f"hosts' speeds fitted: repeated from run to run (p = {p:.2g})"
    return False, f"hosts taken as equally fast: their differences do not repeat from run to run (p = {p:.2g})"


def _lasts(logs: np.ndarray) -> tuple[bool, str]:
    if np.ptp(logs.mean(axis=1)) < factors.ROUND_OFF:
        return False, "hosts equally fast"
    p = _chance_of_parts(logs)
    if p < SIGNIFICANT:
        return (
            True,
            f"hosts' speeds fitted: they lasted through the one run (p = {p:.2g}), other runs may have other speeds",
        )
    return False, f"hosts taken as equally fast: their differences did not last through the one run (p = {p:.2g})"


def _chance_of_parts(logs: np.ndarray) -> float:
    """The same of parts of one run, shape (groups, parts): what all have alike in a part says nothing."""
    return _chance(list(logs - logs.mean(axis=0)), blocks=logs.shape[1])


def _chance(groups: list[np.ndarray], blocks: int = 1) -> float:
    """The probability of such differences between equal groups (F test); of those with a value in each block, less the blocks' means."""
    from scipy.special import fdtrc

    several, values = len(groups), np.concatenate(groups)
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    between = sum(len(group) * float((group.mean() - values.mean()) ** 2) for group in groups)
    freedom = len(values) - several - (blocks - 1)
    return float(fdtrc(several - 1, freedom, between / (several - 1) / (within / freedom))) if within > 0 else 0.0
