"""Lines, straight or with a floor, through seconds whose noise is a factor of mean 1: fitted by that moment, not by least squares."""

from __future__ import annotations

import numpy as np

TRIMMED = 0.02  # of seconds at each end that a mean leaves out
STALL = 5  # a row that took so many times the median of its group may be a stall,
RARE = 0.01  # if no more than this share of rows did: a larger share is the machine's usual behaviour
DRIFT = 0.05  # a run with a much larger error counts less: the processor was elsewhere
CLEARLY = 9.0  # by how much squares of deviations must fall, in the unit of the drift, for a floor to be believed
FEWEST_LEVELS = 3  # of amounts, of which more are needed for a line with a floor
INSIDE = 0.1  # where a coefficient starts at least, in units that make it near 1: the solver creeps if it starts at its bound


def stalled(seconds: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """The rows that took more than 5 times the median of their group, if they are 1 % of all or fewer; shape (rows,)."""
    import pandas as pd

    series = pd.Series(np.asarray(seconds))
    keys = np.zeros(len(series), int) if groups is None else np.asarray(groups)
    slow = (series > STALL * series.groupby(keys).transform("median")).to_numpy()
    return slow & (slow.mean() <= RARE)


def fit(design: np.ndarray, seconds: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Non-negative coefficients b for which seconds / (design @ b) has mean 1 in every group, as nearly as can be.

    The factor on a row's work does not depend on the row's task. Its mean is therefore 1 in every group that is formed by settings or
    by the induced sleep (generalised method of moments: Hansen, Econometrica 1982; the groups
    are the instruments, as in Wald 1940). Least squares of seconds on partitions would be wrong: under a deadline a
    slow step does fewer partitions in the same time, and the line comes out flat.

    Args:
        design: shape (rows, coefficients); amounts of work.
        seconds: shape (rows,), above 0.
        groups: shape (rows,), integers; each formed by what does not depend on the noise.
    """
    from scipy.optimize import least_squares, nnls

    _, group, size = np.unique(groups, return_inverse=True, return_counts=True)
    scale = design.max(axis=0) / np.median(seconds)  # coefficients near 1, whatever the units
    unit = design / scale
    start, _ = nnls(unit / seconds[:, None], np.ones(len(seconds)))

    weight = np.sqrt(size / size.mean()) / DRIFT

    def residuals(coefficients: np.ndarray) -> np.ndarray:
        mean_factor = np.bincount(group, seconds / (unit @ coefficients)) / size
        return weight * np.log(mean_factor)

    found = least_squares(
        residuals, np.maximum(start, INSIDE), bounds=(0, np.inf), xtol=1e-12, ftol=1e-12, loss="soft_l1"
    )
    return np.where(found.x > 1e-9 * found.x.max(), found.x, 0.0) / scale


def line(amounts: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """base_s and slope_s. A single amount is all slope, because work is mostly proportional; amount 0 is base."""
    levels = np.unique(amounts)
    if len(levels) > 1:
        base_s, slope_s = fit(np.column_stack([np.ones(len(amounts)), amounts]), seconds, amounts)
        return float(base_s), float(slope_s)
    mean_s = float(np.mean(seconds))
    return (0.0, mean_s / float(levels[0])) if levels[0] else (mean_s, 0.0)


def floored(amounts: np.ndarray, seconds: np.ndarray, runs: np.ndarray) -> tuple[float, float, float]:
    """base_s, slope_s and floor_s: a line, or one below which small amounts take the same, where amounts say so clearly.

    Each number of the smallest amounts is tried as those that take the floor. A floor is one number more, so that there must be two
    amounts more than a line needs, and what it explains must be beyond drift, as runs of one amount show it.

    Args:
        runs: the run of each row.
    """
    base_s, slope_s = line(amounts, seconds)
    levels = np.unique(amounts)
    least_gain = CLEARLY * max(1.0, _drift(amounts, seconds, runs) / DRIFT) ** 2
    best, floor_s = _off(amounts, seconds, base_s, slope_s, 0.0) - least_gain, 0.0
    for least in levels[1:-1] if len(levels) > FEWEST_LEVELS else ():
        low = amounts < least
        flat_s = float(np.exp(np.mean([np.log(seconds[amounts == level].mean()) for level in levels[levels < least]])))
        tried = *line(amounts[~low], seconds[~low]), flat_s
        off = _off(amounts, seconds, *tried)
        if off < best:
            best, (base_s, slope_s, floor_s) = off, tried
    return base_s, slope_s, floor_s


def _drift(amounts: np.ndarray, seconds: np.ndarray, runs: np.ndarray) -> float:
    """Standard error of the logarithm of an amount's mean, as its runs differ; 0 where no amount was run twice."""
    import pandas as pd

    means = np.log(pd.Series(seconds).groupby([amounts, runs]).mean()).groupby(level=0)
    several, freedom = means.size().to_numpy(), int((means.size() - 1).sum())
    variance = float(means.var(ddof=0).to_numpy() @ several) / freedom if freedom else 0.0
    return float(np.sqrt(variance / several.mean()))


def _off(amounts: np.ndarray, seconds: np.ndarray, base_s: float, slope_s: float, floor_s: float) -> float:
    """How far means of equal amounts are from what is said of them: squares of logarithms, in the unit of the drift."""
    factors = seconds / np.maximum(floor_s, base_s + slope_s * amounts)
    means = np.array([factors[amounts == level].mean() for level in np.unique(amounts)])
    return float(((np.log(means) / DRIFT) ** 2).sum())


def trimmed_mean(seconds) -> float:
    """The mean without the accidents of the operating system, a fiftieth at each end."""
    low, high = np.quantile(seconds, (TRIMMED, 1 - TRIMMED))
    return float(seconds[(seconds >= low) & (seconds <= high)].mean())
