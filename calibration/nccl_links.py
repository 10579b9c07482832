"""A profile's link from texts of nccl-tests: its latency and bandwidth, and how NCCL sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from calibration import algorithms, checks, nccl_checks
from calibration.importers.nccl_tests import Measured, factors, read
from calibration.nccl_fits import MOST_SPENT, Fit, fitted, of_all, place
from sim.base.errors import RunFailed, WrongSetting
from sim.model import nominal
from sim.platform import catalogue
from sim.platform.cluster import ASSUMED, FREE, Cluster, Host, Link, Provenance
from sim.platform.gpu import Gpu
from sim.platform.other_sizes import BYTES_OF_GBIT, told

LEAST_SUMS = 0.02  # of a test's time, from which sums are said


def profile(paths: Sequence[str], name: str, ranks: int | None = None, each: int | None = None) -> Cluster:
    """The cluster that texts of nccl-tests are of: one, or several of other numbers of ranks.

    Tests of several hosts tell the link between them, and tests of one host that within it, because they see the slowest link of a
    path. Their times contain the sums, which are no part of the link where the GPU's memory is known by name, and part of it where it
    is not. The other link is not measured: within hosts it is that of the GPUs by their name, or free, and between them the usual one.
    The profile has no costs: computing is nominal, or that of the GPUs if they are known by name.

    Raises:
        WrongSetting: see calibration.importers.nccl_tests; several texts that are not of allreduces of several numbers of ranks.
        RunFailed: no link fits the times.
    """
    read_in = [(path, read(path, ranks, each)) for path in paths]
    tests = [test for path, found in read_in for test in _used(found, path, len(paths) > 1)]
    if len({place(test) for test in tests}) < len(tests):
        raise WrongSetting("TRACE", " ".join(paths), "one text for each number of ranks and hosts")
    largest, called = max(tests, key=lambda test: len(test.hosts)), ", ".join(Path(path).name for path in paths)
    sums = largest.collective == "all_reduce"
    with checks.fitting(called):
        inner, called_inner = inner_of(catalogue.gpu_of(largest.device))
        sum_s = sum_s_per_byte(largest)
        found = of_all(tests, inner, sum_s) if len(tests) > 1 else fitted(largest, inner, sum_s)
    if not found.possible:
        raise RunFailed(f"no link fits {called}: its times do not grow with the bytes")
    network, local = _links(largest, found, inner)
    notes = (
        *_notes(largest, found, found.link, len(tests)),
        *_not_measured(largest, found, called_inner),
        *(_of_sums(largest, found) if sums else ()),
        *_left_out([one for _, of in read_in for one in of], tests),
    )
    made = Cluster(
        name=name,
        hosts=_hosts(largest),
        network=network,
        local=local,
        provenance=Provenance(
            traces=tuple(Path(path).name for path in paths),
            made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            notes=notes,
            workers=len(largest.hosts),
            hosts=len(set(largest.hosts)),
            links_measured=place(largest)[0] > 1,
            local_measured=place(largest)[0] == 1 or found.inner is not None,
            sums_in_links=sums and catalogue.gpu_of(largest.device) is None,
        ),
    )
    return nccl_checks.added(made, tests, found, sum_s_per_byte(largest)) if sums else made


def inner_of(gpu: Gpu | None) -> tuple[Link, str]:
    """The link within hosts where no test tells it, and what it is called: that of the catalogue's hosts with this GPU, or a free one."""
    name = catalogue.inner_link(gpu.name) if gpu else None
    return (catalogue.find("links", name), f"{name}, by the GPU's name") if name else (FREE, "free")


def _links(largest: Measured, found: Fit, inner: Link) -> tuple[Link, Link]:
    """The links between hosts and within them.

    Where hosts had several ranks, messages within a host are as late as those between hosts, which the tests see, and no slower.
    """
    hosts, each = place(largest)
    if hosts == 1:
        return ASSUMED, found.link
    if found.inner or each == 1:
        return found.link, found.inner or inner
    bandwidth = inner.bandwidth_bytes_per_s
    if not algorithms.travel(found.algorithms[1], hosts, each).within:  # by which the fit has not reckoned
        bandwidth = max(bandwidth, found.link.bandwidth_bytes_per_s)
    return found.link, Link(latency_s=found.link.latency_s, overhead_s=0, bandwidth_bytes_per_s=bandwidth)


def _not_measured(largest: Measured, found: Fit, inner: str) -> list[str]:
    """The link that no test tells, in a line."""
    if place(largest)[0] == 1:
        return [f"the link between hosts was not measured: {told(ASSUMED)} assumed; --network says another"]
    return [] if found.inner else [f"the link within hosts was not measured: taken as {inner}"]


def _used(found: list[Measured], path: str, several: bool) -> list[Measured]:
    """The tests of a text that are fitted: its allreduces or, of one text alone, the first collective that it has.

    Raises:
        WrongSetting: it has none of them.
    """
    if sums := [test for test in found if test.collective == "all_reduce"]:
        return sums
    names = ", ".join(dict.fromkeys(test.collective for test in found))
    if several:
        raise WrongSetting(f"{path}: collective", names, "all_reduce, where there are several texts")
    known = [test for test in found if test.collective in factors(2)]
    if not known:
        raise WrongSetting(f"{path}: collective", names, ", ".join(factors(2)))
    return known[:1]


def _left_out(read_of: list[Measured], used: list[Measured]) -> list[str]:
    """What the texts have beside that which is fitted, in lines."""
    others = dict.fromkeys(
        f"{one.collective} of {len(one.hosts)} ranks, {len(one.sizes)} rows" for one in read_of if one not in used
    )
    notes = [f"left out: {'; '.join(others)}"] if others else []
    if cut := sum(one.left_out for one in used):
        notes.append(f"{cut} row{'s' * (cut > 1)} left out: cut, or with other text in {'them' if cut > 1 else 'it'}")
    return notes


def _hosts(measured: Measured) -> tuple[Host, ...]:
    """Hosts with as many GPUs as had ranks; of a name, where the catalogue has the device."""
    each = Counter(measured.hosts)
    gpu = catalogue.gpu_of(measured.device)
    several = [(name, several) for name, several in each.items()]
    if len({count for _, count in several}) == 1:
        count = several[0][1]
        return (Host(name="host", count=len(several), cores=count, gpus=count, gpu=gpu),)
    return tuple(Host(name=name, cores=count, gpus=count, gpu=gpu) for name, count in several)


def sum_s_per_byte(measured: Measured) -> float:
    """Seconds in which a rank adds a byte, as its GPU's memory passes it; 0 without a name: nothing tells them from the link's."""
    gpu = catalogue.gpu_of(measured.device)
    return nominal.of_memory(gpu.memory_bytes_per_s)["reduce"].slope_s if gpu else 0.0


def _of_sums(measured: Measured, found: Fit) -> list[str]:
    """The share of the largest test that is no link's, in a line, and what the link would be with it; or that none is told from it."""
    gpu = catalogue.gpu_of(measured.device)
    if gpu is None:
        return [
            "sums are part of the link's time: the memory of a GPU without a name is not known; they cost nothing besides"
        ]
    whole_s, size_bytes = float(measured.seconds[-1]), float(measured.sizes[-1])
    adds = algorithms.added(found.algorithms[1], *place(measured))
    share = min(sum_s_per_byte(measured) * adds * size_bytes / whole_s, MOST_SPENT)
    if share < LEAST_SUMS:
        return []
    of = algorithms.travel(found.algorithms[1], *place(measured))
    seen = (of.between or of.within) * size_bytes / whole_s / BYTES_OF_GBIT
    return [
        f"{share:.0%} of the largest test's time is taken as sums, by the memory of {gpu.name}, and the rest as the link: "
        f"together they pass {seen:.4g} Gbit/s"
    ]


def _notes(measured: Measured, found: Fit, link: Link, texts: int) -> tuple[str, ...]:
    ranks, hosts = len(measured.hosts), len(set(measured.hosts))
    small, large = found.algorithms
    notes = [
        f"{measured.collective} of {ranks} ranks on {hosts} host{'s' * (hosts != 1)}, {len(measured.sizes)} sizes of "
        f"{measured.sizes[0]:.3g} to {measured.sizes[-1]:.3g} bytes: a link of {told(link)}, off by {found.error:.1%} (root mean square)"
    ]
    if texts > 1:
        notes[0] += f"; with {texts - 1} text{'s' * (texts > 2)} of other ranks"
        notes.append(f"NCCL's {large}: simulate with --set algorithm={large}")
        if found.trees:
            notes.append(
                "small messages take rounds of trees, whose number grows with the logarithm of hosts, as NCCL's do"
            )
        if found.uneven or found.both_ways > 1:
            two = f"; a byte takes {found.both_ways:.2f} times as long between two hosts alone" * (found.both_ways > 1)
            notes.append(
                f"bandwidth falls with hosts, as where their links differ by {found.uneven:.0%} (standard deviation){two}"
            )
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
    if measured.device and catalogue.gpu_of(measured.device) is None:
        notes.append(f"{measured.device} is no GPU of the catalogue: computing is nominal")
    if not measured.whole:
        notes.append("the text has no end (average bus bandwidth): further sizes may be missing")
    if measured.wrong:
        notes.append(f"the tests found {measured.wrong} wrong results")
    return (*notes, *measured.notes)
