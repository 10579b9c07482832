"""The error to expect of one more run, from a profile's residuals on the runs that it was fitted on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.evidence import factors

LEAST_WORK = 0.5  # share of a run
CLEARLY = 2  # standard errors from 0, from which it is believed that work takes longer after a sleep
LINE = 2  # costs are lines, so kinds of runs determine two numbers of a run's length, or one if there is one kind


class Residuals(NamedTuple):
    """Errors of the runs of one workload, each of shape (runs,), in logarithms of samples/s.

    Args:
        off: measured over simulated.
        spread: standard deviation between simulated replications.
        work: by how much one more of work makes one more of the run: 1 where nothing but cores takes time.
        rest: the loss in the logarithm by one more second after each induced sleep; 0 of runs that did not sleep, or whose steps a
            sleep does not stretch.
        kind: the number of the job among the different ones.
    """

    off: np.ndarray
    spread: np.ndarray
    work: np.ndarray
    rest: np.ndarray
    kind: np.ndarray

    @property
    def kinds(self) -> int:
        """The number of different jobs."""
        return len(np.unique(self.kind))

    @property
    def freedom(self) -> int:
        """Degrees of freedom that the fit has left."""
        return len(self.off) - min(LINE, self.kinds)

    def error(self) -> float:
        """Standard deviation of the normal law whose 90 % interval for one more run is that of Student's t.

        One more run is of a kind of its own. Its variance is therefore that between kinds and that within them, less the variance
        that replications have already. It is a factor on work (see sim.model.costs.Costs.error), and runs that are mostly network may
        have errors for other reasons.
        """
        variance, freedom = self._of_one_more()
        work = max(np.mean(self.work**2), LEAST_WORK**2)
        expected = factors.like_student(freedom) ** 2 * variance
        return float(np.sqrt(max(0.0, expected - np.mean(self.spread**2)) / work))

    def widening(self) -> float:
        """Times as wide as with many repeats is the interval for one more run, by Student's t."""
        return factors.like_student(self._of_one_more()[1])

    def _of_one_more(self) -> tuple[float, float]:
        """The variance of one more run, beside the fit's own uncertainty, and its degrees of freedom.

        Kinds are few, and their repeats say nothing of other kinds: the freedom is that of a sum of two mean squares (Satterthwaite,
        Biometrics Bulletin 1946).
        """
        count, lost, kinds = len(self.off), min(LINE, self.kinds), self.kinds
        _, kind, size = np.unique(self.kind, return_inverse=True, return_counts=True)
        within = float(np.sum((self.off - (np.bincount(kind, self.off) / size)[kind]) ** 2))
        between = float(np.sum(self.off**2)) - within
        if kinds in (lost, count) or between <= 0:
            return (within + between) / self.freedom * (1 + lost / count), self.freedom
        repeats = count / kinds
        terms = [
            (between / (kinds - lost) / repeats * (1 + lost / kinds), kinds - lost),
            (within / (count - kinds) * (1 - 1 / repeats), count - kinds),
        ]
        variance = sum(term for term, _ in terms)
        return variance, variance**2 / sum(term**2 / freedom for term, freedom in terms)

    def resume_s(self) -> float:
        """Seconds more that a rank takes after an induced sleep, by runs that slept; 0 where they are not clearly something else."""
        slept = self.rest > 0
        if slept.sum() <= LINE:
            return 0.0
        off, rest = self.off[slept], self.rest[slept]
        information = np.sum(rest**2)
        found_s = -np.sum(rest * off) / information
        error_s = np.sqrt(np.sum((off + rest * found_s) ** 2) / (len(off) - 1) / information)
        return float(found_s) if abs(found_s) > CLEARLY * error_s else 0.0

    def resume_error_s(self, error: float) -> float:
        """Standard deviation of these seconds in one more run, as in `error`, less what that error on work explains."""
        slept = self.rest > 0
        count = int(slept.sum())
        if count <= LINE:
            return 0.0
        variance = np.sum(self.off[slept] ** 2) / (count - 1) * (1 + 1 / count)
        explained = np.mean(self.spread[slept] ** 2 + (error * self.work[slept]) ** 2)
        excess = factors.like_student(count - 1) ** 2 * variance - explained
        return float(np.sqrt(max(0.0, excess) / np.mean(self.rest[slept] ** 2)))
