"""Hosts that are containers of one machine: what is fitted on them knows that they share its cores."""

from dataclasses import replace

import event
import pytest

from calibration.profiles import Source, make
from sim import protocols
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.recording.traces import Trace

CORES, CONTENTION = 2, 0.4
PLANTED = Costs(compute=Line(base_s=8e-3), update=Line(base_s=2e-3), noise=LogNormal(cv=0.05))
NETWORK = Link(bandwidth_bytes_per_s=1e9)


def run(protocol: str, workers: int, hosts: list[str], seed: int = 0) -> Source:
    """Recorded on hosts of these names, which are namespaces on one machine; or on the machine, if there is one."""
    of_each = Host(count=len(hosts), cores=CORES, slots=9 if len(hosts) == 1 else 1, contention=CONTENTION)
    shared = CORES if len(hosts) > 1 else None
    where = Cluster(hosts=[of_each], shared_cores=shared, network=NETWORK, costs={"mlp": PLANTED})
    settings = ["algorithm=ring"] if protocol == "allreduce" else []
    job = {"workers": workers, "steps": 60, "warmup": 2, "batch": 32, "seed": seed, "cluster": where}
    trace = event.trace(Scenario(protocols.make(protocol, settings), workload.read("mlp"), **job))
    sat = tuple((hosts[rank if len(hosts) > 1 else 0], CORES) for rank in range(trace.header.ranks))
    return Source(f"{protocol}-{workers}-{seed}", Trace(replace(trace.header, hosts=sat), trace.rows))


@pytest.fixture(scope="module")
def rings():
    return [run("allreduce", 2, ["host0", "host1"], seed) for seed in range(2)]


@pytest.fixture(scope="module")
def beside():
    return [run("fmb", workers, ["machine"], seed) for workers in (1, 2) for seed in range(2)]


@pytest.mark.slow
def test_planted_costs_are_found_again(rings, beside):
    """Both workers of a ring compute at the same time, so that what is measured is what contention makes of it."""
    known = make([*rings, *beside], "known", shared_cores=CORES)
    ignored = make(rings, "ignored")
    assert known.hosts[0].contention == pytest.approx(CONTENTION, abs=0.05)
    assert known.costs["mlp"].compute(32) == pytest.approx(PLANTED.compute(32), rel=0.03)
    assert ignored.costs["mlp"].compute(32) > 1.3 * PLANTED.compute(32)  # negative control
    assert [host.name for host in known.hosts] == ["host0", "host1"]
    assert known.shared_cores == CORES
    assert known.placement(2, servers=0) == [0, 1]  # a host each, as they sat, though each sees both cores


@pytest.mark.slow
def test_more_hosts_are_predicted(rings, beside):
    """Four ranks on two cores: were the costs of two taken for those of a core, contention would count twice."""
    made = make([*rings, *beside], "known", shared_cores=CORES)
    host = Host(count=4, contention=made.hosts[0].contention)
    settings = {"network": NETWORK, "hosts": (host,)}
    cluster = made.model_copy(update=settings)
    job = Scenario(protocols.make("allreduce", ["algorithm=ring"]), workload.read("mlp"), 4, batch=32, cluster=cluster)
    measured = run("allreduce", 4, ["a", "b", "c", "d"], seed=7).trace
    assert of_trace(event.trace(job)).step_s.mean() == pytest.approx(of_trace(measured).step_s.mean(), rel=0.05)


def test_one_host_shares_with_nobody(beside):
    with pytest.raises(WrongSetting, match="--shared-cores: given 2"):
        make(beside, "x", shared_cores=2)


def test_no_cores_are_none(rings):
    with pytest.raises(WrongSetting, match="--shared-cores: given 0"):
        make(rings, "x", shared_cores=0)
