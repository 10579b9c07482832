"""Steps at sizes beyond those of a table, from how the table's own steps grew.

Two predictions compete: the simulation's, and that a step takes as long as at the largest size that was measured. Each is a two-piece
Student t on the logarithm of a step (C. Fernandez and M. F. J. Steel, On Bayesian modeling of fat tails and skewness, 1998), of FREEDOM
degrees of freedom, whose slow side is 1 / LAW.faster times the fast one. Its scale grows with doublings as of a random walk, by the table's
growth per doubling and by how far the prediction of each size from the smaller ones was off. They weigh by how likely they made each
size (L. J. Tashman, Out-of-sample tests of forecasting accuracy, 2000). The mixture's median is the answer, and its 5 % and 95 % quantiles
are its ends. After two numbers of hosts the answer is no longer than the larger prediction.

`python -m experiments.run growth` tries other constants near these on the sources of experiments/figures/sources.toml that are for choices,
and prints those that are surely better, or these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.answers import sources
from sim.base.errors import WrongSetting
from sim.base.interval import LEVEL
from sim.platform.other_sizes import on_hosts

if TYPE_CHECKING:
    from sim.answers.outcome import Outcome
    from sim.job.scenario import Scenario
    from sim.platform.cluster import Growth

FREEDOM = 4
# Of growth with a doubling as much goes on: what all share takes twice as long at most, and more is a cost that has begun.
MOST = log(2)
BEYOND = "sizes beyond the table"  # key among an outcome's ends
HALVINGS, FAR = 50, 200.0  # in which a quantile is found, and how many scales away it is sought


class Law(NamedTuple):
    """How far a step may be from two predictions.

    Args:
        faster: times the scale of the slow side is that of the fast one.
        least: scale of a step for a doubling, however little steps grew.
        by_growth: scale of a step for each growth per doubling.
        first_host, first_gpu: times as much as later growth counts that from one host to two, and from one GPU to two.
        own: of so many tries counts the growth beside the errors of a prediction.
        missed: scale for each error of a prediction.
        by_tries: power of the likelihood of smaller sizes by which predictions weigh.
    """

    faster: float
    least: float
    by_growth: float
    first_host: float
    first_gpu: float
    own: float
    missed: float
    by_tries: float

    def scale(self, growth: float, missed: float = 0.0, tries: float = 0.0) -> float:
        """Scale of the slow side for a doubling.

        Args:
            growth: mean square of the logarithm by which steps grew with a doubling.
            missed: the same of what a prediction of each size from smaller ones was off by, times `tries`.
            tries: sizes that were predicted so.
        """
        told = (self.own * self.by_growth**2 * growth + self.missed**2 * missed) / (self.own + tries)
        return (self.least**2 + told) ** 0.5

    def log_density(self, off: np.ndarray, scale: np.ndarray | float) -> np.ndarray:
        """Logarithm of the density of errors of the logarithm of a step, up to a constant; arrays of one shape."""
        side = np.where(off > 0, scale, self.faster * np.asarray(scale))
        return -np.log(scale) - (FREEDOM + 1) / 2 * np.log1p((off / side) ** 2 / FREEDOM)


# Chosen by hand, with all tables but the thirteen kept back last in view. None near these is surely better: experiments.run growth.
LAW = Law(faster=0.2, least=0.035, by_growth=1.1, first_host=0.3, first_gpu=0.9, own=0.7, missed=0.4, by_tries=0.1)


class Part(NamedTuple):
    """One prediction of the logarithm of a step.

    Args:
        weight: how likely it is the right one.
        at: what it says.
        scale: of its slow side.
        faster: times that is the scale of its fast side.
    """

    weight: float
    at: float
    scale: float
    faster: float = LAW.faster

    def below(self, value: float) -> float:
        """The probability of less."""
        far = (value - self.at) / (self.scale * (1.0 if value > self.at else self.faster))
        tail = 1 + far * far / FREEDOM
        by_t = 0.5 + 0.375 * far / tail**0.5 * (1 - far * far / 12 / tail)  # Student's t of 4 degrees of freedom
        return ((2 * self.faster * by_t) if far < 0 else (self.faster - 1 + 2 * by_t)) / (1 + self.faster)


def quantile(parts: Sequence[Part], level: float) -> float:
    """Of the mixture."""
    low, high = (side([one.at + far * one.scale for one in parts]) for side, far in ((min, -FAR), (max, FAR)))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = sum(one.weight * one.below(middle) for one in parts)
        low, high = (middle, high) if below < level else (low, middle)
    return (low + high) / 2


class Told(NamedTuple):
    """What a table says of a job beyond its sizes.

    Args:
        longer: logarithm by which a step takes longer than simulated.
        slower, faster: 90 % limits of the logarithm by which it may take longer still, and shorter.
    """

    longer: float
    slower: float
    faster: float


def of(scenario: Scenario) -> Growth | None:
    """The growth of the table that a job's profile was fitted to; None of a job within its sizes, and of other profiles."""
    known = scenario.cluster.provenance
    if known is None or known.growth is None or scenario.cluster.costs_of(scenario.workload) is None:
        return None
    return known.growth if sources.beyond(scenario) else None


def told(scenario: Scenario, unchanged: float | None = None, off: float = 0.0) -> Told | None:
    """What the table that a profile was fitted to says of a job; None of one within its sizes, and of other profiles.

    Args:
        unchanged: logarithm of a step at the largest size over that of this job, both simulated; None if it was not.
        off: that of a measured step at the largest size over its simulated one.
    """
    grown, far = of(scenario), sources.beyond(scenario)
    return after(grown, far.doublings, unchanged, off) if grown and far else None


def after(grown: Growth, doublings: float, unchanged: float | None = None, off: float = 0.0, law: Law = LAW) -> Told:
    """The same so many doublings beyond a table."""
    steps = doublings**0.5
    weight = 1.0 if unchanged is None else grown.simulated_weight
    parts = [
        Part(weight, off, steps * grown.simulated, law.faster),
        Part(1 - weight, off + (unchanged or 0.0), steps * grown.unchanged, law.faster),
    ]
    low, middle, high = (quantile(parts, level) for level in ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2))
    longer = middle if grown.drifts else min(middle, max(one.at for one in parts))
    return Told(longer, high - longer, longer - low)


def at_largest(scenario: Scenario) -> Scenario | None:
    """A job beyond a table's sizes at the largest of them, as many ranks on each host; None of other jobs, and where it cannot be.

    Where batches fell with sizes, that of the table's largest size stands for a smaller one (Growth.fewest).
    """
    known, grown = scenario.cluster.provenance, of(scenario)
    if grown is None or known is None:
        return None
    among = scenario.servers_on == "own" and not scenario.cluster.serving  # servers take slots that workers could have
    ranks = Counter(scenario.hosts if among else scenario.computing_hosts)
    hosts = min(len(ranks), known.hosts or 1)
    each = min(max(ranks.values()), max(1, (known.workers or 1) // hosts))
    servers = -(-scenario.servers * hosts // len(ranks))
    workers = hosts * each - (servers if among else 0)
    try:
        place = on_hosts(scenario.cluster, hosts).with_each(each).with_servers(servers)
        job = replace(scenario, batch=max(scenario.batch, grown.fewest))
        return replace(job, workers=workers, servers=servers, cluster=place) if workers > 0 else None
    except WrongSetting:
        return None


def by_samples(scenario: Scenario, largest: Scenario) -> float:
    """Times as long as that of `at_largest` a step takes, if nothing changes but its samples."""
    grown = of(scenario)
    return (scenario.batch / largest.batch) ** grown.power if grown else 1.0


def off_of(scenario: Scenario, grown: Growth | None) -> float:
    """The logarithm of measured over simulated steps at the largest size of a table, of a job like this one."""
    return grown.off(max(Counter(scenario.computing_hosts).values()), scenario.batch) if grown else 0.0


def of_table(scenario: Scenario, outcome: Outcome, run: Callable[[Scenario], Outcome]) -> Outcome:
    """The outcome with steps that take as long as the table says that a profile was fitted to; as it is within its sizes.

    Args:
        run: simulates the job at the largest size as the first replication of the outcome was.
    """
    smaller, unchanged = at_largest(scenario), None
    if smaller:
        here_s, there_s = (float(one.step_s[0].mean()) for one in (outcome, run(smaller)))
        unchanged = log(there_s * by_samples(scenario, smaller) / here_s) if min(here_s, there_s) > 0 else None
    found = told(scenario, unchanged, off_of(smaller or scenario, of(scenario)))
    if found is None:
        return outcome
    times = exp(found.longer)
    ends = outcome.ends | {BEYOND: (found.slower, found.faster)}
    return replace(outcome, step_s=times * outcome.step_s, ends=ends)
