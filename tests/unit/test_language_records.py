"""Traces of texts in the language are those of sim.protocols, and runs without time end with the steps that are complete."""

import threading
import time
from dataclasses import dataclass, replace

import pytest
from common import common
from language_drawn import drawn
from test_language_engine_jobs import COMPILED, KERNELS, Own

from sim import protocols
from sim.answers.outcome import of_trace, staleness_of
from sim.base.errors import RunFailed, WrongSetting, WrongText
from sim.job.scenario import Scenario
from sim.language.engine import job as engine
from sim.language.engine import programs
from sim.language.event import run as by_event
from sim.language.event.observed import ObservedWorld
from sim.language.job import Job, Laws, Layer
from sim.language.verbs import compute
from sim.laws import Exponential
from sim.model import workload
from sim.recording import traces
from sim.runs.replications import Replications, once_and_step_s
from sim.simulation import simulate
from sim.texts import TEXTS

LAYERS = (Layer(1000, 1e-3, 2e-3), Layer(200_000, 2e-3, 4e-3))


def in_language(scenario: Scenario, name: str, *settings: str) -> Scenario:
    of = TEXTS[name]
    return replace(scenario, protocol=protocols.make(f"{of.__module__}:{of.__qualname__}", settings))


def sums(trace: traces.Trace, activity: str) -> tuple[int, float, int]:
    rows = trace.rows[trace.rows["activity"] == activity]
    return len(rows), float((rows["end_s"] - rows["start_s"]).sum()), int(rows["samples"].sum())


@pytest.mark.parametrize("name", ["fmb", "ps-async", "ddp", "fsdp", "local-sgd", "d-psgd"])
def test_a_trace_is_read_as_the_run_it_is_of(name, tmp_path):
    found = simulate(in_language(common(5, "fmb"), name), "auto", 1, want_trace=True)
    found.kept_trace.write(tmp_path / "trace.jsonl")
    again = traces.read(tmp_path / "trace.jsonl")
    of_rows = of_trace(again)
    # A step of a trace is rank 0's, where ranks go on together; one of the outcome is the slowest rank's.
    off = 0.02 if found.scenario.protocol.text_class.in_step else 0.0
    assert of_rows.step_s == pytest.approx(found.outcome.step_s, rel=off, abs=1e-9)
    assert of_rows.samples == pytest.approx(found.outcome.samples)
    assert of_trace(found.kept_trace).warmup == found.outcome.warmup


def test_gradients_that_are_applied_as_they_come_miss_updates():
    scenario = common(3, "ps-async")
    text = in_language(scenario, "ps-async")
    found = simulate(text, "auto", 1, want_trace=True)
    assert found.kept_trace.header.updates_per_step == scenario.workers
    missed = staleness_of(found.kept_trace)
    assert len(missed) == scenario.workers * scenario.steps
    assert any("staleness of gradients" in note for note in found.notes)


@pytest.mark.parametrize("seed", range(6))
def test_whoever_looks_on_changes_nothing(seed):
    of, text = drawn(seed)
    world = ObservedWorld(of, text)
    assert world.run() == by_event(of, text)
    for row in world.activities():
        assert 0 <= row.start_s <= row.end_s <= world.time_s


# ---- runs that end early


def job(ranks: int = 4, steps: int = 50, **more) -> Job:
    return Job(ranks, LAYERS, steps, **{"batch": 8, "laws": Laws(sleep=Exponential(mean=0.01), seed=3), **more})


@pytest.mark.parametrize("name", ["fmb", "ddp", "ps-async", "gradient-coding", "local-sgd"])
def test_a_run_without_time_ends_with_the_steps_that_are_complete(name, monkeypatch):
    monkeypatch.setattr(engine, "PAUSE", 256)
    whole, text = by_event(job(), TEXTS[name]()), TEXTS[name]()
    for run in (by_event, *([engine.run] if engine._kernel else [])):
        cut = run(job(), text, is_over=lambda complete: complete >= 5)
        steps = len(cut.ends_s)
        assert 5 <= steps < 45
        assert cut.ends_s == pytest.approx(whole.ends_s[:steps], abs=1e-9)
        assert cut.samples == pytest.approx(whole.samples[:steps])
        exact, further = by_event(job(steps=steps), text), 0.05 if name == "local-sgd" else 0.02
        # Ranks that are ahead have begun further steps, in which they wait, too.
        assert cut.idle_s == pytest.approx(exact.idle_s, rel=0.1, abs=further * cut.ends_s[-1])


class Endless(Own):
    """Rank 1 goes round for ever after a step."""

    def __call__(self, me):
        for _ in me.steps():
            yield from compute(me)
            yield from me.update()
            while me.rank == 1:
                yield from me.work(seconds=0.0)


class PingPong(Own):
    """Two ranks answer one another for ever while no time passes."""

    def __call__(self, me):
        while True:
            yield from me.post(me.weights[:0], 1 - me.rank)
            yield from me.take(1 - me.rank)


@KERNELS
@pytest.mark.parametrize("text", [pytest.param(Endless(), marks=pytest.mark.slow), PingPong()], ids=["loop", "pings"])
def test_an_endless_loop_is_one_line(text, kernel, monkeypatch):
    if kernel is None:
        monkeypatch.setattr("sim.language.engine.layout.MOST_JUMPS", 2_000)
        monkeypatch.setattr("sim.language.engine.layout.MOST_AT_ONCE", 2_000)
    with pytest.raises(WrongText, match=r"rank [01], .*test_language_records.py:\d+: [\d,]+ requests without any time"):
        engine.run(job(2, latency_s=0.0, bandwidth=float("inf")), text, kernel)


@dataclass(frozen=True)
class Wrong(Own):
    """Rank 1 makes a mistake in its third step; what is divided by 0 where that is asked for first is none."""

    mistake: str = ""

    def __call__(self, me):
        for step in me.steps():
            yield from compute(me)
            none = me.now() - me.now()
            yield from me.work(seconds=1.0 / none if none else 0.0)
            if step == 2 and me.rank == 1:
                if self.mistake == "%":
                    yield from me.work(seconds=step % none)
                if self.mistake == "/":
                    yield from me.work(seconds=step / none)
                if self.mistake == "part":
                    yield from me.post(me.gradient.part(0, step - 2), 0)
                if self.mistake == "wait":
                    sent = yield from me.post(me.gradient, 0)
                    yield from me.wait([sent], count=step)
                yield from me.post(me.gradient, 1)
                yield from me.take(1, me.gradient[:10])
            yield from me.update()


@KERNELS
@pytest.mark.parametrize(
    ("mistake", "event_s_words", "words"),
    [
        ("/", "ZeroDivisionError", "division by zero"),
        ("%", "ZeroDivisionError", "division by zero"),
        ("part", "ZeroDivisionError", "division by zero"),
        ("wait", "2 of 1 handles", "fewer handles than are waited for"),
        ("", "items taken from rank 1 into 10", "another size, or no such rank"),
    ],
)
def test_a_mistake_is_told_with_its_line(mistake, event_s_words, words, kernel, monkeypatch):
    """By the event world where that soon comes to it, and else by the engine."""
    text, place = Wrong(mistake), r"rank 1, test_language_records.py:\d+: "
    with pytest.raises(WrongText, match=place + ".*" + event_s_words):
        engine.run(job(2), text, kernel)
    monkeypatch.setattr(engine, "LOOKS", 0)
    monkeypatch.setattr("sim.language.event.world.LOOKS", 1)
    with pytest.raises(WrongText, match=place + words):
        engine.run(job(2), text, kernel)


@COMPILED
def test_too_much_memory_is_refused_before_it_is_taken():
    with pytest.raises(WrongSetting, match="--workers: given 1000; allowed: a smaller job: the engine would take"):
        engine.run(job(1000), TEXTS["fmb"](), most_bytes=1e5)


@COMPILED
def test_other_threads_go_on_while_the_kernel_runs():
    of, text = job(64, 300), TEXTS["ddp"]()
    turns, running = 0, threading.Thread(target=engine.run, args=(of, text))
    programs.program_of(of, text)
    running.start()
    while running.is_alive():
        turns += 1
        time.sleep(1e-4)
    assert turns > 20


# ---- programs are shared


def test_replications_and_links_share_a_program_and_other_costs_do_not(monkeypatch):
    monkeypatch.setattr(programs, "_kept", [])
    text = TEXTS["d-psgd"](drawn=True)
    first = programs.program_of(job(), text)
    for alike in (job(replication=3), job(latency_s=1.0), job(bandwidth=1.0), job(seed=9, laws=Laws())):
        assert programs.program_of(alike, text) is first
    for other in (job(5), job(batch=16), job(steps=3), job(cold_s=1.0), replace(job(), layers=LAYERS * 2)):
        assert programs.program_of(other, text) is not first
    assert programs.program_of(job(), TEXTS["d-psgd"]()) is not first


@COMPILED
def test_draws_of_a_shared_program_are_those_of_the_replication():
    text = TEXTS["d-psgd"](drawn=True)
    for replication in range(4):
        of = job(6, 20, replication=replication, seed=4)
        assert engine.run(of, text).ends_s == pytest.approx(by_event(of, text).ends_s, abs=1e-9)


def test_a_user_s_text_is_lowered_anew_as_it_may_read_what_has_changed():
    class Mine(Own):
        def __call__(self, me):
            for _ in me.steps():
                yield from me.work(seconds=1.0)

    assert programs.program_of(job(), Mine()) is not programs.program_of(job(), Mine())


def test_seconds_follow_from_counts_of_events():
    few, more = (
        Scenario(in_language(common(3, "fmb"), "fmb").protocol, workload.read("mlp"), workers) for workers in (4, 40)
    )
    (_, few_s), (_, more_s) = once_and_step_s(few), once_and_step_s(more)
    assert few_s * 5 < more_s < few_s * 20


# ---- what no run comes to


class NoSteps(Own):
    def __call__(self, me):
        yield from compute(me)
        yield from me.update()


class NoUpdate(Own):
    def __call__(self, me):
        for _ in me.steps():
            yield from compute(me)


class NoTime(Own):
    def __call__(self, me):
        for _ in me.steps():
            yield from me.work(seconds=0.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (NoSteps, "no step is ever over: a text goes through them by `for step in me.steps\\(\\):`"),
        (NoUpdate, "no sample enters an update"),
        (NoTime, "its steps take no time"),
    ],
)
def test_a_text_that_comes_to_nothing_is_one_line(text, words):
    protocol = protocols.make(f"{__name__}:{text.__name__}")
    with pytest.raises(RunFailed, match=words):
        Replications(Scenario(protocol, workload.read("mlp"), 2, steps=3, warmup=0)).outcome(0)
