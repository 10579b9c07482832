"""The link that explains the times of collectives best, by the ring that libraries take, or by trees where a ring's rounds take longer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibration.estimators.lines import stalled
from calibration.importers.nccl_tests import Measured, factors
from sim.base.ranges import MOST_BYTES
from sim.platform.cluster import Link, slowest, trees_s

ALLREDUCE = "all_reduce"
BETTER = 0.8  # of a plain ring's error: a link of a further number must leave less
LEAST_ERROR = 0.03  # is not improved upon
LEAST_BANDWIDTH = 1.0
MOST_SPENT = 0.9  # of a test's time, which sums may take
MOST_SPREAD = 3.0
# Of a link: whether there are trees, whether two hosts alone differ, and whether links do.
SHAPES = ((0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 1))
MOST_UNEVEN = 1.5  # standard deviation of the logarithm of a host's link


@dataclass(frozen=True)
class Fit:
    """One link, and how far it is from the times.

    Args:
        error: root mean square of predicted / measured - 1.
        inner: the link within hosts, if tests of one host tell it beside those of several; None if not.
        trees: seconds of a round of trees between hosts, and within one, which take the place of a ring's latencies; None if none do.
        gap_s: seconds of a ring's message beside its bytes, where there are such trees.
        both_ways, uneven: see sim.platform.cluster.Link.
    """

    latency_s: float
    seconds_per_byte: float
    error: float = 0.0
    inner: Link | None = None
    trees: tuple[float, float] | None = None
    gap_s: float = 0.0
    both_ways: float = 1.0
    uneven: float = 0.0

    @property
    def bandwidth(self) -> float:
        """Bytes a second; 0 if times do not grow with bytes."""
        return 1 / self.seconds_per_byte if self.seconds_per_byte else 0.0

    @property
    def possible(self) -> bool:
        """Whether there is such a link."""
        return LEAST_BANDWIDTH <= self.bandwidth <= MOST_BYTES

    @property
    def link(self) -> Link:
        """The link. Its measurements are as far from it as the tests' times are from those that it explains."""
        return Link(
            gap_s=self.gap_s,
            tree_s=self.trees[0] if self.trees else None,
            tree_inner_s=self.trees[1] if self.trees else 0.0,
            latency_s=self.latency_s,
            overhead_s=0,
            both_ways=self.both_ways,
            uneven=self.uneven,
            bandwidth_bytes_per_s=self.bandwidth,
            latency_spread=min(self.error, MOST_SPREAD),
            bandwidth_spread=min(self.error, MOST_SPREAD),
        )


def place(test: Measured) -> tuple[int, int]:
    """Hosts, and ranks of each."""
    hosts = len(set(test.hosts))
    return hosts, max(1, len(test.hosts) // hosts)


def fitted(tests: list[Measured], sum_s_per_byte: float) -> Fit:
    """The link with which rings, or trees, explain all tests best, each of which weighs the same.

    Tests of one host tell the link within hosts, and tests of several the link between them.

    Args:
        tests: of one collective; of several numbers of ranks only if it is an allreduce.
        sum_s_per_byte: seconds in which a rank adds a byte, which the tests' times contain; 0 leaves them to the link.
    """
    apart = [test for test in tests if place(test)[0] > 1]
    within = [test for test in tests if place(test)[0] == 1]
    known = _of_rings(within, sum_s_per_byte) if within else None
    if known and not (apart and known.possible):
        return known
    found = _shaped(_of_rings(apart, sum_s_per_byte), apart, sum_s_per_byte)
    error = max(found.error, known.error) if known else found.error
    return replace(found, error=error, inner=known.link if known else None)


def _of_rings(tests: list[Measured], sum_s_per_byte: float) -> Fit:
    """Of tests of several hosts each, or of one host each."""
    design = np.concatenate([passed(test.collective, len(test.hosts), test.sizes) for test in tests])
    seconds = np.concatenate([test.seconds for test in tests])
    return _of(design, seconds, _sums_s(tests, sum_s_per_byte))


def _sums_s(tests: list[Measured], sum_s_per_byte: float) -> np.ndarray:
    """Seconds of each row in which a rank of a ring adds its share of the bytes."""
    share = [(1 - 1 / len(test.hosts)) * (test.collective == ALLREDUCE) for test in tests]
    return np.concatenate(
        [
            np.minimum(sum_s_per_byte * of * test.sizes, MOST_SPENT * test.seconds)
            for of, test in zip(share, tests, strict=True)
        ]
    )


def passed(collective: str, ranks: int, sizes: np.ndarray) -> np.ndarray:
    """Latencies, and bytes that pass a port, one after another, in a collective of each size; shape (sizes, 2).

    An allreduce is a ring's (Patarasuk and Yuan, 2009): n - 1 rounds that sum, and as many that share. Other collectives are chains:
    all_gather and its like move (n - 1) / n of the bytes, others all of them, in a pipeline.
    """
    rounds = {ALLREDUCE: 2 * (ranks - 1), "sendrecv": 1}.get(collective, ranks - 1)
    return np.column_stack([np.full(len(sizes), float(rounds)), factors(ranks)[collective] * sizes])


def _shaped(plain: Fit, tests: list[Measured], sum_s_per_byte: float) -> Fit:
    """The ring on a link that is no plain one, where it explains tests of several numbers of hosts much better.

    A library may take trees where the rounds of a ring take longer (NCCL). Links of hosts may differ, so that more hosts wait for
    slower ones, and two hosts have both directions of the ring on one pair of links. Each is taken only if it is needed.
    """
    from scipy.optimize import minimize_scalar

    if len({place(test)[0] for test in tests}) < 2:
        return plain
    places, counts = [place(test) for test in tests], [len(test.sizes) for test in tests]
    hosts, each = (np.repeat(np.array(one, float), counts) for one in zip(*places, strict=True))
    sizes, seconds = (np.concatenate([getattr(test, name) for test in tests]) for name in ("sizes", "seconds"))
    sums_s = _sums_s(tests, sum_s_per_byte)
    ranks, slow = hosts * each, np.array([0.0 if one == 2 else slowest(int(one))[0] for one in hosts])
    rounds = (2 * (ranks - 1), 0 * ranks), (2 * np.log2(hosts), 2 * (each - 1))

    def made(trees: int, both_ways: int, uneven: float) -> Fit:
        byte = 2 * (ranks - 1) / ranks * sizes * np.exp(uneven * slow)
        design = np.column_stack([*rounds[trees], byte, byte * (hosts == 2) * both_ways])
        (round_s, inner_s, byte_s, two_s), error = _nnls(design, seconds, sums_s)
        twice = min(2.0, 1 + two_s / byte_s) if byte_s else 1.0
        found = Fit(round_s, byte_s, error, both_ways=twice, uneven=uneven)
        if not trees:
            return found
        gap_s = float(np.max(trees_s(np.log2(hosts), each, round_s, inner_s) / 2 / (ranks - 1)))
        return replace(found, latency_s=0.0, trees=(round_s, inner_s), gap_s=gap_s)

    def of_shape(trees: int, both_ways: int, uneven: int) -> Fit:
        def off(at: float) -> float:
            return made(trees, both_ways, at).error

        return made(trees, both_ways, float(minimize_scalar(off, bounds=(0, MOST_UNEVEN)).x) if uneven else 0.0)

    best, shape = plain, SHAPES[0]
    for further in SHAPES[1:]:
        if best.error <= LEAST_ERROR or 1 + sum(further[1:]) >= len(set(hosts)):  # as many numbers as tests tell
            continue
        found = of_shape(*further)
        if found.error < BETTER ** (sum(further) - sum(shape) or 1) * best.error:
            best, shape = found, further
    return best


def ring_link(ranks: int, sums: np.ndarray, further: int = 0) -> Link | None:
    """The link on which a ring takes as long as a library's allreduces, in the mean of those alike; None if there is none.

    Args:
        sums: of each how many rings follow one another, their bytes, and how long they take; shape (3, sums).
        further: messages that a call waits for beside the ring's.
    """
    sums = sums[:, sums[2] > 0]
    if not sums.size:
        return None
    alike, group = np.unique(sums[:2], axis=1, return_inverse=True)
    kept = ~stalled(sums[2], group.ravel())
    seconds = np.bincount(group.ravel()[kept], sums[2, kept]) / np.bincount(group.ravel()[kept])
    design = passed(ALLREDUCE, ranks, alike[1])
    design[:, 0] = alike[0] * (design[:, 0] + further)
    found = _of(design, seconds)
    if not found.seconds_per_byte or len(np.unique(alike[1])) < 2:
        found = Fit(0.0, float((seconds / design[:, 1]).mean()))
    return found.link if found.possible else None


def _of(design: np.ndarray, seconds: np.ndarray, spent_s: np.ndarray | float = 0.0) -> Fit:
    """The link of least error relative to each time; `spent_s` of each are known to be spent otherwise."""
    (latency_s, seconds_per_byte), error = _nnls(design, seconds, spent_s)
    return Fit(latency_s, seconds_per_byte, error)


def _nnls(design: np.ndarray, seconds: np.ndarray, spent_s: np.ndarray | float) -> tuple[list[float], float]:
    """The coefficients of least error relative to each time, none below 0; and the root mean square of these errors."""
    from scipy.optimize import nnls

    scale = design.max(axis=0) / np.median(seconds)
    scale[scale == 0] = 1.0
    found, rest = nnls(design / scale / seconds[:, None], 1 - spent_s / seconds)
    return (found / scale).tolist(), float(rest) / len(seconds) ** 0.5
