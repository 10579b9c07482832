"""The link that explains the times of nccl-tests best, with the algorithm by size, or each candidate of several texts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibration import algorithms
from calibration.importers.nccl_tests import Measured
from sim import collectives
from sim.base.ranges import MOST_BYTES
from sim.model.workload import ITEM_BYTES
from sim.platform.cluster import Link

CANDIDATES = ("ring", "tree", "recursive-doubling", "halving-doubling")
BETTER = 0.8  # of the error of one algorithm: two, by size, must leave less than that
LEAST_SIZES, LEAST_ERROR = 3, 0.03  # of each of two algorithms; and of one, that two are tried at all
LEAST_BANDWIDTH = 1.0
MOST_INSIDE = 0.9  # of a test's time, which sums, and a link within hosts that was not measured, may take
MOST_SPREAD = 3.0
MOST_ROUNDS = 4096  # ranks beyond which the exchanges of an algorithm are not laid out: the ring's formula is used


@dataclass(frozen=True)
class Fit:
    """One link, and which algorithms it explains.

    Args:
        algorithms: for sizes up to `until_bytes`, and beyond; the same twice if one does for all.
        error: root mean square of predicted / measured - 1.
        inner: the link within hosts, if tests of one host tell it beside those of several; None if not.
    """

    latency_s: float
    seconds_per_byte: float
    algorithms: tuple[str, str]
    until_bytes: float
    error: float
    inner: Link | None = None

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
            latency_s=self.latency_s,
            overhead_s=0,
            bandwidth_bytes_per_s=self.bandwidth,
            latency_spread=min(self.error, MOST_SPREAD),
            bandwidth_spread=min(self.error, MOST_SPREAD),
        )


def place(test: Measured) -> tuple[int, int]:
    """Hosts, and ranks of each."""
    hosts = len(set(test.hosts))
    return hosts, max(1, len(test.hosts) // hosts)


def candidates(tests: list[Measured]) -> list[str]:
    """Of all texts."""
    places = [place(test) for test in tests]
    return algorithms.names(max(hosts for hosts, _ in places), max(each for _, each in places))


def of_all(algorithm: str, tests: list[Measured], inner: Link, sum_s_per_byte: float) -> Fit:
    """The link with which an algorithm explains all texts best, each of which weighs the same.

    Texts of one host tell the link within hosts, and texts of several the link between them.

    Args:
        inner: the link within hosts, where no text of one host tells it.
        sum_s_per_byte: seconds in which a rank adds a byte, which the tests' times contain.
    """
    apart = [test for test in tests if place(test)[0] > 1]
    within = [test for test in tests if place(test)[0] == 1]
    if not apart:
        return _of_some(algorithm, within, None, sum_s_per_byte)
    known = _of_some(algorithm, within, None, sum_s_per_byte) if within else None
    if known and not known.possible:
        return known
    found = _of_some(algorithm, apart, known.link if known else inner, sum_s_per_byte)
    error = max(found.error, known.error) if known else found.error
    return replace(found, error=error, inner=known.link if known else None)


def _of_some(algorithm: str, tests: list[Measured], inner: Link | None, sum_s_per_byte: float) -> Fit:
    """Of texts of several hosts each, whose link within hosts is `inner`; or of one host each, without one."""
    designs, spent_s = [], []
    for test in tests:
        of, sizes = algorithms.travel(algorithm, *place(test)), test.sizes
        rounds, share = (of.inner, of.within) if inner is None else (of.rounds, of.between)
        designs.append(np.column_stack([np.full(len(sizes), rounds), share * sizes]))
        inside_s = _seconds(inner, of.inner, of.within * sizes) if inner else 0.0
        sums_s = sum_s_per_byte * algorithms.added(algorithm, *place(test)) * sizes
        spent_s.append(np.minimum(inside_s + sums_s, MOST_INSIDE * test.seconds))
    seconds = np.concatenate([test.seconds for test in tests])
    most = max(float(test.sizes[-1]) for test in tests)
    return _of(np.concatenate(designs), seconds, (algorithm, algorithm), most, np.concatenate(spent_s))


def _seconds(link: Link, rounds: float, taken_bytes: np.ndarray) -> np.ndarray:
    return rounds * (link.latency_s + 2 * link.overhead_s) + taken_bytes / link.bandwidth_bytes_per_s


def fitted(measured: Measured, sum_s_per_byte: float) -> Fit:
    """The link and the algorithms; `sum_s_per_byte` as in `of_all`.

    Of one number of ranks every algorithm takes a straight line, seconds by bytes, so that one alone cannot be told from another: it is
    taken as the ring, NCCL's for large messages. Two algorithms by size are taken where they explain much more. One whose sums alone
    would take longer than was measured is none.
    """
    ranks, sizes, seconds = len(measured.hosts), measured.sizes, measured.seconds
    if measured.collective != "all_reduce":
        way = _chain(measured.collective, ranks, sizes)
        return _of(way, seconds, (measured.collective,) * 2, float(sizes[-1]))
    ways = {name: amounts(name, ranks, sizes) for name in CANDIDATES if name == "ring" or ranks <= MOST_ROUNDS}
    adding_s = {name: sum_s_per_byte * algorithms.added(name, *place(measured)) * sizes for name in ways}
    ways = {name: way for name, way in ways.items() if name == "ring" or (adding_s[name] < seconds).all()}
    sums_s = {name: np.minimum(adding_s[name], MOST_INSIDE * seconds) for name in ways}
    one = _of(ways["ring"], seconds, ("ring", "ring"), float(sizes[-1]), sums_s["ring"])
    if one.error <= LEAST_ERROR:
        return one
    both = [
        _of(
            np.where((sizes <= until)[:, None], ways[small], ways[large]),
            seconds,
            (small, large),
            float(until),
            np.where(sizes <= until, sums_s[small], sums_s[large]),
        )
        for small in ways
        for large in ways
        if small != large
        for until in np.unique(sizes)[LEAST_SIZES - 1 : -LEAST_SIZES]
    ]
    two = min(both, key=lambda fit: fit.error, default=one)
    return two if two.error < BETTER * one.error else one


def ring_link(ranks: int, sizes: np.ndarray, seconds: np.ndarray) -> Link | None:
    """The link on which a ring of `ranks` ranks takes these seconds for these bytes, shape (calls,); None if there is none."""
    found = _of(amounts("ring", ranks, sizes), seconds, ("ring", "ring"), float(sizes.max()))
    if not found.seconds_per_byte or len(np.unique(sizes)) < 2:
        seconds_per_byte = float((seconds / amounts("ring", ranks, sizes)[:, 1]).mean())
        found = Fit(0.0, seconds_per_byte, ("ring", "ring"), 0.0, 0.0)
    return found.link if found.possible else None


def amounts(algorithm: str, ranks: int, sizes: np.ndarray) -> np.ndarray:
    """Latencies, and bytes that pass a port, one after another, in an allreduce of each size; shape (sizes, 2).

    Rounds follow one another, each as long as its largest message.
    """
    if algorithm == "ring":
        return np.column_stack([np.full(len(sizes), 2.0 * (ranks - 1)), 2 * (ranks - 1) / ranks * sizes])
    rounds, shares = _rounds(algorithm, ranks)
    return np.column_stack([np.full(len(sizes), float(rounds)), shares * sizes])


def _rounds(algorithm: str, ranks: int) -> tuple[int, float]:
    """Rounds of an algorithm, and the largest messages of each, a share of the vector, in all: of the rank that has most."""
    items = 2**20 * ranks
    most = (0, 0.0)
    for rank in range(ranks):
        largest = [
            max(one.sent_bytes, one.taken_bytes)
            for one in collectives.allreduce(algorithm, rank, range(ranks), slice(0, items))
        ]
        most = max(most, (len(largest), sum(largest) / items / ITEM_BYTES))
    return most


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
    from scipy.optimize import nnls

    scale = design.max(axis=0) / np.median(seconds)
    scale[scale == 0] = 1.0
    found, rest = nnls(design / scale / seconds[:, None], 1 - spent_s / seconds)
    latency_s, seconds_per_byte = found / scale
    return Fit(float(latency_s), float(seconds_per_byte), algorithms, until_bytes, float(rest) / len(seconds) ** 0.5)
