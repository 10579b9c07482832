"""Rings of groups that enter them alone: one loop over their messages comes to what the events of all messages come to."""

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest

from sim import protocols
from sim.answers.notes import notes
from sim.answers.outcome import join
from sim.base.errors import RunFailed, WrongText
from sim.job.scenario import Scenario
from sim.language import event
from sim.language.collectives import allreduce
from sim.language.engine import job as engine
from sim.language.engine.programs import program_of
from sim.language.hosts import Host
from sim.language.job import Job, Laws
from sim.language.layers import Layer
from sim.language.library import Library, Line
from sim.language.text import Text
from sim.language.verbs import compute
from sim.laws import Exponential
from sim.model import workload
from sim.platform.cluster import read
from sim.runs.replications import Replications
from sim.texts import TEXTS

KERNELS = [pytest.param(None, id="plain"), pytest.param(engine._kernel, id="compiled")]
LAYERS = tuple(Layer(1_000_000, 1e-3, 2e-3) for _ in range(6))


def drawn(seed: int, name: str) -> tuple[Job, Text]:
    """A job on hosts with GPUs or one rank each, whose ranks sum by rings."""
    rng = random.Random(seed)
    ranks, per_host = rng.choice([2, 3, 5, 8, 16, 64]), rng.choice([1, 1, 2, 8])
    layers = tuple(Layer(rng.randrange(1, 3_000_000), 1e-4, 10 ** rng.uniform(-4, -2.5)) for _ in range(8))
    job = Job(
        ranks,
        layers,
        steps=3,
        warmup=1,
        batch=16,
        per_host=per_host,
        kinds=tuple(Host(rng.choice([None, 8]), rng.choice([np.inf, 0.004]), gpus=8) for _ in range(ranks)),
        speeds=rng.choice([(), tuple(rng.choice([1.0, 0.5]) for _ in range(ranks))]),
        latency_s=rng.choice([0.0, 2e-5, 1e-3]),
        overhead_s=rng.choice([0.0, 5e-6]),
        gap_s=rng.choice([0.0, 1e-5]),
        bandwidth=10 ** rng.uniform(8, 10),
        sustained=rng.choice([np.inf, np.inf, 10 ** rng.uniform(8, 10)]),
        whole_messages=rng.random() < 0.3,
        shared_ports=rng.random() < 0.7,
        local_latency_s=rng.choice([0.0, 1e-5]),
        local_bandwidth=rng.choice([np.inf, 1e10]),
        local_overhead_s=rng.choice([0.0, 1e-5]),
        local_copy_s=rng.choice([0.0, 1e-11]),
        header_bytes=rng.choice([0, 100]),
        mix_s=rng.choice([0.0, 1e-10]),
        mix_base_s=rng.choice([0.0, 1e-6]),
        library=Library(call=Line(1e-5), copy=Line(1e-6, 1e-11)),
        laws=Laws(sleep=Exponential(mean=0.02), seed=seed),
        **(rng.choice([{}, {"per_rack": 2, "uplink": 10 ** rng.uniform(8, 10)}])),
    )
    settings = {
        "ddp": {"bucket_mb": 10 ** rng.uniform(-1, 1.5)},
        "allreduce": {"algorithm": "ring", "fused": rng.random() < 0.5},
        "horovod": {"algorithm": "ring", "cycle_s": 10 ** rng.uniform(-3.5, -2.3), "fusion_bytes": 2**23},
    }
    return job, TEXTS[name](**settings[name])


def both(job: Job, text: Text, kernel=engine._kernel):
    """What one loop comes to, and all events."""
    program = program_of(job, text)
    runs = [engine.Run(job, text, program, kernel, rings=rings) for rings in (True, False)]
    assert [run.state.rings for run in runs] == [1, 0]
    found = [run.result() for run in runs]
    assert runs[0].state.happened < runs[1].state.happened
    return found


def idle_share(found, warmup: int) -> np.ndarray:
    return np.array(found.idle_s) / (found.ends_s[-1] - found.ends_s[warmup - 1])


@pytest.mark.parametrize("name", ["ddp", "allreduce"])
@pytest.mark.parametrize("seed", range(8))
def test_drawn_rings_end_when_their_messages_say(seed, name):
    job, text = drawn(seed, name)
    loop, events = both(job, text)
    step_s = events.ends_s[-1] / job.steps
    assert loop.ends_s == pytest.approx(events.ends_s, abs=1e-9 * step_s, rel=0)
    assert loop.samples == events.samples
    differs = idle_share(loop, job.warmup) - idle_share(events, job.warmup)
    assert abs(differs.mean()) < (0.04 if name == "ddp" else 0.02)  # short waits are counted behind the last message
    if job.ranks <= 8:
        assert event.run(job, text).ends_s == pytest.approx(loop.ends_s, rel=1e-9)


@pytest.mark.parametrize("seed", range(15))
def test_drawn_horovods_are_within_a_percent(seed):
    job, text = drawn(seed, "horovod")
    loop, events = both(job, text)
    assert loop.ends_s[-1] == pytest.approx(events.ends_s[-1], rel=0.01)
    assert abs((idle_share(loop, job.warmup) - idle_share(events, job.warmup)).mean()) < 0.002


@pytest.mark.parametrize("kernel", KERNELS)
def test_plain_and_compiled_rings_are_equal(kernel):
    job, text = drawn(3, "ddp")
    assert both(job, text, kernel)[0] == both(job, text)[0]


@dataclass(frozen=True)
class Late(Text):
    """Only some ranks enter a ring."""

    name = "late"

    def __call__(self, me):
        for _ in me.steps():
            yield from compute(me)
            if me.rank < me.n - 1:
                yield from allreduce(me, me.gradient, me.workers)


def test_a_dead_end_is_told(monkeypatch):
    """By the event world where that soon comes to it, and else by the engine."""
    said = r"late: all wait for ever: rank 0, test_language_ring.py:\d+{}; rank 1, .*; and 1 more"
    with pytest.raises(RunFailed, match=said.format(" for a message of rank 5")):
        engine.run(Job(6, LAYERS), Late())
    monkeypatch.setattr(engine.event, "run", lambda *_: None)
    with pytest.raises(RunFailed, match=said.format("")):
        engine.run(Job(6, LAYERS), Late())


@dataclass(frozen=True)
class Stopped(Text):
    """A ring beside the main text, which stops it, or lets it end."""

    after_s: float
    name, joins = "stopped", False

    def __call__(self, me):
        for _ in me.steps():
            handle = yield from me.start(allreduce(me, me.gradient, me.workers))
            yield from me.work(seconds=self.after_s * (1 + me.rank))
            yield from me.stop(handle)
            yield from compute(me)
            yield from me.update()
            again = yield from me.start(allreduce(me, me.gradient, me.workers))
            yield from me.wait(again)


@pytest.mark.parametrize("after_s", [0.0, 1.0])
def test_a_ring_that_is_stopped(after_s):
    """Before it has begun, or after its end; the next one goes around as ever."""
    job = Job(4, LAYERS, steps=3)
    loop, events = both(job, Stopped(after_s))
    assert loop.ends_s == pytest.approx(events.ends_s, rel=1e-9)
    assert loop.ends_s == pytest.approx(event.run(job, Stopped(after_s)).ends_s, rel=1e-9)


@dataclass(frozen=True)
class Uneven(Text):
    """Ranks sum pieces of different sizes."""

    name = "uneven"

    def __call__(self, me):
        for _ in me.steps():
            yield from compute(me)
            yield from allreduce(me, me.gradient[: 100 + me.rank], me.workers)


def test_pieces_of_different_sizes_are_refused():
    for world in (engine, event):
        with pytest.raises(
            WrongText, match=r"uneven, rank 1, test_language_ring.py:\d+: 25 items mixed into 26 of gradient"
        ):
            world.run(Job(4, LAYERS), Uneven())


@dataclass(frozen=True)
class Outside(Text):
    """Ranks sum over a group, also those that are not in it."""

    name = "outside"

    def __call__(self, me):
        for _ in me.steps():
            yield from compute(me)
            yield from allreduce(me, me.gradient, me.workers[2:6:2])


def test_a_rank_outside_its_group_is_refused():
    for world in (engine, event):
        with pytest.raises(WrongText, match=r"outside, rank 0"):
            world.run(Job(8, LAYERS), Outside())


@dataclass(frozen=True)
class Two(Text):
    """Two rings at once, in texts of their own, of groups of which one is every second rank."""

    name, joins = "two", False

    def __call__(self, me):
        for _ in me.steps():
            yield from compute(me)
            whole = yield from me.start(allreduce(me, me.gradient, me.workers))
            if me.rank in me.workers[::2]:
                half = yield from me.start(allreduce(me, me.weights, me.workers[::2]))
                yield from me.wait(half)
            yield from me.wait(whole)
            yield from me.update()


def test_two_rings_at_once_go_one_behind_the_other():
    job = Job(8, LAYERS)
    loop, events = both(job, Two())
    assert loop.ends_s[-1] == pytest.approx(events.ends_s[-1], rel=0.01)


def test_a_run_with_rings_ends_early():
    job, text = drawn(1, "ddp")
    job = replace(job, steps=4000, warmup=0, ranks=4, speeds=(), kinds=job.kinds[:1] * 4)
    found = engine.run(job, text, is_over=lambda complete: complete >= 100)
    assert 100 <= len(found.ends_s) < 4000


@pytest.mark.parametrize(
    "given",
    [
        {"kinds": (Host(1, 0.0, 0.0, 2),) * 2, "per_host": 2},  # ranks that share a core
        {"placement": (0, 1, 0, 1)},
        {"poll_s": 1e-6},
    ],
)
def test_what_is_in_the_way_of_a_ring(given):
    job = Job(4, LAYERS, mix_s=1e-9, shared_ports=True, **given)
    text = TEXTS["ddp"]()
    run = engine.Run(job, text, program_of(job, text))
    assert run.state.rings == 0
    assert run.result().ends_s == pytest.approx(event.run(job, text).ends_s, rel=1e-9)


def test_a_note_says_where_all_messages_of_long_rings_are_simulated(monkeypatch):
    scenario = Scenario(protocols.make("ddp", []), workload.read("mlp"), 4, steps=1, warmup=0)
    found = Replications(scenario).outcome(0)
    assert found.by_message == "passes take the cores on which a ring adds"
    line = f"all messages of ring allreduces are simulated, which takes longer: {found.by_message}"
    assert line not in notes(scenario, found, "engine")
    monkeypatch.setattr("sim.answers.notes.LONG_RING", 2)
    assert line in notes(scenario, join([found]), "engine")
    on_gpus = replace(scenario, cluster=read("p3.16xlarge"), workers=8)
    assert not Replications(on_gpus).outcome(0).by_message
