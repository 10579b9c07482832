"""A profile's link from a text of nccl-tests: its latency and bandwidth, and the algorithm by size that explains the times best."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from calibration import algorithms, checks
from calibration.importers.nccl_tests import Measured, read
from sim import catalogue, collectives
from sim.base.errors import RunFailed, WrongSetting
from sim.base.ranges import MOST_BYTES
from sim.model.workload import ITEM_BYTES
from sim.platform.cluster import Candidate, Cluster, Host, Link, Provenance
from sim.platform.other_sizes import told

CANDIDATES = ("ring", "tree", "recursive-doubling", "halving-doubling")
BETTER = 0.8  # of the error of one algorithm: two, by size, must leave less than that
LEAST_SIZES, LEAST_ERROR = 3, 0.03  # of each of two algorithms; and of one, that two are tried at all
LEAST_BANDWIDTH = 1.0
MOST_ROUNDS = 4096  # ranks beyond which the exchanges of an algorithm are not laid out: the ring's formula is used


@dataclass(frozen=True)
class Fit:
    """One link, and which algorithms it explains.

    Args:
        algorithms: for sizes up to `until_bytes`, and beyond; the same twice if one does for all.
        error: root mean square of predicted / measured - 1.
    """

    latency_s: float
    seconds_per_byte: float
    algorithms: tuple[str, str]
    until_bytes: float
    error: float

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
        """The link."""
        return Link(latency_s=self.latency_s, overhead_s=0, bandwidth_bytes_per_s=self.bandwidth)


def profile(paths: Sequence[str], name: str, ranks: int | None = None) -> Cluster:
    """The cluster that texts of nccl-tests are of: one, or several of other numbers of ranks.

    It has one link, between hosts and within them, because the tests see the slowest link of a path. It has no costs: computing is
    nominal, or that of the GPUs if they are known by name.

    Raises:
        WrongSetting: see calibration.importers.nccl_tests; several texts that are not of allreduces of several numbers of ranks.
        RunFailed: no link fits the times.
    """
    tests = [read(path, ranks) for path in paths]
    _check_several(tests, paths)
    largest, called = max(tests, key=lambda test: len(test.hosts)), ", ".join(Path(path).name for path in paths)
    sums = largest.collective == "all_reduce"
    with checks.fitting(called):
        able = {one: _of_all(one, tests) for one in _candidates(tests)} if sums else {}
        told = 2 * (len(tests) - 1)  # a line of each text, less the one of the link
        weights = algorithms.weights({one: fit.error for one, fit in able.items()}, told)
        best = max(weights, key=lambda one: weights[one], default="ring")
        found = able[best] if len(tests) > 1 else fitted(largest)
        able = {one: fit for one, fit in able.items() if fit.possible}
    if not found.possible:
        raise RunFailed(f"no link fits {called}: its times do not grow with the bytes")
    notes = _notes(largest, found, found.link, len(tests))
    return Cluster(
        name=name,
        hosts=_hosts(largest),
        network=found.link,
        local=found.link,
        provenance=Provenance(
            traces=tuple(Path(path).name for path in paths),
            made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            notes=(*notes, algorithms.note(weights, told)) if sums else notes,
            workers=len(largest.hosts),
            hosts=len(set(largest.hosts)),
            algorithms={
                one: Candidate(weight=weights[one], network=fit.link, local=fit.link) for one, fit in able.items()
            },
        ),
    )


def _check_several(tests: list[Measured], paths: Sequence[str]) -> None:
    """Refuse several texts that do not tell which algorithm sums.

    Raises:
        WrongSetting: naming the first that cannot be.
    """
    if len(tests) == 1:
        return
    for test, path in zip(tests, paths, strict=True):
        if test.collective != "all_reduce":
            raise WrongSetting(f"{path}: collective", test.collective, "all_reduce, where there are several texts")
    if len({_place(test) for test in tests}) < len(tests):
        raise WrongSetting("TRACE", " ".join(paths), "one text for each number of ranks and hosts")


def _place(test: Measured) -> tuple[int, int]:
    """Hosts, and ranks of each."""
    hosts = len(set(test.hosts))
    return hosts, max(1, len(test.hosts) // hosts)


def _candidates(tests: list[Measured]) -> list[str]:
    places = [_place(test) for test in tests]
    return algorithms.names(max(hosts for hosts, _ in places), max(each for _, each in places))


def _of_all(algorithm: str, tests: list[Measured]) -> Fit:
    """The link with which an algorithm explains all texts best, each of which weighs the same."""
    designs = []
    for test in tests:
        of = algorithms.travel(algorithm, *_place(test))
        rounds, share = of.rounds + of.inner, of.between + of.within
        designs.append(np.column_stack([np.full(len(test.sizes), rounds), share * test.sizes]))
    seconds = np.concatenate([test.seconds for test in tests])
    return _of(np.concatenate(designs), seconds, (algorithm, algorithm), max(float(test.sizes[-1]) for test in tests))


def fitted(measured: Measured) -> Fit:
    """The link and the algorithms.

    With one number of ranks every algorithm is a straight line of seconds over bytes, and algorithms cannot be separated. The
    algorithm is taken to be the ring, NCCL's for large messages. Two algorithms by size are taken where they explain much more.
    """
    ranks, sizes, seconds = len(measured.hosts), measured.sizes, measured.seconds
    if measured.collective != "all_reduce":
        way = _chain(measured.collective, ranks, sizes)
        return _of(way, seconds, (measured.collective,) * 2, float(sizes[-1]))
    ways = {name: amounts(name, ranks, sizes) for name in CANDIDATES if name == "ring" or ranks <= MOST_ROUNDS}
    one = _of(ways["ring"], seconds, ("ring", "ring"), float(sizes[-1]))
    if one.error <= LEAST_ERROR:
        return one
    both = [
        _of(np.where((sizes <= until)[:, None], ways[small], ways[large]), seconds, (small, large), float(until))
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
    """The share of the bytes that a ring moves: all_gather and its like move (n - 1) / n, others all of them, in a pipeline."""
    moved = (ranks - 1) / ranks if collective in ("all_gather", "reduce_scatter", "alltoall") else 1.0
    latencies = 1.0 if collective == "sendrecv" else ranks - 1.0
    return np.column_stack([np.full(len(sizes), latencies), moved * sizes])


def _of(design: np.ndarray, seconds: np.ndarray, algorithms: tuple[str, str], until_bytes: float) -> Fit:
    """The link of least error relative to each time."""
    from scipy.optimize import nnls

    scale = design.max(axis=0) / np.median(seconds)
    found, rest = nnls(design / scale / seconds[:, None], np.ones(len(seconds)))
    latency_s, seconds_per_byte = found / scale
    return Fit(float(latency_s), float(seconds_per_byte), algorithms, until_bytes, float(rest) / len(seconds) ** 0.5)


def _hosts(measured: Measured) -> tuple[Host, ...]:
    """Hosts with as many GPUs as had ranks; of a name, where the catalogue has the device."""
    each = Counter(measured.hosts)
    gpu = gpu_of(measured.device)
    several = [(name, several) for name, several in each.items()]
    if len({count for _, count in several}) == 1:
        count = several[0][1]
        return (Host(name="host", count=len(several), cores=count, gpus=count, gpu=gpu),)
    return tuple(Host(name=name, cores=count, gpus=count, gpu=gpu) for name, count in several)


def gpu_of(device: str):
    """The GPU of the catalogue whose name is a word of the device's, "A100" of "NVIDIA A100-SXM4-40GB"; None if there is none."""
    words = set(re.split(r"[\s\-_/]+", device.lower()))
    names = [name for name in catalogue.all_of("gpus") if set(re.split(r"[\s\-_/]+", name.lower())) <= words]
    return catalogue.find("gpus", max(names, key=len)) if names else None


def _notes(measured: Measured, found: Fit, link: Link, texts: int) -> tuple[str, ...]:
    ranks, hosts = len(measured.hosts), len(set(measured.hosts))
    small, large = found.algorithms
    notes = [
        f"{measured.collective} of {ranks} ranks on {hosts} host{'s' * (hosts != 1)}, {len(measured.sizes)} sizes of "
        f"{measured.sizes[0]:.3g} to {measured.sizes[-1]:.3g} bytes: a link of {told(link)}, off by {found.error:.1%} (root mean square)"
    ]
    if texts > 1:
        notes[0] += f"; with {texts - 1} text{'s' * (texts > 2)} of other ranks"
        notes.append(f"{large} explains the texts best; simulate with --set algorithm={large}")
    elif measured.collective == "all_reduce":
        if small == large:
            said = "taken as a ring: one number of ranks does not determine the algorithm"
        else:
            said = f"up to {found.until_bytes:.3g} bytes {small} explains the times best, beyond {large}"
        notes.append(f"{said}; simulate with --set algorithm={large}")
    if measured.seconds[-1] < 2 * measured.seconds[0]:
        notes.append(
            "the largest message takes less than twice as long as the smallest: the bandwidth is hardly known, test larger ones"
        )
    if hosts > 1 and ranks > hosts:
        notes.append("links within hosts taken as that between them: the tests see the slowest on the way")
    if measured.device and gpu_of(measured.device) is None:
        notes.append(f"{measured.device} is no GPU of the catalogue: computing is nominal")
    if not measured.whole:
        notes.append("the text has no end (average bus bandwidth): further sizes may be missing")
    if measured.wrong:
        notes.append(f"the tests found {measured.wrong} wrong results")
    return tuple(notes)
