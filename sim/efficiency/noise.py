"""The gradient noise scale: the batch beyond which a larger one saves few steps, from gradients of two batches.

McCandlish, Kaplan, Amodei and others, "An empirical model of large-batch training", arXiv 1812.06162, 2018, appendix A.1. The mean square
of a gradient's norm is |G|^2 + tr(Sigma) / batch. Two batches give unbiased estimates of both terms.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sim.base.errors import WrongSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    import numpy as np

    if not 0 < small_batch < big_batch:
        raise WrongSetting(
            "big_batch", big_batch, f"more samples than the small batch, {small_batch}, which has one or more"
        )
    small, big = (np.atleast_1d(np.asarray(norms, float)) for norms in (small_norm2, big_norm2))
    if small.shape != big.shape or small.ndim != 1 or not len(small):
        raise WrongSetting(
            "big_norm2", f"shape {big.shape}", f"pairs: as many as of the small batch, shape {small.shape}"
        )
    for name, norms in (("small_norm2", small), ("big_norm2", big)):
        if not (np.isfinite(norms) & (norms >= 0)).all():
            raise WrongSetting(name, norms.tolist(), "finite numbers from 0")
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
    """
    import numpy as np

    of_mean, of_noise = (np.array([getattr(one, name) for one in places], float) for name in ("squared", "trace"))
    norms, weights = of_mean + of_noise / batch, np.asarray(steps, float)  # of a minibatch's gradient, squared
    weights = np.divide(weights, norms, out=np.zeros_like(weights), where=norms > 0)
    return _ratio(float(weights @ of_noise), float(weights @ of_mean))


def _ratio(trace: float, squared: float) -> float:
    return float(trace / squared) if squared > 0 else math.nan


def _error(trace: np.ndarray, squared: np.ndarray) -> float:
    """The jackknife: Efron and Stein, "The jackknife estimate of variance", Annals of Statistics 9(3), 1981."""
    import numpy as np

    if (count := len(trace)) < 2:
        return math.nan
    others = np.array([_ratio(*pair) for pair in zip(trace.sum() - trace, squared.sum() - squared, strict=True)])
    return float(np.sqrt((count - 1) * np.var(others)))
