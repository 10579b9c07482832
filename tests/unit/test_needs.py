"""What a job is said to need, beside what it does: function calls are counted, which are the same however busy the machine is."""

import sys
from dataclasses import dataclass, replace
from functools import partial

import event
import pytest

from sim import needs, protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.language.text import Text
from sim.language.verbs import compute, exchange
from sim.laws import LogNormal
from sim.model import workload
from sim.model.sparse_rows import Rows
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link
from sim.texts import Allreduce

ROUGHLY = 4  # a factor
EVENT_CALL_S = 0.125e-6  # seconds of a core for each counted call, in the middle
NET = Link(latency_s=2e-5, overhead_s=5e-6, bandwidth_bytes_per_s=1e10 / 8)


def job(name: str, settings: tuple[str, ...], workers: int, slots: int = 1, model: str = "mlp", **further) -> Scenario:
    """A job of ranks on hosts of so many each."""
    found = workload.read(model)
    costs = found.costs.model_copy(update={"noise": LogNormal(cv=0.02)})
    hosts = [Host(count=-(-(workers + further.get("servers", 1)) // slots), slots=slots, cores=4 * slots)]
    cluster = Cluster(hosts=hosts, network=NET, costs={model: costs})
    return Scenario(protocols.make(name, settings), found, workers, warmup=1, steps=1, cluster=cluster, **further)


def calls(run) -> int:
    """Calls of functions while something is run."""
    count = 0

    def counted(_frame, kind: str, _argument) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


EVENT = {
    "fmb": job("fmb", (), 8),
    "amb": job("amb", ("time_limit_s=0.3",), 12, 4),
    "ring, a host each": job("allreduce", ("algorithm=ring",), 12),
    "ring": job("allreduce", ("algorithm=ring",), 12, 4),
    "halving-doubling": job("allreduce", ("algorithm=halving-doubling",), 16, 4),
    "tree": job("allreduce", ("algorithm=tree",), 20),
    "by layer": job("allreduce", ("algorithm=ring", "fused=false"), 8, 2),
    "horovod": job("horovod", ("algorithm=halving-doubling",), 4, 2, "resnet50"),
    "horovod, rings": job("horovod", ("algorithm=ring",), 8, 1, "resnet50"),
    "horovod, long cycles": job("horovod", ("algorithm=auto", "cycle_s=0.02"), 8, 1, "resnet50"),
    "ps-sync": job("ps-sync", ("barrier=true",), 12, servers=3),
    "ps-async": job("ps-async", (), 12, servers=2),
    "ps-layers": job("ps-layers", (), 6, 2, "mnist", servers=2),
    "amb-dg": job("amb-dg", ("time_limit_s=0.3",), 8),
}


def named(jobs: dict[str, Scenario]) -> list:
    """Parameters of tests; a Horovod takes half a second."""
    return [pytest.param(name, marks=[pytest.mark.slow] if "horovod" in name else []) for name in jobs]


@pytest.mark.parametrize("name", named(EVENT))
def test_the_event_world_calls_as_many_functions_as_is_said(name):
    one = EVENT[name]
    event.run(one, want_trace=False)  # loads all
    few, more = (calls(partial(event.run, replace(one, steps=steps), want_trace=False)) for steps in (1, 3))
    said_s = needs.once_and_step_s(one)[1]
    assert 1 / ROUGHLY < said_s / (EVENT_CALL_S * (more - few) / 2) < ROUGHLY


def test_a_trace_takes_memory_that_no_other_run_does():
    one = replace(EVENT["horovod"], steps=1000)
    assert needs.of(one, traced=True).bytes > 100 * needs.of(one).bytes


def test_rows_that_a_part_is_of_need_memory():
    """How often each of them is drawn is an array; NumPy refused 7 TiB."""
    rows = Rows(per_sample=1, of=10**12)
    model = Workload(
        name="parts", variables=[Variable(name="a", shape=(100, 10), rows=rows), Variable(name="b", shape=(9,))]
    )
    one = Scenario(protocols.make("hybrid"), model, 2)
    with pytest.raises(WrongSetting, match="--workload: given 'parts'; allowed: a smaller job"):
        needs.check(one)


@dataclass(frozen=True)
class Gossip(Text):
    """Workers swap with one other."""

    def __call__(self, me):
        for _ in me.steps():
            yield from compute(me)
            yield from exchange(me, me.gradient, me.rank ^ 1, me.rank ^ 1, me.gradient, adds=True)
            yield from me.update()


@dataclass(frozen=True)
class Halving(Allreduce):
    """The algorithm is a setting."""

    algorithm: str = "halving-doubling"


def own(protocol: Text, workers: int) -> Scenario:
    return Scenario(protocol, workload.read("resnet50"), workers)


def test_a_text_of_ones_own_needs_what_its_verbs_do():
    """4,096 workers that swap were taken to make a ring of all, and refused for 25.7 GB; they take 0.09 GB."""
    assert 0.05e9 < needs.of(own(Gossip(), 4096)).bytes < 0.3e9
    assert needs.of(own(Gossip(), 4096)).seconds < 10
    halving, ring = (needs.of(own(one, 1024)) for one in (Halving(), protocols.make("allreduce", ["algorithm=ring"])))
    assert halving.bytes < 0.1e9
    assert halving.seconds < 5
    assert 0.3e9 < ring.bytes < 2e9  # 0.34 GB were measured


def test_a_ring_whose_ranks_share_hosts_is_played_message_by_message():
    together = Cluster(hosts=[Host(count=128, slots=8, cores=32)], network=NET)
    shared = Scenario(protocols.make("allreduce", ["algorithm=ring"]), workload.read("mlp"), 1024, cluster=together)
    assert needs.of(shared).bytes > 1e9


def test_the_event_world_calls_as_many_functions_for_a_text_of_ones_own():
    one = replace(own(Gossip(), 64), warmup=1, steps=1)
    event.run(one, want_trace=False)  # loads all
    few, more = (calls(partial(event.run, replace(one, steps=steps), want_trace=False)) for steps in (1, 3))
    said_s = needs.once_and_step_s(one)[1]
    assert 1 / ROUGHLY < said_s / (EVENT_CALL_S * (more - few) / 2) < ROUGHLY
