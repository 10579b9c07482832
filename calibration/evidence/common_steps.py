"""What all ranks have alike in a step, as a long batch or a checkpoint, and what one rank has alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pandas import Series

# Steps have something in common if independent ranks had such steps with less than this chance, and it is this share of the variance.
SIGNIFICANT, LEAST = 0.01, 0.1
FAR = 2.0  # times the median, or as small a part of it, beyond which a value is not usual


def split(factor: Series) -> tuple[np.ndarray, np.ndarray]:
    """Factors that ranks have alone, shape (rows,), and those of all ranks alike, shape (steps,); a single 1 if nothing shows any.

    An analysis of variance of logarithms between steps. What a step has in common is its median rank, as far as it varies more than
    medians of independent ranks do. What is left is widened to the variance that ranks have in a step.

    Args:
        factor: seconds over the mean of the run and rank, indexed by run, step and rank.
    """
    from scipy.special import fdtrc

    logs = np.log(factor.groupby(["run", "step", "rank"]).mean())
    by_step = logs.groupby(["run", "step"])
    medians, mean, steps = by_step.median(), by_step.transform("mean"), by_step.ngroups
    left, alone = len(logs) - steps, (factor.to_numpy(), np.ones(1))
    if steps < 2 or left < 1 or np.ptp(medians) == 0:
        return alone
    within = float(((logs - mean) ** 2).sum()) / left
    between = float(((mean - logs.mean()) ** 2).sum()) / (steps - 1)
    common = max(0.0, between - within) * steps / len(logs)
    if common < LEAST * (common + within) or (within and fdtrc(steps - 1, left, between / within) > SIGNIFICANT):
        return alone
    alike = min(1.0, np.sqrt(common / medians.var())) * (medians - medians.mean())
    own = logs - alike.loc[logs.index.droplevel("rank")].to_numpy()
    wider = float(np.sqrt(within / own.var())) if within else 1.0
    own = np.log(factor.to_numpy()) - alike.loc[factor.index.droplevel("rank")].to_numpy()
    return np.exp(wider * own), np.exp(alike).to_numpy()


def usual(values: Series, by: list) -> Series:
    """The mean of each group without what is far from its median: a rank that is slow now and then is as fast as others otherwise."""
    median = values.groupby(by).transform("median")
    near = values.where((values / median).between(1 / FAR, FAR))
    return near.groupby(by).mean().fillna(median.groupby(by).first())


def of_all(compute_s: np.ndarray, ranks: int) -> np.ndarray:
    """Seconds of all ranks, shape (steps, ranks), of which some are known. What others have alone is as that of these in other steps.

    Args:
        compute_s: of the known ones, shape (steps, known).
    """
    known = compute_s.shape[1]
    alike = np.maximum(np.median(compute_s, axis=1, keepdims=True), np.finfo(float).tiny)
    return alike * np.column_stack(
        [np.roll((compute_s / alike)[:, rank % known], rank // known) for rank in range(ranks)]
    )
