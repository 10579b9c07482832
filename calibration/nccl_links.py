"""A profile's link from texts of nccl-tests: its latency and bandwidth, and how NCCL sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from calibration import checks
from calibration.importers.nccl_tests import Measured, factors, read
from calibration.nccl_fits import ALLREDUCE, MOST_SPENT, Fit, fitted, place
from calibration.seating import inner_of
from sim import protocols
from sim.base.errors import RunFailed, WrongSetting
from sim.base.ranges import MOST_PARAMETERS
from sim.job.scenario import Scenario
from sim.model import nominal
from sim.model.costs import Costs, Line
from sim.model.sizes import ITEM_BYTES
from sim.model.workload import Workload
from sim.platform import catalogue
from sim.platform.cluster import ASSUMED, Cluster, Host, Link, Provenance
from sim.platform.other_sizes import told
from sim.simulation import simulate

MOST_RANKS, SIZES = 256, 5  # that are simulated: of ranks at most, and of sizes of each test
STEPS = 2
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
    read_in = [read(path, ranks, each) for path in paths]
    tests = [test for path, found in zip(paths, read_in, strict=True) for test in _used(found, path, len(paths) > 1)]
    if len({place(test) for test in tests}) < len(tests):
        raise WrongSetting("TRACE", " ".join(paths), "one text for each number of ranks and hosts")
    largest, called = max(tests, key=lambda test: len(test.hosts)), ", ".join(Path(path).name for path in paths)
    inner, called_inner = inner_of(catalogue.gpu_of(largest.device))
    with checks.fitting(called):
        found = fitted(tests, sum_s_per_byte(largest))
    if not found.possible:
        raise RunFailed(f"no link fits {called}: its times do not grow with the bytes")
    one_host, sums = place(largest)[0] == 1, largest.collective == ALLREDUCE
    network, local = (ASSUMED, found.link) if one_host else (found.link, _within(largest, found, inner))
    notes = [*_notes(largest, found, len(tests)), *(_of_sums(largest) if sums else ())]
    if one_host:
        notes.append(f"the link between hosts was not measured: {told(ASSUMED)} assumed; --network says another")
    elif not found.inner:
        notes.append(f"the link within hosts was not measured: taken as {called_inner}")
    made = Cluster(
        name=name,
        hosts=_hosts(largest),
        network=network,
        local=local,
        provenance=Provenance(
            traces=tuple(Path(path).name for path in paths),
            made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            notes=(*notes, *_left_out([one for of in read_in for one in of], tests)),
            workers=len(largest.hosts),
            hosts=len(set(largest.hosts)),
            links_measured=not one_host,
            local_measured=one_host or found.inner is not None,
            sums_in_links=sums and catalogue.gpu_of(largest.device) is None,
        ),
    )
    off: list[float] = []
    for test in tests if sums else ():
        measured_s, simulated_s = seconds_of(made, test, sum_s_per_byte(largest))
        off += (simulated_s / measured_s - 1).tolist()
    if not off:
        return made
    return made.known(
        f"simulated with the profile, {len(off)} of the rows are off by {min(off):+.1%} to {max(off):+.1%}"
    )


def seconds_of(made: Cluster, test: Measured, sum_s_per_byte: float) -> tuple[np.ndarray, np.ndarray]:
    """Measured and simulated seconds of some sizes of a test, the smallest and the largest among them; of none on too many ranks."""
    ranks, (hosts, each) = len(test.hosts), place(test)
    able = np.flatnonzero((test.sizes >= ITEM_BYTES * ranks) & (test.sizes <= ITEM_BYTES * MOST_PARAMETERS))
    if ranks > MOST_RANKS or hosts * each != ranks or not len(able):
        return np.zeros(0), np.zeros(0)
    rows = able[np.unique(np.linspace(0, len(able) - 1, SIZES).round().astype(int))]
    like = made.hosts[0].model_copy(update={"count": hosts, "slots": each})
    costs = {"summed": Costs(reduce=Line(slope_s=sum_s_per_byte))}
    where = made.model_copy(update={"hosts": (like,), "provenance": None, "costs": costs})
    simulated_s = [_simulated_s(where, ranks, size) for size in test.sizes[rows]]
    return test.seconds[rows], np.array(simulated_s)


def _simulated_s(where: Cluster, ranks: int, size_bytes: float) -> float:
    """Seconds of one allreduce of so many bytes."""
    summed = Workload(name="summed", parameters=round(size_bytes / ITEM_BYTES), layers=1, costs=Costs())
    job = Scenario(protocols.make("allreduce", ["algorithm=ring"]), summed, ranks, STEPS, 0, 1, where)
    return float(simulate(job, replications=1).step_s.mean())


def _within(largest: Measured, found: Fit, inner: Link) -> Link:
    """The link within hosts; where these had several ranks, its messages are as late as those between hosts, which the tests see."""
    if found.inner or place(largest)[1] == 1:
        return found.inner or inner
    bandwidth = max(inner.bandwidth_bytes_per_s, found.link.bandwidth_bytes_per_s)
    return Link(latency_s=found.link.latency_s, overhead_s=0, bandwidth_bytes_per_s=bandwidth)


def _used(found: list[Measured], path: str, several: bool) -> list[Measured]:
    """The tests of a text that are fitted: its allreduces or, of one text alone, the first collective that it has.

    Raises:
        WrongSetting: it has none of them.
    """
    if sums := [test for test in found if test.collective == ALLREDUCE]:
        return sums
    names = ", ".join(dict.fromkeys(test.collective for test in found))
    if several:
        raise WrongSetting(f"{path}: collective", names, "all_reduce, where there are several texts")
    known = [test for test in found if test.collective in factors(2)]
    if not known:
        raise WrongSetting(f"{path}: collective", names, ", ".join(factors(2)))
    return known[:1]


def _left_out(read_of: list[Measured], used: list[Measured]) -> Iterator[str]:
    """What the texts have beside that which is fitted, in lines."""
    others = dict.fromkeys(
        f"{one.collective} of {len(one.hosts)} ranks, {len(one.sizes)} rows" for one in read_of if one not in used
    )
    if others:
        yield f"left out: {'; '.join(others)}"
    if cut := sum(one.left_out for one in used):
        yield f"{cut} row{'s' * (cut > 1)} left out: cut, or with other text in {'them' if cut > 1 else 'it'}"


def _hosts(measured: Measured) -> tuple[Host, ...]:
    """Hosts with as many GPUs as had ranks; of a name, where the catalogue has the device."""
    each = Counter(measured.hosts)
    gpu = catalogue.gpu_of(measured.device)
    if len({*each.values()}) == 1:
        count = each[measured.hosts[0]]
        return (Host(name="host", count=len(each), cores=count, gpus=count, gpu=gpu),)
    return tuple(Host(name=name, cores=count, gpus=count, gpu=gpu) for name, count in each.items())


def sum_s_per_byte(measured: Measured) -> float:
    """Seconds in which a rank adds a byte, as its GPU's memory passes it; 0 without a name: nothing tells them from the link's."""
    gpu = catalogue.gpu_of(measured.device)
    return nominal.of_memory(gpu.memory_bytes_per_s)["reduce"].slope_s if gpu else 0.0


def _of_sums(measured: Measured) -> Iterator[str]:
    """The share of the largest test that is no link's, in a line; or that none is told from it."""
    gpu = catalogue.gpu_of(measured.device)
    if gpu is None:
        yield "sums are part of the link's time: the memory of a GPU without a name is not known; they cost nothing besides"
        return
    sums_s = sum_s_per_byte(measured) * (1 - 1 / len(measured.hosts)) * measured.sizes[-1]
    share = min(sums_s / measured.seconds[-1], MOST_SPENT)
    if share >= LEAST_SUMS:
        yield f"{share:.0%} of the largest test's time is taken as sums, by the memory of {gpu.name}, and the rest as the link"


def _notes(measured: Measured, found: Fit, texts: int) -> Iterator[str]:
    ranks, hosts = len(measured.hosts), len(set(measured.hosts))
    others = f"; with {texts - 1} text{'s' * (texts > 2)} of other ranks" * (texts > 1)
    yield (
        f"{measured.collective} of {ranks} ranks on {hosts} host{'s' * (hosts != 1)}, {len(measured.sizes)} sizes of "
        f"{measured.sizes[0]:.3g} to {measured.sizes[-1]:.3g} bytes: a link of {told(found.link)}, off by {found.error:.1%} "
        f"(root mean square){others}"
    )
    if measured.collective == ALLREDUCE:
        yield "taken as a ring: simulate with --set algorithm=ring"
    if found.trees:
        yield "small messages take rounds of trees, whose number grows with the logarithm of hosts, as NCCL's do"
    if found.uneven or found.both_ways > 1:
        two = f"; a byte takes {found.both_ways:.2f} times as long between two hosts alone" * (found.both_ways > 1)
        yield f"bandwidth falls with hosts, as where their links differ by {found.uneven:.0%} (standard deviation){two}"
    if measured.seconds[-1] < 2 * measured.seconds[0]:
        yield "the largest message takes less than twice as long as the smallest: the bandwidth is hardly known, test larger ones"
    if measured.device and catalogue.gpu_of(measured.device) is None:
        yield f"{measured.device} is no GPU of the catalogue: computing is nominal"
    if not measured.whole:
        yield "the text has no end (average bus bandwidth): further sizes may be missing"
    if measured.wrong:
        yield f"the tests found {measured.wrong} wrong results"
    yield from measured.notes
