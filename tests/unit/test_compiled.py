"""Compiled loops say what arrays say. Here they run as plain Python, so that nothing is compiled and numba is not needed."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from sim import protocols, stragglers, vector
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.model.costs import Line
from sim.platform.cluster import Cluster, Host, Link
from sim.randomness import BLOCK
from sim.sweeps import work
from sim.sweeps.jobs import How
from sim.vector import at_once, background, compiled, decided
from sim.vector.lowered import cycles

pytestmark = pytest.mark.filterwarnings("ignore:invalid value")  # between messages that there are not, as Python says
LOOPS = ("ring", "exchanges", "by_tree", "background", "hub", "sums", "cycles")
SLOW = Link(latency_s=1e-3, overhead_s=1e-4, gap_s=1e-4, bandwidth_bytes_per_s=1e7)
FAST = Link(latency_s=1e-5, overhead_s=0.0, bandwidth_bytes_per_s=1e8)
JOBS = {
    "fmb": ("fmb", []),
    "amb": ("amb", ["time_limit_s=0.05", "partitions=5"]),
    "ring": ("allreduce", ["algorithm=ring"]),
    "a ring for each variable": ("allreduce", ["algorithm=ring", "fused=false"]),
    "halving-doubling": ("allreduce", ["algorithm=halving-doubling"]),
    "tree": ("allreduce", ["algorithm=tree", "fused=false"]),
    "auto": ("allreduce", ["fused=false"]),
    "alltoall-allgather": ("allreduce", ["algorithm=alltoall-allgather"]),
    "nccl": ("allreduce", ["algorithm=nccl"]),
    "hybrid": ("hybrid", []),
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


def job(name: str, settings: list[str], ranks: int, link: Link, slots: int = 1, **further) -> Scenario:
    found = workload.read("mnist")
    noisy = {"noise": LogNormal(cv=0.3), "call": Line(base_s=1e-5), "negotiate_s": 1e-5, "update": Line(base_s=1e-5)}
    costs = found.costs.model_copy(update=noisy)
    count = (ranks + (name in ("fmb", "amb"))) // slots - 1
    hosts = [Host(count=count, cores=4, slots=slots), Host(name="slow", cores=4, slots=slots, speed=0.7)]
    return Scenario(
        protocols.make(name, settings),
        found.model_copy(update={"costs": costs}),
        cluster=Cluster(name="two kinds", hosts=hosts, network=link),
        workers=ranks,
        **{"steps": 9, "warmup": 2, "seed": 3, **further},
    )


def of_rows(ranks: int, link: Link) -> Scenario:
    """Of a model with a sparse variable, whose rows ranks gather."""
    found = job("allreduce", ["algorithm=ring", "sparse_as_dense=false"], ranks, link)
    return replace(found, workload=workload.read("bigram"))


def answer(asked: Scenario) -> np.ndarray:
    """Step times and idle shares, side by side."""
    found = vector.run(asked, 3)
    return np.concatenate([found.step_s, found.samples, found.idle_fraction, np.full((3, 1), found.ran_out)], axis=1)


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
    loops = {"horovod": "cycles", "allreduce": "sums"}.get(JOBS[name][0], "hub")
    assert name == "hybrid" or f"sim.vector.compiled.{loops}" in sys.modules


def test_rows_that_ranks_gather_are_left_to_arrays(as_python):
    asked = of_rows(4, SLOW)
    before = answer(asked)
    assert compiled.use()
    np.testing.assert_allclose(answer(asked), before, rtol=0, atol=1e-12)
    assert len(asked.gathered_loads) == 1


@pytest.mark.parametrize(
    "name", ["fmb", "amb", "ring", "halving-doubling", "tree", "horovod, ring", "horovod, no cycles"]
)
@pytest.mark.parametrize(
    "further",
    [
        {"warmup": 0, "steps": 6},
        {"warmup": 1, "steps": 1},
        {"stragglers": LogNormal(mean=0.02, cv=2), "test_size": 100, "evaluate_every": 3},
        {"warmup": BLOCK - 2, "steps": 5},
        {"stragglers": stragglers.read("slow-ranks(rank=2, factor=3)")},
    ],
    ids=", ".join,
)
def test_whatever_the_job_is_loops_do_all_of_its_steps(as_python, monkeypatch, name, further):
    """Warm-up ends in the first step, the last, before all or in another block of random numbers; rank 0 has more to do than others.

    Down a tree others still wait when rank 0 has updated.
    """
    if further.get("warmup", 0) > 9 and name not in ("fmb", "ring"):
        pytest.skip("two are enough of so many steps")
    asked = job(*JOBS[name], 5, SLOW, **further)
    before = answer(asked)
    decided._kept.clear()
    assert compiled.use()
    monkeypatch.setattr(at_once, "Run", None)
    monkeypatch.setattr(at_once, "VectorWorld", None)
    np.testing.assert_allclose(answer(asked), before, rtol=0, atol=1e-11)


def test_moments_for_which_there_is_no_room_are_counted_before(as_python, monkeypatch):
    asked = job(*JOBS["horovod, no cycles"], 8, SLOW, steps=20)
    before, calls = answer(asked), []
    decided._kept.clear()
    assert compiled.use()
    monkeypatch.setattr(at_once, "Run", None)
    monkeypatch.setattr(cycles, "MOMENTS", 8)
    counted = background.Background.add_among
    monkeypatch.setattr(
        background.Background, "add_among", lambda self, *given: calls.append(len(given[0])) or counted(self, *given)
    )
    np.testing.assert_allclose(answer(asked), before, rtol=0, atol=1e-11)
    assert np.count_nonzero(calls) > 2


def test_a_run_out_of_time_ends_with_a_block(as_python, monkeypatch):
    """What ranks wait in its last step counts until that ends."""
    asked = job(*JOBS["ring"], 5, SLOW, steps=30)
    whole = vector.run(replace(asked, steps=10), 3)
    assert compiled.use()
    monkeypatch.setattr(at_once, "MOST_RANKS", 12 * asked.ranks * 3)
    found = vector.run(asked, 3, within_s=0.0)
    np.testing.assert_allclose(found.step_s, whole.step_s, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.idle_fraction, whole.idle_fraction, rtol=0, atol=1e-11)


def test_work_that_depends_on_when_it_begins_is_left_to_arrays(as_python):
    costs = workload.read("mnist").costs.model_copy(update={"compute": Line(base_s=1e-3, cold_s=1e-3)})
    asked = job(*JOBS["fmb"], 3, FAST)
    asked = replace(asked, workload=asked.workload.model_copy(update={"costs": costs}))
    before = answer(asked)
    assert compiled.use()
    np.testing.assert_array_equal(answer(asked), before)
    assert "sim.vector.compiled.hub" not in sys.modules


@pytest.mark.parametrize("name", ["ring", "horovod, ring"])
def test_ranks_that_share_hosts_are_left_to_arrays(as_python, name):
    asked = job(*JOBS[name], 8, SLOW, slots=2)
    before = answer(asked)
    decided._kept.clear()
    assert compiled.use()
    np.testing.assert_array_equal(answer(asked), before)
    assert not {"sim.vector.compiled.ring", "sim.vector.compiled.background"} & sys.modules.keys()


def test_a_step_that_does_not_settle_in_some_replication_is_made_again_by_arrays(as_python, monkeypatch):
    asked = job(*JOBS["horovod, ring"], 8, SLOW)
    before = answer(asked)
    decided._kept.clear()
    assert compiled.use()
    loops, calls = import_module("sim.vector.compiled.background"), []
    play = loops.play_steps

    def unsettled_now_and_then(rows, *further):
        count, (_, _, ends, *_) = play(rows, *further), further[-1]
        calls.append(len(rows))
        if len(calls) % 2:  # so that steps before and after are compiled
            ends[rows[-1], 0] = loops.UNSETTLED
        return count

    monkeypatch.setattr(loops, "play_steps", unsettled_now_and_then)
    np.testing.assert_allclose(answer(asked), before, rtol=0, atol=1e-12)
    assert len(calls) > 2


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
