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
    if quarters is None:
        believed, note = _told([logs[host == one] for one in np.unique(host)], "repeat from run to run", "")
    else:
        parts = np.log(quarters)
        later = "; other runs may have other speeds"
        believed, note = _told(list(parts - parts.mean(axis=0)), "last through the one run", later, parts.shape[1])
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
    equal = np.ptp(parts.mean(axis=1)) < factors.ROUND_OFF
    p = 1.0 if equal else _chance(list(parts - parts.mean(axis=0)), blocks=parts.shape[1])
    return np.exp(middle - (middle.min() if len(middle) == 2 else np.median(middle))), p


def are_slow(times: np.ndarray, p: float) -> np.ndarray:
    """Whether a rank is slow throughout, by what `of_ranks` says of each: beyond three deviations of all, of more than two."""
    logs = np.log(times)
    spread = 3 * factors.NORMAL_MAD * np.median(np.abs(logs)) if len(logs) > 2 else 0.0
    return (logs > np.clip(spread, np.log1p(LEAST), np.log(2))) & (p < SIGNIFICANT)


def _told(groups: list[np.ndarray], how: str, but: str, blocks: int = 1) -> tuple[bool, str]:
    """Whether differences between hosts are believed, and a note.

    Args:
        groups: logarithms of factors of each host.
        how: the differences of hosts show themselves.
        but: what is to be known of them where they are believed.
        blocks: see `_chance`.
    """
    if len(groups) < 2 or min(map(len, groups)) < 2:
        return False, "hosts taken as equally fast: no two runs on different hosts separate a slow host from a slow run"
    if np.ptp([group.mean() for group in groups]) < factors.ROUND_OFF:
        return False, "hosts equally fast"
    p = _chance(groups, blocks)
    if p < SIGNIFICANT:
        return True, f"hosts' speeds fitted: their differences {how} (p = {p:.2g}){but}"
    return False, f"hosts taken as equally fast: their differences do not {how} (p = {p:.2g})"


def _chance(groups: list[np.ndarray], blocks: int = 1) -> float:
    """The probability of such differences between equal groups (F test); of those with a value in each block, less the blocks' means."""
    from scipy.special import fdtrc

    several, values = len(groups), np.concatenate(groups)
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    between = sum(len(group) * float((group.mean() - values.mean()) ** 2) for group in groups)
    freedom = len(values) - several - (blocks - 1)
    return float(fdtrc(several - 1, freedom, between / (several - 1) / (within / freedom))) if within > 0 else 0.0
