"""The gradient noise scale: the batch beyond which a larger one saves few steps, from gradients of two batches.

McCandlish, Kaplan, Amodei and others, "An empirical model of large-batch training", arXiv 1812.06162, 2018, appendix A.1. The mean square
of a gradient's norm is |G|^2 + tr(Sigma) / batch. Two batches give unbiased estimates of both terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from sim.base.errors import WrongSetting
from sim.base.ranges import MOST, check

if TYPE_CHECKING:
    import numpy as np


class NoiseScale(NamedTuple):
    """B_simple, the ratio of `trace` to `squared`.

    Args:
        samples: B_simple; NaN where noise hides the gradient, so that `squared` is not above 0.
        error: standard error of it, by leaving out one pair at a time; NaN of a single pair.
        squared: |G|^2, of the gradient of all samples.
        trace: tr(Sigma), of the covariance of one sample's gradient.
    """

    samples: float
    error: float
    squared: float
    trace: float


def noise_scale(
    small_batch: int, small_norm2: float | Sequence[float], big_batch: int, big_norm2: float | Sequence[float]
) -> NoiseScale:
    """The simple noise scale of gradients at one place of training.

    Args:
        small_batch, big_batch: samples of each gradient.
        small_norm2, big_norm2: squared norms of gradients of so many samples, one or several pairs, shape (pairs,).

    Raises:
        WrongSetting: the big batch is not the larger one, or the norms are no pairs of finite numbers from 0.
    """
    check("small_batch", small_batch, 1, MOST)
    check("big_batch", big_batch, small_batch + 1, MOST, "more samples than the small batch:")
    small, big = _numbers("small_norm2", small_norm2), _numbers("big_norm2", big_norm2)
    if small.shape != big.shape or small.ndim != 1 or not len(small):
        raise WrongSetting(
            "big_norm2", f"shape {big.shape}", f"pairs: as many as of the small batch, shape {small.shape}"
        )
    squared = (big_batch * big - small_batch * small) / (big_batch - small_batch)
    trace = (small - big) / (1 / small_batch - 1 / big_batch)
    return NoiseScale(
        _ratio(trace.mean(), squared.mean()), _error(trace, squared), float(squared.mean()), float(trace.mean())
    )


def noise_scale_of_run(batch: float, steps: Sequence[float], places: Sequence[NoiseScale]) -> float:
    """The noise scale of a run, with which the law of steps says exactly how many updates another batch needs for the same progress.

    A step makes 1 / (1 + N / batch) of the progress that a batch without end makes at that place, where N is trace / squared (McCandlish
    and others, equation 2.6). N is weighted by that. Sums alone are divided, so that single places may be noisy, or `squared` below 0.

    Args:
        batch: samples of an update.
        steps: updates at each place where the gradient was looked at, shape (places,).
        places: the scale there.

    Returns:
        Samples; NaN where noise hides the gradient.

    Raises:
        WrongSetting: no number of samples, no places, or not a number of updates above 0 at each.
    """
    import numpy as np

    check("batch", batch, 1, MOST)
    if not (isinstance(places, Sequence) and places and all(isinstance(one, NoiseScale) for one in places)):
        raise WrongSetting("places", places, "what noise_scale has returned at each place, one or more")
    if (weights := _numbers("steps", steps)).shape != (len(places),) or not weights.all():
        raise WrongSetting("steps", steps, f"a number above 0 for each place, {len(places)} in all")
    of_mean, of_noise = (np.array([getattr(one, name) for one in places], float) for name in ("squared", "trace"))
    norms = of_mean + of_noise / batch  # of a minibatch's gradient, squared
    weights = np.divide(weights, norms, out=np.zeros_like(weights), where=norms > 0)
    return _ratio(float(weights @ of_noise), float(weights @ of_mean))


def _numbers(name: str, given: object) -> np.ndarray:
    """One or several finite numbers from 0, shape (numbers,)."""
    import numpy as np

    with suppress(TypeError, ValueError):
        found = np.atleast_1d(np.asarray(given, float))
        if (np.isfinite(found) & (found >= 0)).all():
            return found
    raise WrongSetting(name, given, "finite numbers from 0")


def _ratio(trace: float, squared: float) -> float:
    return float(trace / squared) if squared > 0 else math.nan


def _error(trace: np.ndarray, squared: np.ndarray) -> float:
    """The jackknife: Efron and Stein, "The jackknife estimate of variance", Annals of Statistics 9(3), 1981."""
    import numpy as np

    if (count := len(trace)) < 2:
        return math.nan
    others = np.array([_ratio(*pair) for pair in zip(trace.sum() - trace, squared.sum() - squared, strict=True)])
    return float(np.sqrt((count - 1) * np.var(others)))
