"""Jobs on which another world once differed from the event world, or might: the engine does not. Fixed ones, and drawn ones like them."""

from __future__ import annotations

import itertools
import sys

import pytest
from engines import agree, assert_alike
from hypothesis import given, settings
from hypothesis import strategies as st

from sim import collectives, protocols, stragglers
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.sparse_rows import Rows
from sim.model.workload import Variable, Workload
from sim.platform import cluster
from sim.platform.cluster import Cluster, Host, Link

LINK = Link(latency_s=2e-4, overhead_s=3e-5, gap_s=2e-6, bandwidth_bytes_per_s=1e9)
LOCAL = Link(latency_s=2e-6, overhead_s=1e-5, bandwidth_bytes_per_s=2e10)
EQUAL = {"speeds": 1.0, "noise": 0.0}
MANY = 64  # cores


def dense(*sizes: int) -> list[Variable]:
    return [Variable(name=f"w{i}", shape=(size,)) for i, size in enumerate(sizes)]


def made(said: str, variables, costs: Costs, workers: int, hosts: list[Host], link: Link, local: Link = LOCAL, **of):
    name, *settings = said.split()
    place = Cluster(hosts=hosts, network=link, local=local, oversleep_s=of.pop("oversleep_s", 0.0))
    model, of = Workload(name="made", variables=variables, costs=costs), {"steps": 4, "warmup": 1, "batch": 8} | of
    return Scenario(protocols.make(name, settings), model, workers, cluster=place, **of)


def drawn(jobs):
    """A test of jobs that are drawn."""
    return lambda test: pytest.mark.slow(settings(max_examples=100, deadline=None)(given(jobs)(test)))


def links(latencies_s=(1e-6, 2e-5, 1e-3), gaps_s=(0.0, 1e-6, 1e-4)):
    return st.builds(
        Link,
        latency_s=st.sampled_from(latencies_s),
        overhead_s=st.sampled_from([0.0, 1e-5]),
        gap_s=st.sampled_from(gaps_s),
        bandwidth_bytes_per_s=st.floats(1e6, 1e10),
    )


SLEEPS = st.sampled_from(["none", "niagara*0.002"]).map(stragglers.read)
NOISE = st.sampled_from([0.0, 0.3, 1.0])
SUMS = st.sampled_from(collectives.NAMES)
YES = st.sampled_from(["true", "false"])
CYCLES = st.builds(
    "horovod algorithm={} fusion_bytes={} cycle_s={} order={} by_name={}".format,
    st.sampled_from([name for name in collectives.NAMES if name not in ("nccl", "reduce-broadcast")]),
    st.sampled_from([0, 10**4, 10**5, 2**27]),
    st.sampled_from([0, 1e-5, 1e-3, 7e-3]),
    st.sampled_from(["parameters", "uniform", "end"]),
    YES,
)


# ---- Horovod's cycles: requests of the next one come among messages of the call before


def horovod(said="", workers=8, sizes=(3000, 70_000, 10, 200_000, 4097), speeds=None, noise=0.1, costs=None, **of):
    each = Costs(
        compute=Line(base_s=0.0213),
        pack=Line(base_s=1e-5, slope_s=1e-10),
        reduce=Line(slope_s=1e-10),
        update=Line(base_s=1e-3),
        call=Line(base_s=2e-5),
        negotiate_s=1e-5,
        noise=LogNormal(cv=noise),
    ).model_copy(update=costs or {})
    hosts = [Host(name=f"h{i}", cores=2, slots=1, speed=speeds or 1 - i / 37) for i in range(workers)]
    return made(f"horovod {said}", dense(*sizes), each, workers, hosts, of.pop("link", LINK), **of)


def crowded(said: str, workers: int, sizes, link: tuple, compute_s: float = 2e-4, **of) -> Scenario:
    """Gradients are ready while others are summed, so that one cycle follows the next."""
    costs = {"pack": Line(), "call": Line(), "compute": Line(base_s=compute_s)}
    fields = dict(zip(("latency_s", "overhead_s", "gap_s", "bandwidth_bytes_per_s"), link, strict=True))
    about = {"noise": 0.0, "steps": 2, "link": Link(**fields)} | of
    return horovod(f"fusion_bytes=0 cycle_s=0 {said}", workers, sizes, costs=costs, **about)


def one_call(algorithm: str, workers: int, size: int, latency_s: float) -> Scenario:
    """Data may come to a port before the answer, from a rank that was told sooner, because it is higher in the tree."""
    link, costs = (
        Link(latency_s=latency_s, overhead_s=1e-5, bandwidth_bytes_per_s=1e9),
        {"compute": Line(base_s=1.337e-3)},
    )
    return horovod(f"algorithm={algorithm} order=end", workers, (size,), costs=costs, link=link, steps=2, **EQUAL)


LONG_RING = {"workers": 28, "sizes": (700, 1, 20_000, 20_000, 9), "link": (1e-6, 1e-5, 1.4e-6, 5.8e7)}
DECIDES = {"workers": 4, "noise": 0.5, "costs": {"error": 0.1}, "stragglers": stragglers.read("niagara*0.01")}
OF_CYCLES = {
    "3 equal ranks": horovod("algorithm=ring", 3, **EQUAL),
    "6 equal ranks": horovod("algorithm=ring cycle_s=0", 6, **EQUAL),
    "16 equal ranks": horovod("algorithm=ring", 16, **EQUAL),
    "7 equal ranks, halving": horovod("algorithm=halving-doubling by_name=true cycle_s=0", 7, **EQUAL),
    "10 equal ranks, halving": horovod("algorithm=halving-doubling by_name=true cycle_s=0", 10, **EQUAL),
    "12 equal ranks, a tree": horovod("algorithm=tree by_name=true cycle_s=0", 12, **EQUAL),
    "each run decides": horovod("", **DECIDES, test_size=10, evaluate_every=2),
    "each run decides by name": horovod("by_name=true fusion_bytes=100000", **DECIDES),
    "each run decides on whole gradients": horovod("order=end fusion_bytes=0", **DECIDES),
    "data between requests and answer": one_call("recursive-doubling", 11, 3000, 1e-3),
    "data that hold up the answer": one_call("halving-doubling", 13, 300_000, 1e-5),
    "data in several rounds": one_call("alltoall-allgather", 7, 300_000, 1e-3),
    "requests in a long ring's last rounds": crowded("algorithm=ring", **LONG_RING),
    "requests in each run's own rounds": crowded("algorithm=ring", **LONG_RING, noise=0.3),
    "requests where messages pass for long": crowded(
        "algorithm=ring", 32, (40, 20_000, 9, 20_000, 700), (1e-4, 0.0, 0.0, 6e6), speeds=1.0
    ),
    "requests at rank 0's port": crowded(
        "algorithm=ring by_name=true", 21, (9, 9, 9, 700, 40), (1e-6, 1e-5, 1.4e-6, 3.4e7)
    ),
    "requests among levels": crowded(
        "algorithm=recursive-doubling", 33, (40, 40, 9, 9, 1), (1e-4, 2e-6, 3e-7, 9.8e6), compute_s=2e-3
    ),
}


@st.composite
def cycles(draw) -> Scenario:
    said, equal = draw(CYCLES).removeprefix("horovod "), draw(st.booleans())
    sizes = draw(st.tuples(*[st.sampled_from([1, 9, 40, 700, 20_000, 200_000])] * 4))
    costs = {"compute": Line(base_s=draw(st.sampled_from([2.1373e-4, 2.1373e-3, 2.1373e-2])))}
    costs |= {"pack": Line(), "call": Line()} if draw(st.booleans()) else {}
    about = {"link": draw(links((1e-6, 2e-5, 1e-4))), "seed": draw(st.integers(0, 99)), "steps": 3}
    speeds, noise = (1.0, draw(st.sampled_from([0.0, 0.02]))) if equal else (None, 0.1)
    return horovod(said, draw(st.integers(1, 34)), sizes, speeds, noise, costs, **about)


# ---- ranks of one host: they copy from one another, and take turns at its port


def shared(said: str, workers: int = 6, slots: int | list[int] = 3, noise: float = 0.3, **of) -> Scenario:
    """Hosts of so many slots, or of these in turn. The first is a little slower, and the last may not be full."""
    lines = dict.fromkeys(("pack", "take_up", "reduce", "update", "evaluate"), Line(base_s=1e-5, slope_s=1e-10))
    costs = Costs(
        compute=Line(base_s=4.0137e-3, cold_s=1e-3),
        partition=Line(base_s=1e-3),
        call=Line(base_s=1e-5),
        noise=LogNormal(cv=noise),
        **lines,
    )
    hosts, each = [], itertools.cycle([slots] if isinstance(slots, int) else slots)
    while sum(host.slots for host in hosts) < workers + 1:
        count = next(each)
        cores = count * (2 if said.startswith("horovod") else 1)
        hosts.append(Host(name=f"h{len(hosts)}", speed=1 - 0.1 * (not hosts), slots=count, cores=cores))
    link = of.pop("link", Link(latency_s=2e-5, gap_s=1e-6, bandwidth_bytes_per_s=1e9))
    return made(said, workload.read("mlp").variables, costs, workers, hosts, link, **{"batch": 20} | of)


AT_ONCE = {
    "workers": 8,
    "slots": 4,
    "noise": 0.0,
    "link": Link(latency_s=2e-5, overhead_s=0.0, bandwidth_bytes_per_s=1e9),
}
OF_HOSTS = {
    "a ring": shared("allreduce algorithm=ring"),
    "amb": shared("amb", workers=7),
    "a tree whose messages take no core": shared("allreduce algorithm=tree", **AT_ONCE),
    "fmb whose messages take no core": shared("fmb", **AT_ONCE),
    **{f"7 equal ranks, {name}": shared(f"allreduce algorithm={name}", 7, 4, 0.0) for name in collectives.NAMES},
    **{
        f"horovod on hosts of {slots}": shared("horovod algorithm=ring by_name=true", 9, slots)
        for slots in (2, 4, 5, 8, [3, 1, 5], [1, 7], [6, 2])
    },
    "horovod on two levels": shared("horovod algorithm=hierarchical fusion_bytes=0 cycle_s=0.0001", 9, 4),
    "horovod without noise": shared("horovod algorithm=tree by_name=true fusion_bytes=0", 9, [2, 7], 0.0),
}


@st.composite
def jobs_of_hosts(draw) -> Scenario:
    limit = st.builds("amb time_limit_s={} partitions=8".format, st.floats(0, 0.02))
    said = draw(st.just("fmb") | limit | st.builds("allreduce algorithm={} fused={}".format, SUMS, YES) | CYCLES)
    slots = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4) | st.integers(2, 8))
    about = {"test_size": draw(st.sampled_from([0, 50])), "evaluate_every": 2, "seed": draw(st.integers(0, 99))}
    between = {"link": draw(links()), "local": draw(links())}
    return shared(said, draw(st.integers(2, 9)), slots, draw(NOISE), stragglers=draw(SLEEPS), **between, **about)


# ---- servers behind a barrier: gradients and requests pass them in the order in which they come


def served(workers: int = 5, servers: int = 1, speeds: float | None = None, costs=None, **of) -> Scenario:
    kinds = ("input", "pack", "reduce", "update", "evaluate", "take_up")
    lines = dict.fromkeys(kinds, Line(base_s=1e-4, slope_s=1e-10, cold_s=3e-4))
    each = Costs(compute=Line(base_s=0.01, cold_s=1e-3), resume_s=1e-3, **lines).model_copy(update=costs or {})
    hosts = [Host(name=f"h{i}", slots=1, speed=speeds or 1 - i / 37) for i in range(workers + servers)]
    about = {"servers": servers, "oversleep_s": 1e-5, "link": LINK} | of
    return made("ps-sync barrier=true", dense(3000, 70_000, 10, 200_000), each, workers, hosts, **about)


OF_SERVERS = {
    f"{servers} equal servers, {parts} parts, {changed}": served(
        7, servers, 1.0, variable_partitions=parts, link=LINK.model_copy(update=changed)
    )
    for servers, parts in ((1, 1), (2, 1), (4, 4))
    for changed in ({}, {"overhead_s": 0.0}, {"latency_s": 0.0})
}


@st.composite
def jobs_of_servers(draw) -> Scenario:
    """Gradients of the first workers come before requests of the last, where these sleep or ports are slow."""
    servers, cv = draw(st.integers(1, 3)), draw(st.sampled_from([0.0, 0.3]))
    costs = {"compute": Line(base_s=draw(st.sampled_from([1e-4, 1e-2])))}
    costs |= {"noise": LogNormal(cv=cv), "update_noise": LogNormal(cv=0.1)}
    law = stragglers.read(draw(st.sampled_from(["none", "niagara*0.01", "cedar*0.3"])))
    about = {"stragglers": law, "seed": draw(st.integers(0, 99)), "variable_partitions": servers}
    about |= {"test_size": 50, "evaluate_every": 2} if servers == 1 else {}
    speeds = None if cv else 1.0
    return served(draw(st.integers(1, 9)), servers, speeds, costs, link=draw(links((2e-4,))), **about)


# ---- rows of sparse variables: servers hold parts of them, or workers gather them

ROWS = [Variable(name=f"rows{i}", shape=(900 * i, 40), rows=Rows(fraction=0.1 * i)) for i in (1, 2)]
DENSE = dense(5000, 33)
# Of many rows and numbers, so that some workers begin the next step while others sum.
LARGE = [Variable(name="large", shape=(60_000,)), Variable(name="much", shape=(4000, 40), rows=Rows(fraction=0.2))]
NEAR = Link(latency_s=2e-5, overhead_s=1e-5, gap_s=1e-6, bandwidth_bytes_per_s=1e8)


def sparse(said: str, workers: int = 4, servers: int = 1, cores: int = MANY, noise: float = 0.3, slots: int = 1, **of):
    """Each rank has a host, or so many share one, each with these cores."""
    of = {"variables": [ROWS[0], *DENSE, ROWS[1]], "link": NEAR, "compute_s": 4e-3, "cold_s": 1e-3, "agree_s": 0.0} | of
    cold_s, lines = of.pop("cold_s"), ("input", "pack", "take_up", "reduce", "call")
    costs = Costs(
        compute=Line(base_s=of.pop("compute_s"), cold_s=cold_s),
        update=Line(base_s=2e-4, slope_s=1e-9, cold_s=cold_s),
        noise=LogNormal(cv=noise),
        input_noise=LogNormal(cv=noise),
        update_noise=LogNormal(cv=noise / 3),
        agree_s=of.pop("agree_s"),
        reduce_rows=Line(base_s=3e-5, slope_s=4e-9),
        **dict.fromkeys(lines, Line(base_s=1e-4, slope_s=1e-9)),
    )
    hosts = [
        Host(name=f"h{i}", slots=slots, cores=cores, speed=1 - (noise > 0) * i / 37) for i in range(workers + servers)
    ]
    return made(said, of.pop("variables"), costs, workers, hosts, servers=servers, **of)


QUICK, GATHER = {"noise": 0.0, "compute_s": 0.0, "cold_s": 0.0}, "allreduce sparse_as_dense=false"
OF_ROWS = {
    # An idle share was 0.3256 in the world of arrays, and 0.3278 in the event world.
    "servers on hosts of workers": sparse(
        "ps-sync barrier=true",
        servers=2,
        servers_on="workers",
        variable_partitions=3,
        stragglers=stragglers.read("niagara*0.002"),
        variables=[*ROWS, *DENSE],
        link=Link(latency_s=1e-6, overhead_s=0.0, gap_s=1e-4, bandwidth_bytes_per_s=88021605.0),
        local=Link(latency_s=1e-6, overhead_s=0.0, bandwidth_bytes_per_s=25197974.0),
        **QUICK,
    ),
    "servers on hosts of two": sparse("ps-sync barrier=true", slots=2),
    "two parts on two cores": sparse("ps-sync barrier=true", cores=2, variable_partitions=2),
    "late workers": sparse("ps-backup barrier=true"),
    "a ring of rows": sparse(f"{GATHER} algorithm=ring", 5, variables=ROWS),
    "a tree on hosts of three": sparse(f"{GATHER} algorithm=tree", 6, slots=3),
    **{
        f"variables one by one, the {which} sparse, {cores} cores": sparse(
            "ps-layers", 3, slots=3, cores=cores, variables=variables
        )
        for which, variables in (("last", [*DENSE, ROWS[0]]), ("first", [ROWS[0], *DENSE]))
        for cores in (1, MANY)
    },
    "hybrid on hosts of three": sparse("hybrid", 6, 3, slots=3, variable_partitions=3),
}


@st.composite
def jobs_of_rows(draw) -> Scenario:
    gather = st.builds((GATHER + " algorithm={} fused={}").format, SUMS, YES)
    servers = st.just("ps-sync barrier=true") | st.just("hybrid") | st.just("ps-layers")
    said, parts = draw(servers | gather), draw(st.integers(1, 4))
    slots = draw(st.integers(1, 4)) if "gather" in said else 1
    variables = [
        [*ROWS, *DENSE],
        [ROWS[0], *DENSE],
        [*DENSE, ROWS[1]],
        [*LARGE, ROWS[0]],
        *([ROWS] * ("hyb" not in said)),
    ]
    about = {
        "variable_partitions": parts,
        "compute_s": draw(st.sampled_from([0.0, 1e-4, 1e-2])),
        "cold_s": draw(st.sampled_from([0.0, 1e-3])),
        "agree_s": draw(st.sampled_from([0.0, 1e-3])),
        "variables": draw(st.sampled_from(variables)),
        "stragglers": draw(SLEEPS),
        "seed": draw(st.integers(0, 99)),
        "link": draw(links()),
        "local": draw(links()),
    }
    cores = draw(st.sampled_from([1, 8])) if slots == 1 else MANY
    return sparse(said, draw(st.integers(1, 7)), draw(st.integers(1, parts)), cores, draw(NOISE), slots, **about)


JOBS = OF_CYCLES | OF_HOSTS | OF_SERVERS | OF_ROWS


LONG = (
    "requests where messages pass for long",
    "requests in each run's own rounds",
    "requests in a long ring's last rounds",
)


@pytest.mark.parametrize(
    "scenario", [pytest.param(one, id=name, marks=[pytest.mark.slow] * (name in LONG)) for name, one in JOBS.items()]
)
def test_a_job_is_as_in_the_event_world(scenario):
    agree(scenario, 2)


def test_what_follows_an_agreement_is_played_once_in_a_run(compiled, monkeypatch):
    """With and without room for notes a run is as in the event world; with it, fewer messages are played."""
    scenario, messages = horovod("algorithm=halving-doubling fusion_bytes=100000 cycle_s=0.001", steps=6), []
    for room in (sys.modules["sim.engine.arrays.loads"].KNOWN_WAITS, 0):
        monkeypatch.setattr("sim.engine.arrays.loads.KNOWN_WAITS", room)
        compiled._kept.clear()
        of = compiled.Replications(scenario)
        job = compiled.Job(of._template, 0)
        job.run()
        messages.append(job.state.record["messages"][0])
        assert_alike(lambda _, of=of: of, scenario, 0)
    compiled._kept.clear()
    assert messages[0] < messages[1]


def test_a_gradient_that_has_been_ready_is_no_tie():
    """In replication 10 a cycle's begin is one rounding before the moment from which rank 0 goes on: all it sums next was ready before."""
    agree(Scenario(protocols.make("horovod"), workload.read("resnet50"), 2, steps=2, warmup=0), 11)


@pytest.mark.parametrize("compute_s", [1e-3, 2e-3])
def test_equal_ranks_that_compute_for_whole_cycles(compute_s):
    """Both gradients are ready when a cycle of 1 ms begins, and go with it, though rounding would decide otherwise in one of the worlds."""
    link = Link(latency_s=2e-5, overhead_s=1e-5, gap_s=1e-6, bandwidth_bytes_per_s=7e9)
    about = {"costs": {"compute": Line(base_s=compute_s)}, "link": link, "steps": 1, "warmup": 0}
    agree(horovod("algorithm=ring fusion_bytes=100000 cycle_s=0.001", 2, (700, 200_000, 40, 40), **EQUAL, **about))


@pytest.mark.parametrize("said", ["fmb", "allreduce algorithm=ring"])
def test_hosts_with_gpus_are_as_in_the_event_world(said):
    """Of which the planner asks most."""
    name, *settings = said.split()
    place = cluster.read("p3.16xlarge*2")
    agree(Scenario(protocols.make(name, settings), workload.read("resnet50"), 15, cluster=place, steps=3, warmup=1))


@drawn(cycles())
def test_drawn_cycles(scenario):
    agree(scenario)


@drawn(jobs_of_hosts())
def test_drawn_jobs_of_shared_hosts(scenario):
    agree(scenario)


@drawn(jobs_of_servers())
def test_drawn_jobs_of_servers(scenario):
    agree(scenario)


@drawn(jobs_of_rows())
def test_drawn_jobs_of_rows(scenario):
    agree(scenario)
