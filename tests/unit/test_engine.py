"""The engine gives the event world's digits: as plain Python, and compiled on drawn jobs."""

from __future__ import annotations

import ast
import os
import random
import shlex
import sys
import threading
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import count, islice
from types import SimpleNamespace

import numpy as np
import pytest
from engines import assert_alike, loaded_anew
from scenarios import CLUSTERS, EXACT_S, SETTINGS, made, scenarios
from sim.engine import choose, kept
from sim.protocols.fmb import FixedMinibatch
from sim.verbs.me import PARAMETERS

from sim import event, options, protocols, run, simulated_options, simulation, stragglers
from sim.base.errors import WrongSetting
from sim.base.threads import in_order
from sim.job.scenario import Scenario
from sim.laws import Exponential
from sim.laws.randomness import BLOCK
from sim.model import workload
from sim.model.costs import Line
from sim.platform.cluster import Cluster, Host, Link
from sim.protocols.base import Protocol

FUZZ = int(os.environ.get("TRAINSIM_FUZZ", "0"))
NIAGARA = stragglers.read("niagara*0.01")
DRAWN = 300 * max(1, FUZZ)


def one(cluster: str, said: tuple[str, ...], workers: int = 3, **about) -> Scenario:
    """As small as it can be: plain Python takes half a millisecond a message."""
    (_, scenario), *_ = made(cluster, said, "toy_fc", workers, 1)
    return replace(scenario, steps=1, warmup=int(not scenario.protocol.counts_updates), **about)


@pytest.mark.parametrize("said", [("fmb",), ("ps-sync",), ("allreduce", "algorithm=tree")], ids=" ".join)
def test_plain_python_is_as_the_event_world_too(as_python, said):
    """Where numba does not compile. All else is compared as it is compiled."""
    assert_alike(as_python.Replications, one("two cores", said, workers=2))


def of_hosts(*several, **about) -> Cluster:
    """Hosts in turn of these kinds, of different speeds."""
    return Cluster(
        hosts=tuple(Host(name=f"h{i}", speed=1 - i / 37, **several[i % len(several)]) for i in range(9)), **about
    )


TWO, ONE, THREADS = {"slots": 2, "cores": 2}, {"slots": 2, "cores": 1, "gpus": 1}, Line(base_s=4e-3)
PLACED = {
    "GPUs of two ranks each": of_hosts({"slots": 4, "cores": 2, "gpus": 2}),
    "GPUs that poll": of_hosts({"slots": 4, "cores": 2, "gpus": 2}, poll_s=4e-5, oversleep_s=6e-5),
    "GPUs and none": of_hosts(TWO, ONE),
    "threads of links": of_hosts(TWO, network=Link(background_s=1e-3), local=Link(background_s=5e-4)),
}
POLLS = {"slots": 9, "cores": 2}, {"poll_s": 4e-5, "oversleep_s": 6e-5}
BESIDE = [(TWO, {}), pytest.param(*POLLS, marks=pytest.mark.slow), ({"cores": 1}, {})]
ANY = [("fmb",), ("ps-async",), ("allreduce",)]


@pytest.mark.parametrize("said", SETTINGS, ids=" ".join)
def test_every_protocol(compiled, said):
    assert_alike(compiled.Replications, one("one core each", said))


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("said", [("ps-sync",), ("allreduce", "algorithm=tree")], ids=" ".join)
def test_every_kind_of_host_and_port(compiled, cluster, said):
    assert_alike(compiled.Replications, one(cluster, said, workers=2))


@pytest.mark.parametrize("said", ANY, ids=" ".join)
@pytest.mark.parametrize("place", PLACED)
def test_what_ranks_of_a_host_share(compiled, place, said):
    scenario = replace(one("one core each", said, workers=4), cluster=PLACED[place])
    assert scenario.threaded == ("threads" in place)
    assert_alike(compiled.Replications, scenario)


@pytest.mark.parametrize("said", ANY, ids=" ".join)
@pytest.mark.parametrize(("host", "about"), BESIDE)
def test_other_threads(compiled, host, about, said):
    """Also where more moments are drawn than steps were thought of."""
    scenario = replace(one("one core each", said), cluster=of_hosts(host, **about), steps=3)
    costs = scenario.workload.costs.model_copy(update={"background": THREADS})
    job = replace(scenario, workload=scenario.workload.model_copy(update={"costs": costs}))
    assert np.abs(event.run(job)[0].step_s - event.run(scenario)[0].step_s).max() > EXACT_S
    assert_alike(compiled.Replications, job)


@pytest.mark.parametrize("cluster", ["one core each", "four GPUs", "polls"])
@pytest.mark.parametrize("said", [("fmb",), ("kbatch-async", "gradients=2")], ids=" ".join)
def test_evaluations(compiled, cluster, said):
    scenario = one(cluster, said, test_size=100, evaluate_every=2)
    assert scenario.costs.evaluate(100) > 0
    assert_alike(compiled.Replications, replace(scenario, steps=2 + scenario.warmup))


@dataclass(frozen=True)
class SendsLast(FixedMinibatch):
    """A master whose last message nobody takes."""

    name = "sends-last"

    def master(self, me):
        yield from super().master(me)
        yield from me.send(PARAMETERS, me.workers, wait=False)


@pytest.mark.parametrize("cluster", ["one core each", "two cores", "four GPUs", "fair shares"])
def test_what_leaves_after_the_last_text_has_ended(compiled, cluster):
    assert_alike(compiled.Replications, replace(one(cluster, ("fmb",)), protocol=SendsLast()))


@pytest.mark.slow
def test_all_scenarios(by_numba):
    for _, scenario in scenarios():
        assert_alike(by_numba.Replications, scenario)


@pytest.mark.parametrize("said", [("ps-async",), ("allreduce", "algorithm=tree")], ids=" ".join)
def test_a_run_that_pauses_goes_on_where_it_was(compiled, monkeypatch, said):
    monkeypatch.setattr(sys.modules["sim.engine.job"], "EVENTS", 3)
    assert_alike(compiled.Replications, one("two cores", said))


def test_a_run_ends_when_time_is_over(compiled, monkeypatch):
    """With the first steps of the whole run."""
    scenario = replace(one("two cores", ("allreduce",)), steps=6)
    whole = compiled.Replications(scenario).outcome(0)
    monkeypatch.setattr(sys.modules["sim.engine.job"], "EVENTS", 3)
    cut = choose.Engine().outcome(compiled.Replications(scenario), 0, 0.0)
    steps = cut.step_s.shape[1]
    assert 0 < steps < 6
    np.testing.assert_array_equal(cut.step_s, whole.step_s[:, :steps])


def test_further_numbers_are_drawn_where_they_do_not_suffice(compiled, monkeypatch):
    """Also room for messages and waits: the run is begun anew with more."""
    monkeypatch.setattr(sys.modules["sim.engine.arrays.shape"], "LEAST", 8)
    monkeypatch.setattr(sys.modules["sim.engine.arrays.shape"], "EACH", 0)
    assert_alike(compiled.Replications, one("one core each", ("kbatch-async", "gradients=2")))


@dataclass(frozen=True)
class Own(Protocol):
    """A text of one's own."""

    name = "own"

    def worker(self, me):
        for _ in me.steps():
            yield from me.compute()
            yield from me.update()


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (lambda: one("fair shares", ("fmb",), workers=5), "connections"),
        (lambda: one("one core each", ("horovod", "algorithm=nccl")), "of any size"),
        (lambda: one("one core each", ("kbatch-async", "delay_std_s=0.01")), "induced delays"),
    ],
)
def test_what_it_cannot_build_is_said(compiled, monkeypatch, scenario, why):
    monkeypatch.setattr(compiled, "MOST_CONNECTIONS", 20)
    with pytest.raises(compiled.NotBuilt, match=why):
        compiled.Replications(scenario())
    assert choose.Engine().replications(scenario()) is None


def test_a_text_outside_the_subset_is_refused_with_what_it_says(compiled):
    lowering = sys.modules["sim.engine.lowering.statements"]
    values, tables = sys.modules["sim.engine.lowering.values"], sys.modules["sim.engine.tables"]

    class Tries(Protocol):
        def worker(self, me):
            try:
                yield from me.compute()
            finally:
                yield from me.update()

    scenario = Scenario(Own(), workload.read("mlp"), 2)
    object.__setattr__(scenario, "protocol", Tries())
    with pytest.raises(values.NotLowered, match="not in the subset: try"):
        lowering.Statements(scenario, tables.Listed(scenario), 256).programs()


def test_it_is_used_where_it_saves_more_than_loading_it(monkeypatch):
    """And compiled where it saves more than that, and an answer is not awaited before."""
    made = []
    monkeypatch.setattr(choose, "LEAST_S", 0.05)
    monkeypatch.setattr(choose, "LOADING_S", 2.0)
    monkeypatch.setattr(choose.kept, "is_kept", lambda: bool(made))
    monkeypatch.setattr(choose.kept, "keep", lambda *_: not made.append(1))
    monkeypatch.setattr(choose.install, "compile_all", lambda: None)
    engine = choose.Engine()
    assert not engine.suits(10.0, np.inf)
    assert not engine.suits(2 * choose.COMPILING_S, 30.0)
    assert engine.suits(2 * choose.COMPILING_S, np.inf)
    assert made
    assert choose.Engine().suits(10.0, 5.0)
    assert not choose.Engine().suits(1.0, np.inf)
    many = choose.Engine()
    found = []
    for _ in range(4):
        found.append(many.suits(0.9, np.inf))
        many.spent(0.9)
    assert found == [False, False, False, True]


@pytest.mark.parametrize("first", [True, False])
def test_replications_are_the_engines(compiled, monkeypatch, first):
    """The first of them too, or not; with the numbers of the event world, and how stale gradients are."""
    scenario, asked = one("one core each", ("ps-async",)), []

    class Always(choose.Engine):
        def suits(self, left_s: float, within_s: float) -> bool:
            asked.append(left_s)
            return first or len(asked) > 1

    expected = simulation.simulate(scenario, "event", 3)
    monkeypatch.setattr(choose, "engine", Always())
    found = simulation.simulate(scenario, "auto", 3)
    assert len(asked) == 2 - first
    np.testing.assert_allclose(found.step_s, expected.step_s, rtol=0, atol=EXACT_S)
    assert found.outcome.arrivals.missed == expected.outcome.arrivals.missed


def test_a_run_that_is_recorded_is_the_event_worlds(compiled, monkeypatch):
    """The others are the engine's, and the answer is the same as without a record."""
    scenario, made = one("two cores", ("ps-async",), stragglers=Exponential(mean=0.01)), []

    class Always(choose.Engine):
        def suits(self, left_s: float, within_s: float) -> bool:
            return True

        def outcome(self, replications, number: int, *within):
            made.append(number)
            return super().outcome(replications, number, *within)

    monkeypatch.setattr(choose, "engine", Always())
    found = simulation.simulate(scenario, "auto", 3, want_trace=True)
    assert sorted(made) == [1, 2]
    assert found.trace.rows.equals(event.trace(scenario).rows)
    np.testing.assert_allclose(found.step_s, simulation.simulate(scenario, "auto", 3).step_s, rtol=0, atol=EXACT_S)
    with pytest.raises(WrongSetting, match="--world: given 'engine'; allowed: auto or event, which records"):
        simulation.simulate(scenario, "engine", 1, want_trace=True)


def test_the_engine_makes_the_jobs_that_are_compared_too(compiled, monkeypatch, capsys):
    """`sim.run` says what stragglers cost, from a second job that may take as long."""
    made = []

    class Always(choose.Engine):
        def suits(self, left_s: float, within_s: float) -> bool:
            return True

        def outcome(self, replications, number: int, *within):
            made.append(number)
            return super().outcome(replications, number, *within)

    monkeypatch.setattr(choose, "engine", Always())
    said = "--protocol ps-async --workers 2 --workload toy_fc --steps 2 --warmup 0 --replications 1"
    run.main([*said.split(), "--stragglers", "niagara*0.01"])
    assert made == [0, 0]
    assert "stragglers cost" in capsys.readouterr().out


def test_the_event_world_goes_on_where_the_engine_fails(monkeypatch):
    """Whatever the reason."""
    scenario = one("one core each", ("ps-async",))

    class Fails(choose.Engine):
        def suits(self, left_s: float, within_s: float) -> bool:
            return True

        def replications(self, scenario: Scenario):
            return None if self._fails else object()

    monkeypatch.setattr(choose, "engine", Fails())
    found = simulation.simulate(scenario, "auto", 3)
    np.testing.assert_array_equal(found.step_s, simulation.simulate(scenario, "event", 3).step_s)


def test_the_event_world_goes_on_where_numba_does_not_know_an_option(monkeypatch, capsys):
    """Neither an answer nor an installation fails then."""
    import numba

    def refuses(**options):
        raise KeyError(f"Unrecognized options: {options}")

    scenario, engine = one("one core each", ("ps-async",)), choose.Engine()
    monkeypatch.setattr(choose, "engine", engine)
    monkeypatch.setattr(choose, "LEAST_S", 0.0)
    monkeypatch.setattr(choose, "LOADING_S", -1.0)
    monkeypatch.setattr(choose.kept, "is_kept", lambda: True)
    monkeypatch.setattr(numba, "njit", refuses)
    monkeypatch.setattr(choose.kept, "keep", lambda compile_all: compile_all())
    with loaded_anew():
        found = simulation.simulate(scenario, "auto", 3)
        import_module("sim.engine.install").main()
    assert engine._fails
    np.testing.assert_array_equal(found.step_s, simulation.simulate(scenario, "event", 3).step_s)
    assert "the engine is not compiled, and answers take longer: KeyError" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(kept.SOURCES.glob("*.py")), ids=lambda path: path.stem)
def test_the_kernel_is_made_of_nothing_that_its_folder_is_not_named_by(path):
    """A change elsewhere would leave a compiled kernel that is older."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in found}
    ours = {module for module in modules if module and module.startswith("sim")}
    compiles = {"sim.engine"} if path.stem == "compiling" else set()  # of which it takes `kept`
    assert {module for module in ours if not module.startswith("sim.engine.kernel")} == compiles


def test_threads_give_results_in_order_and_begin_nothing_that_is_not_asked_for():
    begun, ended, meeting = [], [], threading.Barrier(3, timeout=30.0)

    def square(number):
        begun.append(number)
        if number < 3:  # three at a time, or nobody goes on
            meeting.wait()
        ended.append(number)
        return number**2

    found = in_order(square, range(100), 3)
    assert [next(found) for _ in range(5)] == [0, 1, 4, 9, 16]
    found.close()
    assert len(begun) <= 7
    assert sorted(ended) == sorted(begun)
    assert list(in_order(square, range(3, 9), 3)) == list(in_order(square, range(3, 9), 1))


@pytest.mark.parametrize("alone", [False, True])
def test_replications_are_the_same_on_threads(compiled, monkeypatch, alone):
    """But where other processes have the other cores."""
    scenario, engine, asked = one("one core each", ("ps-async",), stragglers=NIAGARA), choose.Engine(), []
    replications = compiled.Replications(scenario)

    def noted(function, items, threads):
        asked.append(threads)
        return in_order(function, items, threads)

    monkeypatch.setattr(choose, "LEAST_OF_A_THREAD_S", 0.0)
    monkeypatch.setattr("sim.needs.cores", lambda: 3)
    monkeypatch.setattr(choose, "in_order", noted)
    with engine.by_one_thread() if alone else nullcontext():
        found = list(engine.outcomes(replications, range(1, 4)))
    assert asked == [1 if alone else 3]
    expected = [replications.outcome(number) for number in range(1, 4)]
    for here, there in zip(found, expected, strict=True):
        np.testing.assert_array_equal(here.step_s, there.step_s)
        np.testing.assert_array_equal(here.idle_fraction, there.idle_fraction)
    assert len({one.step_s.tobytes() for one in found}) == 3


def test_as_many_threads_as_there_is_memory_for(compiled, monkeypatch):
    replications = compiled.Replications(one("one core each", ("ps-async",)))
    replications.outcome(0)
    monkeypatch.setattr("sim.needs.cores", lambda: 8)
    for times, threads in ((0.5, 1), (2.5, 2), (100, 8)):
        monkeypatch.setattr("sim.needs.most_bytes", lambda times=times: times * replications.bytes)
        assert choose._threads(replications) == threads


@pytest.mark.slow
def test_threads_of_the_compiled_kernel_give_the_same(by_numba):
    scenario = one("one core each", ("kbatch-async", "gradients=2"), workers=8, stragglers=NIAGARA)
    replications = by_numba.Replications(scenario)
    alone, beside = ([one.step_s for one in in_order(replications.outcome, range(20), n)] for n in (1, 4))
    np.testing.assert_array_equal(alone, beside)


def test_an_answer_depends_on_its_scenario_and_seed_alone(compiled):
    """To the last digit, whatever was simulated before, also where what follows an agreement is noted."""
    protocol = protocols.make("horovod", ["algorithm=tree", "fusion_bytes=1000"])
    of = Scenario(protocol, workload.read("mlp"), 6, steps=20, stragglers=stragglers.read("niagara*0.01"))
    compiled._kept.clear()
    alone = compiled.Replications(of).outcome(1)
    compiled._kept.clear()
    compiled.Replications(of).outcome(0)
    np.testing.assert_array_equal(compiled.Replications(of).outcome(1).step_s, alone.step_s)


@pytest.mark.slow
def test_functions_of_the_kernel_are_parts_of_one_library(by_numba, monkeypatch):
    """Numba compiles none of them alone, none twice for two numbers, and puts those in place of their calls that say so."""
    from sim.engine.kernel import compiling

    monkeypatch.setattr(kept, "in_folder", lambda: nullcontext(False))
    called = compiling.compiled(lambda x, n: x * n)
    put_in_place = compiling.in_place(lambda x: called(x, 2) + called(x, 3))
    assert compiling.outermost(lambda x: put_in_place(x) + 1.0)(1.0) == 6.0
    for function, is_in_place in (called, False), (put_in_place, True):
        (only,) = function.overloads.values()
        assert only.library.get_pointer_to_function(only.fndesc.llvm_func_name) == 0
        assert ("alwaysinline" in only.library.get_llvm_str()) == is_in_place


@pytest.mark.parametrize("said", [("fmb",), ("allreduce", "algorithm=tree"), ("ps-sync", "barrier=true")], ids=" ".join)
def test_scenarios_of_other_seeds_share_what_does_not_change(compiled, said):
    """And have random numbers of their own."""
    scenario = one("two cores", said, stragglers=NIAGARA)
    first = compiled.Replications(scenario)
    for seed in (2, 3):
        other = replace(scenario, seed=seed)
        assert compiled.Replications(other)._prepared is first._prepared
        assert_alike(compiled.Replications, other)


OTHERS = {
    "batch": 32,
    "workers": 4,
    "steps": 2,
    "stragglers": stragglers.read("cedar*0.1"),
    "workload": workload.read("mlp"),
    "protocol": protocols.make("allreduce", ["algorithm=ring", "fused=false"]),
    "cluster": CLUSTERS["two cores"],
}


@pytest.mark.parametrize("name", OTHERS)
def test_scenarios_that_differ_in_anything_else_share_nothing(compiled, name):
    scenario = one("one core each", ("allreduce", "algorithm=ring"))
    other = replace(scenario, **{name: OTHERS[name]})
    assert compiled.Replications(other)._prepared is not compiled.Replications(scenario)._prepared
    assert_alike(compiled.Replications, other)


def test_what_takes_much_memory_is_not_kept(compiled, monkeypatch):
    monkeypatch.setattr(compiled, "MOST_BYTES", 1000)
    scenario = replace(one("one core each", ("allreduce", "algorithm=ring")), steps=5)
    first, second = (compiled.Replications(scenario)._prepared for _ in range(2))
    assert first is not second


def test_nothing_is_read_before_a_run_writes_it(as_python, monkeypatch):
    """What the memory held before a run makes no difference."""
    state, outcomes = sys.modules["sim.engine.kernel.state"], []
    for held in (0x00, 0xFF):
        empty = partial(np.full, fill_value=held)
        monkeypatch.setattr(
            state, "np", SimpleNamespace(**{**vars(np), "empty": lambda size, kind, of=empty: of(size, dtype=kind)})
        )
        several = (one("one core each", said) for said in (("allreduce", "algorithm=tree"), ("ps-async",)))
        outcomes.append([as_python.Replications(each).outcome(0) for each in several])
    monkeypatch.undo()
    for here, there in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(here.step_s, there.step_s)
        np.testing.assert_array_equal(here.idle_fraction, there.idle_fraction)


@pytest.mark.slow
@pytest.mark.parametrize("said", [("fmb",), ("allreduce", "algorithm=tree")], ids=" ".join)
def test_numbers_are_drawn_a_block_after_another(compiled, monkeypatch, said):
    """Where ranks are many; also where the steps of ranks differ."""
    monkeypatch.setattr(sys.modules["sim.engine.arrays.drawn"], "MOST_DRAWN", 1)
    assert_alike(compiled.Replications, replace(one("one core each", said, 2, stragglers=NIAGARA), steps=BLOCK + 2))


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["one core each", "two cores", "credits", "fair shares"])
@pytest.mark.parametrize("said", [("ps-async",), ("amb-dg", "time_limit_s=0.02"), ("ps-sync",)], ids=" ".join)
def test_parts_are_as_busy_as_in_the_event_world(by_numba, cluster, said):
    """But for work and messages on the way when the warm-up ends, which each world counts where it is in its own order."""
    scenario = replace(one(cluster, said), steps=25)
    found, expected = by_numba.Replications(scenario).outcome(0), event.run(scenario, 0, want_trace=False)[0]
    assert found.arrivals.busy == pytest.approx(expected.arrivals.busy, abs=0.04)


KNOWN = {**CLUSTERS, **PLACED}
PLACES = [*KNOWN, "", "p3.16xlarge*4", "g5.12xlarge*6", "p2.xlarge*24"]
TEXTS = [
    *(
        "fmb",
        "amb",
        "amb --set time_limit_s=0.02",
        "amb-dg --set time_limit_s=0.03 --set window_s=0.04",
        "kbatch-async",
    ),
    *("ps-async", "ps-sync", "ps-sync --set barrier=true", "ps-backup", "ps-ssp", "ps-ssp --set staleness=0"),
    *("allreduce", "allreduce --set algorithm=ring", "allreduce --set fused=false", "allreduce --set algorithm=nccl"),
    *("allreduce --set algorithm=hierarchical", "horovod", "horovod --set by_name=true"),
    *("ps-layers", "ps-layers --set local_aggregation=true", "hybrid", "hybrid --set local_aggregation=false"),
    *("horovod --set algorithm=ring --set cycle_s=0.005", "horovod --set order=uniform --set fusion_bytes=1000000"),
]
SLEEPS = ["none", "shifted-exponential(mean=20ms,shift=1ms)", "niagara*0.01", "pareto(mean=5ms,shape=2.5)"]


def drawn(rng: random.Random) -> Scenario | None:
    """A job; None if its settings do not go together."""
    text, place, sleeps = rng.choice(TEXTS), rng.choice(PLACES), rng.choice(SLEEPS)
    said = f"--protocol {text} --workers {rng.choice([2, 3, 5, 8, 13])} --steps {rng.choice([3, 8])} --warmup 1"
    said += f" --seed {rng.randrange(1000)} --batch {rng.choice([64, 256, 1000])} --stragglers '{sleeps}'"
    said += f" --workload {rng.choice(['toy_fc', 'mlp', 'lenet', 'bigram'])}" + f" --cluster {place}" * (
        place not in (*KNOWN, "")
    )
    said += " --test-size 100 --evaluate-every 2" * (rng.random() < 0.2)
    said += f" --servers {rng.choice([1, 2, 3])}" * text.startswith("ps")
    try:
        given = run.parser().parse_args(shlex.split(said))
        scenario = simulated_options.scenario(given, options.Readers(remember=True))
        scenario.check_evaluation()
        if rng.random() < 0.2:
            costs = scenario.workload.costs.model_copy(update={"background": THREADS})
            scenario = replace(scenario, workload=scenario.workload.model_copy(update={"costs": costs}))
        return replace(scenario, cluster=KNOWN[place]) if place in KNOWN else scenario
    except WrongSetting:
        return None


@pytest.mark.slow
def test_drawn_jobs_are_as_in_the_event_world(by_numba):
    """The same in each run; TRAINSIM_FUZZ=20 in the environment draws twenty times as many, and others."""
    rng = random.Random(random.randrange(10**9) if FUZZ else 1)
    for scenario in islice(filter(None, (drawn(rng) for _ in count())), DRAWN):
        assert_alike(by_numba.Replications, scenario, rng.randrange(3))


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.usefixtures("installed")
def test_an_answer_names_the_world_that_gave_it(runs, monkeypatch):
    """A run for which the engine has no room is the event world's, and so is then the answer."""
    job = one("two cores", ("ps-async",))
    assert simulation.simulate(job, "engine", runs).world == "engine"
    monkeypatch.setattr("sim.engine.replications.MOST_ROOM", 0)
    found = simulation.simulate(job, "engine", runs)
    assert (found.world, found.outcome.slow) == ("event", simulation.NO_ROOM)
