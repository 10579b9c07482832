"""Compiled loops say what arrays say. Here they run as plain Python, so that nothing is compiled and numba is not needed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from sim import protocols, vector
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Line
from sim.platform.cluster import Cluster, Host, Link
from sim.sweeps import work
from sim.sweeps.jobs import How
from sim.vector import compiled, decided

pytestmark = pytest.mark.filterwarnings("ignore:invalid value")  # between messages that there are not, as Python says
LOOPS = ("ring", "exchanges", "by_tree", "background")
SLOW = Link(latency_s=1e-3, overhead_s=1e-4, gap_s=1e-4, bandwidth_bytes_per_s=1e7)
FAST = Link(latency_s=1e-5, overhead_s=0.0, bandwidth_bytes_per_s=1e8)
JOBS = {
    "ring": ("allreduce", ["algorithm=ring"]),
    "a ring for each variable": ("allreduce", ["algorithm=ring", "fused=false"]),
    "halving-doubling": ("allreduce", ["algorithm=halving-doubling"]),
    "tree": ("allreduce", ["algorithm=tree", "fused=false"]),
    "horovod, ring": ("horovod", ["algorithm=ring", "fusion_bytes=20000"]),
    "horovod, halving-doubling": ("horovod", ["algorithm=halving-doubling", "cycle_s=0.0001"]),
    "horovod, no cycles": ("horovod", ["algorithm=tree", "cycle_s=0"]),
}


@pytest.fixture
def as_python(monkeypatch):
    """The loops, of which numba compiles none."""
    for name in LOOPS:
        monkeypatch.delitem(sys.modules, f"sim.vector.compiled.{name}", raising=False)
        monkeypatch.delattr(compiled, name, raising=False)
    monkeypatch.setattr(compiled, "loop", lambda function: function)
    monkeypatch.setattr(compiled, "_can_compile", lambda: True)
    monkeypatch.setattr(decided, "_kept", type(decided._kept)())
    yield
    compiled.use(False)
    for name in LOOPS:
        sys.modules.pop(f"sim.vector.compiled.{name}", None)


def job(name: str, settings: list[str], ranks: int, link: Link) -> Scenario:
    found = workload.read("mnist")
    noisy = {"noise": LogNormal(cv=0.3), "call": Line(base_s=1e-5), "negotiate_s": 1e-5}
    costs = found.costs.model_copy(update=noisy)
    hosts = [Host(count=ranks - 1, cores=4, slots=1), Host(name="slow", cores=4, slots=1, speed=0.7)]
    return Scenario(
        protocols.make(name, settings),
        found.model_copy(update={"costs": costs}),
        cluster=Cluster(name="two kinds", hosts=hosts, network=link),
        workers=ranks,
        steps=9,
        warmup=2,
        seed=3,
    )


def answer(asked: Scenario) -> np.ndarray:
    """Step times and idle shares, side by side."""
    found = vector.run(asked, 3)
    return np.concatenate([found.step_s, found.idle_fraction], axis=1)


@pytest.mark.parametrize(
    ("name", "ranks", "link"),
    [(name, *about) for name in JOBS for about in ((5, FAST), (8, SLOW))] + [("horovod, ring", 5, SLOW)],
)
def test_compiled_loops_say_what_arrays_say(as_python, name, ranks, link):
    asked = job(*JOBS[name], ranks, link)
    before = answer(asked)
    decided._kept.clear()
    assert compiled.use()
    np.testing.assert_allclose(answer(asked), before, rtol=0, atol=1e-12)
    loops = "background" if name.startswith("horovod") else "ring" if "ring" in name else "exchanges"
    assert f"sim.vector.compiled.{loops}" in sys.modules


def test_a_process_of_a_sweep_uses_them_once_it_has_simulated_for_a_while(as_python, monkeypatch):
    task = work.Task("one", job(*JOBS["ring"], 3, Link()), How(replications=1))
    monkeypatch.setattr(work, "_spent_s", [0.0])
    assert work.work(["one"], [task])[0]["runs_done"] == 1
    assert not compiled.in_use()
    monkeypatch.setattr(work, "PATIENCE_S", 0.0)
    work.work(["one"], [task])
    assert compiled.in_use()


def test_a_loop_that_does_not_compile_costs_no_row(as_python, monkeypatch):
    task = work.Task("one", job(*JOBS["ring"], 3, Link()), How(replications=2))
    compiled.use()

    def refused(function):
        raise TypeError("cannot compile")

    monkeypatch.setattr(compiled, "loop", refused)
    assert work.row(task).get("error") is None
    assert not compiled.in_use()
