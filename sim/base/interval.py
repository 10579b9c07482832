"""A prediction interval for one more run, from some runs. It is computed in logarithms, because times and speeds are above 0."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

LEVEL = 0.9
BATCHES = 10  # a single run is cut into so many batches of steps to learn how much its throughput varies
FEWEST_STEPS = 2 * BATCHES  # with fewer batches the spread of a single run is unknown
UNKNOWN = (float("nan"), float("nan"))


def middle(runs: np.ndarray) -> float:
    """The geometric mean of a quantity of runs, shape (runs,), with which the interval is concentric: 1 / that of its inverse."""
    return float(np.exp(np.log(runs).mean())) if np.min(runs) > 0 else float(np.mean(runs))


def standard_error(runs: np.ndarray) -> float | None:
    """Of `middle`: the standard deviation of the logarithms over the square root of their number, times it; None of a single run."""
    if len(runs) < 2 or np.min(runs) <= 0:
        return None
    return middle(runs) * float(np.log(runs).std(ddof=1)) / len(runs) ** 0.5


def of_normal(deviation: float, level: float = LEVEL) -> float:
    """The largest distance of a normal quantity from its middle with probability `level`."""
    return deviation * NormalDist().inv_cdf((1 + level) / 2)


def of_runs(runs: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Low and high between which the quantity of one more run falls with probability `level`, from two runs or more.

    Student's t on the logarithms (Geisser, Predictive Inference, 1993, section 2.2.2); NaN where a run did nothing.

    Args:
        runs: of each run, shape (runs,).

    >>> [round(end, 1) for end in of_runs(np.array([99.0, 100.0, 101.0]))]
    [96.7, 103.4]
    """
    if np.min(runs) <= 0:
        return UNKNOWN
    logs = np.log(runs)
    return _around(logs.mean(), logs.std(ddof=1) * np.sqrt(1 + 1 / len(logs)), len(logs) - 1, level)


def of_batches(time_s: np.ndarray, amount: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The same of amount over time, from the steps of a single run, which cannot know what differs from run to run.

    Batch means of a ratio (Law, Simulation Modeling and Analysis, 5th ed., section 9.5.3), whose relative error is the
    error of its logarithm. The variance doubles because the run seen and the run predicted both vary. NaN below 20 steps.

    Args:
        time_s, amount: of each step, shape (steps,).
    """
    if len(time_s) < FEWEST_STEPS or not amount.any():
        return UNKNOWN
    starts = np.arange(BATCHES) * len(time_s) // BATCHES
    time_s, amount = (np.add.reduceat(x, starts) for x in (time_s, amount))
    ratio = amount.sum() / time_s.sum()
    variance = BATCHES / (BATCHES - 1) * (((amount - ratio * time_s) / amount.sum()) ** 2).sum()
    return _around(np.log(ratio), np.sqrt(2 * variance), BATCHES - 1, level)


def _around(log: float, error: float, freedom: int, level: float) -> tuple[float, float]:
    from scipy.special import stdtrit  # scipy.stats knows the same quantile, and takes a second to import

    half = stdtrit(freedom, (1 + level) / 2) * error
    return float(np.exp(log - half)), float(np.exp(log + half))
