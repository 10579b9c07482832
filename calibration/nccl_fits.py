"""The link that explains the times of nccl-tests best. NCCL sums by a ring, or by trees where a ring's rounds take longer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibration import algorithms
from calibration.importers.nccl_tests import Measured
from sim.base.ranges import MOST_BYTES
from sim.platform.cluster import Link, slowest, trees_s

BETTER = 0.8  # of the error of one algorithm: two, by size, must leave less than that
LEAST_SIZES, LEAST_ERROR = 3, 0.03  # of each of two algorithms; and of one, that two are tried at all
LEAST_BANDWIDTH = 1.0
MOST_SPENT = 0.9  # of a test's time, which sums, and a link within hosts that was not measured, may take
MOST_RANKS = 512  # beyond which messages within hosts are not told from those between them
MOST_SPREAD = 3.0
# Of a link: whether there are trees, whether two hosts alone differ, and whether links do.
SHAPES = ((0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 1))
MOST_UNEVEN = 1.5  # standard deviation of the logarithm of a host's link


@dataclass(frozen=True)
class Fit:
    """One link, and which algorithms it explains.

    Args:
        algorithms: for sizes up to `until_bytes`, and beyond; the same twice if one does for all.
        error: root mean square of predicted / measured - 1.
        inner: the link within hosts, if tests of one host tell it beside those of several; None if not.
        trees: seconds of a round of trees between hosts, and within one, which take the place of a ring's latencies; None if none do.
        gap_s: seconds of a ring's message beside its bytes, where there are such trees.
        both_ways, uneven: see sim.platform.cluster.Link.
        further: how many of these were fitted, beside the latency and the bandwidth.
    """

    latency_s: float
    seconds_per_byte: float
    algorithms: tuple[str, str]
    until_bytes: float
    error: float
    inner: Link | None = None
    trees: tuple[float, float] | None = None
    gap_s: float = 0.0
    both_ways: float = 1.0
    uneven: float = 0.0
    further: int = 0

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


def of_all(tests: list[Measured], inner: Link, sum_s_per_byte: float) -> Fit:
    """The link with which NCCL's ring, or its trees, explain all texts best, each of which weighs the same.

    Texts of one host tell the link within hosts, and texts of several the link between them.

    Args:
        inner: the link within hosts, where no text of one host tells it. Its messages are then as late as those between hosts.
        sum_s_per_byte: seconds in which a rank adds a byte, which the tests' times contain; 0 leaves them to the link.
    """
    apart = [test for test in tests if place(test)[0] > 1]
    within = [test for test in tests if place(test)[0] == 1]
    known = _of_some("ring", within, inner, False, sum_s_per_byte) if within else None
    if known and not (apart and known.possible):
        return known
    found = _of_some("ring", apart, known.link if known else inner, known is not None, sum_s_per_byte)
    found = _shaped(found, apart, sum_s_per_byte)
    error = max(found.error, known.error) if known else found.error
    return replace(found, error=error, inner=known.link if known else None)


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
    sums_s = np.minimum(np.concatenate([_sums_s("ring", test, sum_s_per_byte) for test in tests]), MOST_SPENT * seconds)
    ranks, slow = hosts * each, np.array([0.0 if one == 2 else slowest(int(one))[0] for one in hosts])
    rounds = (2 * (ranks - 1), 0 * ranks), (2 * np.log2(hosts), 2 * (each - 1))

    def made(trees: int, both_ways: int, uneven: float) -> Fit:
        byte = 2 * (ranks - 1) / ranks * sizes * np.exp(uneven * slow)
        design = np.column_stack([*rounds[trees], byte, byte * (hosts == 2) * both_ways])
        (round_s, inner_s, byte_s, two_s), error = _nnls(design, seconds, sums_s)
        twice = min(2.0, 1 + two_s / byte_s) if byte_s else 1.0
        found = replace(plain, latency_s=round_s, seconds_per_byte=byte_s, error=error, both_ways=twice, uneven=uneven)
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
            best, shape = replace(found, further=sum(further)), further
    return best


def _of_some(algorithm: str, tests: list[Measured], inner: Link, is_told: bool, sum_s_per_byte: float) -> Fit:
    """Of texts of several hosts each, or of one host each."""
    ways = [_way(algorithm, test, inner, is_told, sum_s_per_byte) for test in tests]
    seconds = np.concatenate([test.seconds for test in tests])
    most = max(float(test.sizes[-1]) for test in tests)
    design, spent_s = (np.concatenate(parts) for parts in zip(*ways, strict=True))
    return _of(design, seconds, (algorithm, algorithm), most, spent_s)


def _way(
    algorithm: str, test: Measured, inner: Link, is_told: bool, sum_s_per_byte: float
) -> tuple[np.ndarray, np.ndarray]:
    """The latencies and bytes of the link that is fitted, shape (sizes, 2); and the seconds of each size that are spent otherwise.

    Args:
        is_told: whether tests told the link within hosts, its latency, too.
    """
    of, sizes = algorithms.travel(algorithm, *place(test)), test.sizes
    sums_s = _sums_s(algorithm, test, sum_s_per_byte)
    if place(test)[0] == 1:
        rounds, share, spent_s = of.inner, of.within, sums_s
    else:
        rounds, share = of.rounds + (0.0 if is_told else of.inner), of.between
        spent_s = sums_s + of.within * sizes / inner.bandwidth_bytes_per_s
        spent_s += of.inner * (inner.latency_s + 2 * inner.overhead_s) if is_told else 0.0
    design = np.column_stack([np.full(len(sizes), rounds), share * sizes])
    return design, np.minimum(spent_s, MOST_SPENT * test.seconds)


def _sums_s(algorithm: str, test: Measured, sum_s_per_byte: float) -> np.ndarray:
    """Seconds in which the busiest rank adds, shape (sizes,)."""
    return sum_s_per_byte * algorithms.added(algorithm, *place(test)) * test.sizes


def fitted(measured: Measured, inner: Link, sum_s_per_byte: float) -> Fit:
    """The link and the algorithms; `inner` and `sum_s_per_byte` as in `of_all`.

    Of one number of ranks every algorithm takes a straight line, seconds by bytes, so that one alone cannot be told from another: it is
    taken as the ring. Small messages take trees if they explain much more: a message of one chunk passes a tree as a whole.
    """
    ranks, sizes, seconds = len(measured.hosts), measured.sizes, measured.seconds
    if measured.collective != "all_reduce":
        way = _chain(measured.collective, ranks, sizes)
        return _of(way, seconds, (measured.collective,) * 2, float(sizes[-1]))
    one = _of_some("ring", [measured], inner, False, sum_s_per_byte)
    if one.error <= LEAST_ERROR or ranks > MOST_RANKS:
        return one
    small, large = (_way(name, measured, inner, False, sum_s_per_byte) for name in ("tree", "ring"))
    both = [
        _of(
            np.where(few[:, None], small[0], large[0]),
            seconds,
            ("tree", "ring"),
            until,
            np.where(few, small[1], large[1]),
        )
        for until in np.unique(sizes)[LEAST_SIZES - 1 : -LEAST_SIZES].tolist()
        for few in [sizes <= until]
    ]
    two = min(both, key=lambda fit: fit.error, default=one)
    return two if two.error < BETTER * one.error else one


def ring_link(ranks: int, sizes: np.ndarray, seconds: np.ndarray, further: int = 0) -> Link | None:
    """The link on which a ring of `ranks` ranks takes these seconds for these bytes, shape (calls,); None if there is none.

    Args:
        further: messages that a call waits for beside the ring's.
    """
    design = np.add(_ring(ranks, sizes), (further, 0))
    found = _of(design, seconds, ("ring", "ring"), float(sizes.max()))
    if not found.seconds_per_byte or len(np.unique(sizes)) < 2:
        seconds_per_byte = float((seconds / design[:, 1]).mean())
        found = Fit(0.0, seconds_per_byte, ("ring", "ring"), 0.0, 0.0)
    return found.link if found.possible else None


def _ring(ranks: int, sizes: np.ndarray) -> np.ndarray:
    """Latencies, and bytes that pass a port, one after another, in a ring's allreduce of each size; shape (sizes, 2)."""
    return np.column_stack([np.full(len(sizes), 2.0 * (ranks - 1)), 2 * (ranks - 1) / ranks * sizes])


def _chain(collective: str, ranks: int, sizes: np.ndarray) -> np.ndarray:
    """Of a ring whose ranks hand on pieces: all_gather and its like move (n - 1) / n of the bytes, others all of them, in a pipeline."""
    moved = (ranks - 1) / ranks if collective in ("all_gather", "reduce_scatter", "alltoall") else 1.0
    latencies = 1.0 if collective == "sendrecv" else ranks - 1.0
    return np.column_stack([np.full(len(sizes), latencies), moved * sizes])


def _of(
    design: np.ndarray,
    seconds: np.ndarray,
    algorithms: tuple[str, str],
    until_bytes: float,
    spent_s: np.ndarray | float = 0.0,
) -> Fit:
    """The link of least error relative to each time; `spent_s` of each are known to be spent otherwise."""
    (latency_s, seconds_per_byte), error = _nnls(design, seconds, spent_s)
    return Fit(latency_s, seconds_per_byte, algorithms, until_bytes, error)


def _nnls(design: np.ndarray, seconds: np.ndarray, spent_s: np.ndarray | float) -> tuple[list[float], float]:
    """The coefficients of least error relative to each time, none below 0; and the root mean square of these errors."""
    from scipy.optimize import nnls

    scale = design.max(axis=0) / np.median(seconds)
    scale[scale == 0] = 1.0
    found, rest = nnls(design / scale / seconds[:, None], 1 - spent_s / seconds)
    return (found / scale).tolist(), float(rest) / len(seconds) ** 0.5
