"""Looks of ranks that wait: how often the MPI world and the event world look, what it takes, and what calibration finds."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from calibration.looks import look_s
from calibration.looks import tells as looks_tell
from calibration.placement import Placement
from calibration.profiles import Measured, Probe, Source, make
from calibration.sharing import core_seconds
from real.waiting import poll
from sim import protocols, workload
from sim.cluster import Cluster, Host, Link
from sim.costs import Costs, Line
from sim.cpu import Cores
from sim.naps import looks
from sim.scenario import Scenario
from sim.traces import Trace
from sim.worlds import event

LOOK_S, OVERSLEEP_S = 60e-6, 100e-6
NETWORK = Link(latency_s=0.4e-3, overhead_s=300e-6, bandwidth_bytes_per_s=1e8, fair=True, eager_bytes=65536)
WORK = Costs(compute=Line(base_s=5e-3), update=Line(base_s=2e-3))


def run(look: float = LOOK_S, cores: int | None = 2, model: str = "mlp", hosts: int = 2) -> Trace:
    """One worker's of fmb, on hosts in one machine of so many cores, or of None for a machine each; or on one host."""
    host = Host(count=2) if hosts == 2 else Host(cores=cores, slots=2)
    cluster = Cluster(
        hosts=[host],
        network=NETWORK,
        costs={model: WORK},
        shared_cores=cores if hosts == 2 else None,
        oversleep_s=OVERSLEEP_S,
        look_s=look,
    )
    job = {"workers": 1, "steps": 20, "warmup": 0, "batch": 32, "cluster": cluster}
    return event.run(Scenario(protocols.make("fmb"), workload.read(model), **job))


def as_real(trace: Trace, used_s: float, hosts: int = 2) -> Trace:
    """The trace, of a real run whose ranks used so much processor time."""
    names = [["host0", 2], [f"host{hosts - 1}", 2]]
    return Trace(replace(trace.header, world="mpi", details={"cpu_s": {"0": used_s}, "hosts": names}), trace.rows)


class Used:
    """What a simulated machine's cores were used for, seconds: work, and looks of ranks that waited."""

    def __init__(self):
        self.work_s = self.looks_s = 0.0
        self._from_s = self._cores = 0.0

    @property
    def seconds(self) -> float:
        return self.work_s + self.looks_s

    def work(self, seconds: float) -> None:
        self.work_s += seconds

    def take(self, now_s: float, cores: float) -> None:
        self.looks_s += self._cores * (now_s - self._from_s)
        self._from_s, self._cores = now_s, self._cores + cores


@pytest.fixture
def used(monkeypatch) -> Used:
    noted, work, take = Used(), Cores.work, Cores.take
    monkeypatch.setattr(Cores, "work", lambda self, seconds, *who: (noted.work(seconds), work(self, seconds, *who))[1])
    monkeypatch.setattr(Cores, "take", lambda self, cores: (noted.take(self.env.now, cores), take(self, cores))[1])
    return noted


def length_s(trace: Trace, activity: str) -> float:
    rows = trace.rows[trace.rows["activity"] == activity]
    return float((rows["end_s"] - rows["start_s"]).median())


@pytest.mark.parametrize("waited_s", [0.0, 40e-6, 151e-6, 1e-3, 60e-3])
def test_the_mpi_world_naps_as_often_as_counted(waited_s, monkeypatch):
    now_s, naps = [0.0], []

    def sleep(seconds):
        naps.append(seconds)
        now_s[0] += seconds + OVERSLEEP_S

    monkeypatch.setattr(time, "perf_counter", lambda: now_s[0])
    monkeypatch.setattr(time, "sleep", sleep)
    poll(lambda: now_s[0] >= waited_s, "the test")
    assert looks(np.array([waited_s]), OVERSLEEP_S)[0] == pytest.approx(len(naps), rel=0.05, abs=1)


def test_the_event_world_looks_as_often(used):
    """In the waits of two ranks with a core each, but while they work at an end of a message."""
    rows = run().rows
    rows = rows[rows["activity"].isin(("wait", "receive", "send"))]
    waits_s = (rows["end_s"] - rows["start_s"]) - NETWORK.overhead_s * (rows["activity"] != "wait")
    assert used.looks_s == pytest.approx(LOOK_S * looks(waits_s.to_numpy(), OVERSLEEP_S).sum(), rel=0.02)


def test_looks_take_the_core_from_who_computes():
    """On one core: a computation lasts for its own work and that of the master's looks, of which there are so many meanwhile."""
    lasts_s = length_s(run(cores=1), "compute")
    assert length_s(run(0.0, cores=1), "compute") == pytest.approx(5e-3)
    count = looks(np.array([lasts_s]), OVERSLEEP_S)[0]
    assert lasts_s == pytest.approx(5e-3 + count * LOOK_S, rel=0.05)


def test_who_has_a_core_to_itself_may_look():
    assert run(cores=None).rows.equals(run(0.0, cores=None).rows)


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("model", ["mlp", "toy_fc"])
def test_planted_looks_are_found(model, hosts, used):
    """From what the simulated machine's cores did in all, which is what a real run's ranks say."""
    trace = as_real(run(model=model, hosts=hosts), used.seconds, hosts)
    assert looks_tell(trace)
    assert look_s([trace], OVERSLEEP_S, NETWORK.overhead_s) == pytest.approx(LOOK_S, rel=0.05)


def test_a_profile_has_them(used):
    source = Source("fmb", as_real(run(), used.seconds))
    probe = Probe(cores=2, oversleep_s=OVERSLEEP_S, network=Measured(**NETWORK.model_dump()))
    made = make([source], "x", probe, shared_cores=2)
    assert made.look_s == pytest.approx(LOOK_S, rel=0.05)
    assert any("a look" in note for note in made.provenance.notes)


def test_costs_are_without_others_looks(used):
    """On the one core of both, the master's looks made the computation longer; a core's seconds of it are as planted."""
    trace = run(cores=1)
    place = Placement(("h",), (1,), (0, 0), look_s=LOOK_S, oversleep_s=OVERSLEEP_S)
    computes = (trace.rows["activity"] == "compute").to_numpy()
    assert np.median(core_seconds(trace.rows, place)[computes]) == pytest.approx(5e-3, rel=0.03)
    assert length_s(trace, "compute") > 5.5e-3


@pytest.mark.parametrize("changed", [{"workers": 2}, {"world": "tensorflow"}, {"details": {}}, {"protocol": "amb-dg"}])
def test_other_runs_tell_nothing(changed):
    trace = as_real(run(), 1.0)
    assert not looks_tell(Trace(replace(trace.header, **changed), trace.rows))
