"""Compiled loops say what arrays say. Here they run as plain Python, so that nothing is compiled."""

from __future__ import annotations

import ast
import os
import shutil
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
from sim.vector import at_once, compiled, lowered
from sim.vector.compiled import constants, every, kept
from sim.vector.cycles import background, decided
from sim.vector.lowered import cycles

pytestmark = pytest.mark.filterwarnings("ignore:invalid value")  # between messages that there are not, as Python says
LOOPS = ("arrays", "ring", "exchanges", "by_tree", "background", "hub", "sums", "cycles")
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
    monkeypatch.setattr(compiled, "can_compile", lambda: True)
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
    assert f"sim.vector.compiled.{loops}" in sys.modules


def test_a_gradient_that_has_been_ready_is_no_tie(as_python):
    """As in test_cycles: of 20 replications one begins a cycle a rounding after rank 0 goes on."""
    scenario = Scenario(protocols.make("horovod"), workload.read("resnet50"), 2, steps=2, warmup=0)
    before = vector.run(scenario, 20).step_s
    decided._kept.clear()
    assert compiled.use()
    np.testing.assert_allclose(vector.run(scenario, 20).step_s, before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name, (protocol, _) in JOBS.items() if protocol in ("allreduce", "horovod")])
def test_one_rank_has_nobody_to_sum_with(as_python, name):
    asked = Scenario(protocols.make(*JOBS[name]), workload.read("mnist"), 1, steps=9)
    before = answer(asked)
    decided._kept.clear()
    assert compiled.use()
    np.testing.assert_allclose(answer(asked), before, rtol=0, atol=1e-12)


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
    monkeypatch.setattr(lowered.CycleSteps, "suits", lambda plan: False)
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


@pytest.fixture
def loops(as_python, monkeypatch, tmp_path):
    """Of a process that has simulated nothing yet; none are kept."""
    monkeypatch.setattr(kept, "folder", lambda _of=None: tmp_path)
    monkeypatch.setattr(kept, "can_compile", lambda: True)
    monkeypatch.setattr(work, "_loops", work.Loops())
    return work._loops


def uses(task: work.Task, left: float = 0.0) -> bool:
    """Whether the process simulates by loops, after it has simulated one more scenario."""
    assert work.work(["one"], [task], left)[0]["runs_done"] == 1
    assert not compiled.in_use()  # what the program around does is as it was
    with work._loops.used():
        return compiled.in_use()


RING = work.Task("one", job(*JOBS["ring"], 3, Link()), How(replications=1))


@pytest.mark.parametrize(
    ("spent_s", "left", "are_kept", "expected"),
    [
        (0.0, 0.0, True, False),
        (1.5, 0.0, True, True),
        (0.0, 1e9, True, True),
        (19.0, 0.0, False, False),
        (20.5, 0.0, False, True),
        (0.0, 1e9, False, True),
    ],
)
def test_a_process_of_a_sweep_uses_loops_where_compiling_or_loading_them_takes_less_time_than_what_is_left(
    loops, monkeypatch, tmp_path, spent_s, left, are_kept, expected
):
    """In a plan nobody knows what is left: then as much as there was."""
    if are_kept:
        (tmp_path / kept.ALL).write_text(kept._stamps(kept.SOURCES))
    monkeypatch.setattr(every, "play_all", lambda: None)
    loops.consider(spent_s, 0.0) if spent_s < 1 else setattr(loops, "_spent_s", spent_s)
    assert uses(RING, left) == expected
    assert (tmp_path / kept.ALL).exists() == (are_kept or expected)


def test_what_loops_cannot_do_is_no_reason_to_compile_them(loops, monkeypatch):
    served = work.Task(
        "one", Scenario(protocols.make("ps-sync", ["barrier=true"]), workload.read("mnist"), 2), How(replications=1)
    )
    assert not uses(served, left=1e9)


def test_one_process_compiles_loops_while_others_go_on_without(loops, monkeypatch, tmp_path):
    asked = []

    def compile_them():
        other = work.Loops()
        other.consider(0.0, 100.0)
        asked.append(other._are_used)

    monkeypatch.setattr(every, "play_all", compile_them)
    assert uses(RING, left=1e9)
    assert asked == [False]
    other = work.Loops()
    other.consider(0.0, 2.0)
    assert other._are_used


def test_compiling_them_all_uses_every_loop_that_arrays_call(as_python, monkeypatch):
    called = set()

    def noted(function):
        def call(*given):
            if not sys._getframe(1).f_globals["__name__"].startswith(compiled.__name__):
                called.add(f"{function.__module__.rpartition('.')[2]}.{function.__name__}")
            return function(*given)

        return call

    monkeypatch.setattr(compiled, "loop", noted)
    every.play_all()
    steps = {f"{name}.play_steps" for name in ("hub", "sums", "cycles", "background")}
    assert called == {*steps, "exchanges.play_all", "ring.play_rounds"}


def test_loops_are_kept_by_all_that_they_are_made_of(monkeypatch, tmp_path):
    """Numba asks for the file of each loop alone, and not for those that it calls."""
    for path in kept.SOURCES.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(kept, "SOURCES", tmp_path)
    folder, names = kept.folder.__wrapped__, []
    names.append(folder().name)
    assert folder().parent == tmp_path / "__pycache__"
    (tmp_path / "ring.py").write_text("# changed")
    names.append(folder().name)
    monkeypatch.setattr(constants, "TIE_S", 2 * constants.TIE_S)
    names.append(folder().name)
    assert len(set(names)) == 3
    monkeypatch.setattr(every, "play_all", lambda: None)
    monkeypatch.setattr(kept, "folder", folder)
    assert kept.keep()
    assert [path.name for path in (tmp_path / "__pycache__").iterdir()] == names[-1:]


def test_loops_are_kept_at_home_where_the_installation_is_read_only(monkeypatch, tmp_path):
    takes_files = kept._takes_files
    monkeypatch.setattr(kept, "_takes_files", lambda at: kept.SOURCES not in at.parents and takes_files(at))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path / "trainsim" in kept.folder.__wrapped__().parents


def test_what_a_read_only_installation_has_compiled_is_taken_over(monkeypatch, tmp_path):
    """All of it or nothing, and not where something is kept already."""
    sources, home, takes_files = tmp_path / "sources", tmp_path / "home", kept._takes_files
    sources.mkdir()
    (sources / "one.py").write_text("# a loop")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    installed = kept.folder.__wrapped__(sources)
    (installed / "one").mkdir()
    (installed / "one" / "loop.nbc").write_text("compiled")
    monkeypatch.setattr(kept, "_takes_files", lambda at: sources not in at.parents and takes_files(at))
    found = kept.folder.__wrapped__(sources)
    assert home in found.parents
    assert not list(found.iterdir())
    (installed / kept.ALL).write_text(kept._stamps(sources))
    assert kept.folder.__wrapped__(sources) == found
    assert (found / kept.ALL).exists()
    assert (found / "one" / "loop.nbc").read_text() == "compiled"
    assert list(found.parent.iterdir()) == [found]
    (found / kept.ALL).unlink()
    kept.folder.__wrapped__(sources)
    assert not (found / kept.ALL).exists()
    assert list(found.parent.iterdir()) == [found]


def test_sources_that_were_copied_are_not_taken_to_be_compiled(monkeypatch, tmp_path):
    """As in layers of an image, which keep whole seconds: numba would compile them in the middle of a job."""
    source = tmp_path / "one.py"
    source.write_text("# a loop")
    monkeypatch.setattr(kept, "folder", kept.folder.__wrapped__)
    monkeypatch.setattr(kept, "can_compile", lambda: True)
    played = []
    assert kept.keep(tmp_path, lambda: played.append(1))
    assert kept.are_kept(tmp_path)
    os.utime(source, (1e9, 1e9))
    assert not kept.are_kept(tmp_path)
    assert kept.keep(tmp_path, lambda: played.append(2))
    assert kept.are_kept(tmp_path)
    assert played == [1, 2]


def test_nothing_is_compiled_where_numba_is_told_so(monkeypatch):
    """Plain Python would take much longer than the event world."""
    from numba import config

    monkeypatch.setattr(config, "DISABLE_JIT", True)
    assert not compiled.can_compile()


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_takes_nothing_from_elsewhere_that_could_change_unseen(name):
    imported = [
        node
        for node in ast.walk(ast.parse((kept.SOURCES / f"{name}.py").read_text()))
        if isinstance(node, ast.ImportFrom)
    ]
    assert all(node.module == "__future__" or node.module.startswith("sim.vector.compiled") for node in imported)


def test_a_loop_that_does_not_compile_costs_no_row_and_is_not_tried_again(loops, monkeypatch, tmp_path):
    def refused(function):
        raise TypeError("cannot compile")

    (tmp_path / kept.ALL).write_text(kept._stamps(kept.SOURCES))
    monkeypatch.setattr(compiled, "loop", refused)
    loops.consider(2.0, 0.0)
    assert work.work(["one"], [RING])[0].get("error") is None
    assert not uses(RING, left=1e9)
