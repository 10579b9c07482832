"""What makes a rank slow: its host, which stays, or the run, which passes. Told apart by repeated runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration import factors
from sim.laws import Law

SIGNIFICANT = 0.01  # chance of such differences between equal hosts below which speeds are believed


class Slowness(NamedTuple):
    """Speeds of the hosts, 1 the typical one; the law of what is left, by run and rank; why."""

    speeds: np.ndarray
    run: Law
    note: str


def tell_apart(factor: np.ndarray, host: np.ndarray, count: int) -> Slowness:
    """Speeds and the law of runs from the mean factor of each (run, host).

    A host's speed is believed if runs repeat it: analysis of variance of log factors between hosts, p < 0.01.

    Args:
        factor: seconds over what the costs say, shape (runs x hosts,).
        host: index of the host that each ran on.
        count: number of hosts.
    """
    logs = np.log(factor)
    believed, note = _repeats(logs, host)
    effect = np.array([np.median(logs[host == h]) if believed and (host == h).any() else np.nan for h in range(count)])
    effect = np.where(np.isnan(effect), np.nanmedian(effect) if believed else 0.0, effect)
    effect = effect - np.median(effect)
    return Slowness(np.exp(-effect), factors.law(np.exp(logs - effect[host])), note)


def _repeats(logs: np.ndarray, host: np.ndarray) -> tuple[bool, str]:
    groups = [logs[host == h] for h in np.unique(host)]
    if len(groups) < 2 or min(map(len, groups)) < 2:
        return False, "hosts taken as equally fast: no two runs on different hosts to tell a slow host from a slow run"
    if np.ptp(logs) == 0:
        return False, "hosts equally fast"
    from scipy.stats import f_oneway

    p = float(f_oneway(*groups).pvalue) if any(np.ptp(g) > 0 for g in groups) else 0.0
    if p < SIGNIFICANT:
        return True, f"hosts' speeds fitted: repeated from run to run (p = {p:.2g})"
    return False, f"hosts taken as equally fast: their differences do not repeat from run to run (p = {p:.2g})"
