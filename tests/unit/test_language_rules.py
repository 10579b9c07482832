"""Where the language takes other times than sim.event on purpose: with its rules sim.event takes the same."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from test_language_event import EXACT, B, L, V, job
from test_language_today import Updates
from today import drawn
from today_rules import rules

from sim import event as today
from sim.event.language import job_of
from sim.language.event import run
from sim.language.hosts import Host
from sim.language.job import Job
from sim.language.layers import Layer
from sim.language.text import Text
from sim.language.verbs import push
from sim.protocols.texts import text_of
from sim.texts import TEXTS

X = V / B  # seconds of the model in a port


@pytest.mark.parametrize(
    ("rule", "number", "exact"),
    [
        ("whole messages", 89, 1e-9),  # amb-dg: what has begun to come is not waited for
        ("whole messages", 521, 1e-9),  # kbatch-async
        (
            "whole messages",
            258,
            1e-9,
        ),  # ps-async on shared hosts: a worker's on the master's host goes before one still under way
        ("whole messages", 486, 1e-9),  # ps-sync
        ("asking in a library", 8, 1e-6),  # auto on links that ask for long messages
        ("updates layer by layer", 257, 1e-9),  # ps-layers
        ("let go in order", 470, 1e-9),  # hybrid
        ("no sum of nothing", 348, 1e-9),  # allreduce of a model whose layers all are sparse
    ],
)
def test_sim_event_takes_as_long_with_the_rule_and_not_without(rule, number, exact):
    scenario = drawn(number)
    text, updates = text_of(scenario), Updates()
    run(job_of(scenario, text), text, updates)
    each = scenario.updates_per_step * (len(scenario.workload.variables) if text.layerwise else 1)
    ends_s = updates.ends_s[each - 1 :: each][: scenario.rounds]
    step_s = np.diff(ends_s, prepend=0.0)[scenario.warmup :]
    before, _ = today.run(scenario, want_trace=False)
    with rules(rule):
        after, _ = today.run(scenario, want_trace=False)
    assert step_s == pytest.approx(after.step_s[0], rel=exact)
    assert step_s != pytest.approx(before.step_s[0], rel=0.01)


@dataclass(frozen=True)
class Whole(Text):
    """Rank 0 looks for messages when one has begun to come, and later takes it."""

    name = "whole"

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == 0:
                found = yield from me.take(range(1, 3), until_s=X / 2)
                assert found is None  # the bytes of rank 1 move since L
                yield from me.take(1)
                assert me.now() == pytest.approx(X + L, abs=EXACT)
            elif me.rank == 1:
                yield from me.post(me.weights, 0)


def test_a_message_is_there_when_it_is_whole():
    run(job(3, 1), Whole())


@dataclass(frozen=True)
class OnOneHost(Text):
    """Rank 0 sends to its neighbour, which takes after a second."""

    name = "on one host"

    def __call__(self, me):
        for _ in me.steps():
            if me.rank == 0:
                handle = yield from me.post(me.weights, 1)
                yield from me.wait(handle)
                assert me.now() == pytest.approx(1.0 + 1e-9 * V)  # its receiver has copied it
            else:
                yield from me.work(seconds=1.0)
                yield from me.take(0)


def test_a_message_within_a_host_has_left_when_its_receiver_has_copied_it():
    run(job(2, 1, placement=(0, 0), kinds=(Host(),), local_copy_s=1e-9), OnOneHost())


def covered_s(times, from_s: float, to_s: float) -> float:
    """Seconds between two times in which something lasts."""
    found_s, done_s = 0.0, from_s
    for begin_s, end_s in sorted(times):
        found_s += max(0.0, min(end_s, to_s) - max(begin_s, done_s))
        done_s = max(done_s, min(end_s, to_s))
    return found_s


@pytest.mark.parametrize(
    "number", [139, 165, 210, 242, 316, 557]
)  # one rank a host; whole messages, windows of TCP among them
def test_a_rank_of_fmb_is_idle_while_the_trace_of_sim_event_has_nothing_of_it(number):
    scenario = drawn(number)
    found = run(job_of(scenario, TEXTS["fmb"]()), TEXTS["fmb"]())
    from_s, to_s = [0.0, *found.ends_s][scenario.warmup], found.ends_s[-1]
    rows = today.run(scenario)[1].rows
    rows = rows[rows["activity"] != "wait"]
    for rank, idle_s in enumerate(found.idle_s):
        times = rows[rows["rank"] == rank][["start_s", "end_s"]].to_numpy().tolist()
        assert idle_s == pytest.approx(to_s - from_s - covered_s(times, from_s, to_s), abs=1e-9)


@dataclass(frozen=True)
class Pushed(Text):
    """A worker pushes its gradient to two servers."""

    servers: int = 2
    name = "pushed"

    def __call__(self, me):
        for _ in me.steps():
            if me.rank in me.workers:
                yield from push(me, me.servers)
                assert me.now() == pytest.approx(X)  # both halves have left
            else:
                yield from me.take(2)


def test_a_gradient_that_is_pushed_begins_anew_when_it_has_left():
    run(job(3, 1), Pushed())


def test_a_server_works_on_several_layers_at_once():
    """As the pool of threads of TensorFlow's servers does; sim.event's works on one after another."""
    layers = tuple(Layer(1000) for _ in range(2))
    of = Job(2, layers, 1, latency_s=0.0, bandwidth=1e12, update_base_s=1.0, kinds=(Host(2), Host(2)))
    assert run(of, TEXTS["ps-layers"](1)).ends_s == [pytest.approx(1.0, rel=1e-6)]
    one_core = replace(of, kinds=(Host(1), Host(2)))
    assert run(one_core, TEXTS["ps-layers"](1)).ends_s == [pytest.approx(2.0, rel=1e-6)]
