"""Short cuts of the event world say what events one by one say: with a trace it takes none, without one it does."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scenarios import assert_same_without_trace

from sim import protocols
from sim.event import world
from sim.event.arrivals import Arrivals
from sim.event.clock import Clock
from sim.event.ranks.message import Message
from sim.event.ranks.poster import Poster
from sim.event.ring import Call, Ring
from sim.event.shortcut import ShortCutFailed
from sim.event.together import Course
from sim.job.scenario import Scenario
from sim.laws import Constant, LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.model.sizes import ITEM_BYTES
from sim.platform.cluster import Cluster, Host, Link
from sim.protocols.base import Protocol
from sim.verbs import gather
from sim.verbs.me import GRADIENT, PARAMETERS, Note

NOISY = {"noise": LogNormal(cv=0.3), "update_noise": LogNormal(cv=0.1)}
LINKS = {
    "fast": Link(),
    "slow": Link(latency_s=1e-3, overhead_s=1e-4, gap_s=1e-4, bandwidth_bytes_per_s=1e7),
    "no overhead": Link(latency_s=1e-6, overhead_s=0.0, bandwidth_bytes_per_s=1e9),
}
JOBS = {
    "fmb": ("fmb", []),
    "amb": ("amb", ["time_limit_s=0.3"]),
    "ps-async": ("ps-async", []),
    "ps-ssp": ("ps-ssp", []),
    "kbatch-async": ("kbatch-async", []),
    "ring": ("allreduce", ["algorithm=ring"]),
    "a ring for each variable": ("allreduce", ["algorithm=ring", "fused=false"]),
    "horovod": ("horovod", ["algorithm=ring"]),
    "horovod, small buffers": ("horovod", ["algorithm=ring", "fusion_bytes=20000", "cycle_s=0.0001"]),
    "horovod, by name": ("horovod", ["algorithm=ring", "by_name=true"]),
    "horovod, at the end": ("horovod", ["algorithm=ring", "order=end"]),
}


def scenario(protocol, link: Link = LINKS["fast"], workers: int = 5, **about) -> Scenario:
    hosts = [Host(count=workers, cores=2, slots=1), Host(name="slow", cores=2, slots=1, speed=0.7)]
    found = workload.read("mnist")
    costs = found.costs.model_copy(
        update=NOISY | {"call": Line(base_s=1e-5), "negotiate_s": 1e-5, "input": Line(base_s=1e-3), "resume_s": 1e-4}
    )
    about = {"workers": workers, "steps": 6, "warmup": 1, "seed": 3} | about
    cluster = Cluster(name="two kinds", hosts=hosts, network=link)
    return Scenario(protocol, found.model_copy(update={"costs": costs}), cluster=cluster, **about)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("job", JOBS)
def test_short_cuts_change_nothing(job, link):
    name, settings = JOBS[job]
    assert_same_without_trace(scenario(protocols.make(name, settings), LINKS[link]))


@pytest.mark.parametrize("workers", [2, 3, 13])
def test_rings_of_any_size(workers):
    assert_same_without_trace(
        scenario(protocols.make("horovod", ["algorithm=ring", "fusion_bytes=100000"]), workers=workers)
    )


@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("said", ["ps-async", "ps-ssp", "ps-sync", "ps-sync barrier=true", "ps-backup", "hybrid"])
def test_verbs_in_one_go_do_what_they_do_one_by_one(said, servers):
    """Servers and workers that post at once (sim.event.ranks.poster), with input to fetch and without."""
    name, *settings = said.split()
    job = scenario(protocols.make(name, settings), LINKS["slow"])
    job = replace(job, workers=4, servers=servers if job.servers else 1)
    ranks = world.EventWorld(job, 0, want_trace=False).ranks
    assert {type(rank) for rank in ranks} == {Poster}
    assert_same_without_trace(job)
    assert_same_without_trace(replace(job, stragglers=LogNormal(location=0.1, cv=1.0)))


def test_sleepers_too():
    assert_same_without_trace(scenario(protocols.make("fmb"), stragglers=LogNormal(location=0.1, cv=1.0)))
    assert_same_without_trace(scenario(protocols.make("ps-async"), stragglers=Constant(value=0.1)))


@dataclass(frozen=True)
class Overtaking(Protocol):
    """The last worker waits for a time, and its note then overtakes parameters that left before, at the port of the one before it."""

    name = "overtaking"

    def master(self, me):
        for _ in me.steps():
            yield from me.send(PARAMETERS, me.workers[:-1])
            yield from gather(me, me.workers[:-1])
            yield from me.update()

    def worker(self, me):
        for _ in me.steps():
            if me.rank == me.workers[-1]:
                yield from me.receive(me.master, until_s=0.1)
                yield from me.send(Note(), me.rank - 1, wait=False)
                return
            if me.rank == me.workers[-2] and me.step == 0:
                yield from me.receive({me.master, me.rank + 1})
                yield from me.receive({me.master, me.rank + 1})
            else:
                yield from me.receive(me.master)
            yield from me.compute()
            yield from me.send(GRADIENT, me.master)


def test_a_message_that_overtakes_is_seen_and_the_run_made_again():
    link = Link(latency_s=0.0, gap_s=1.0)
    job = scenario(Overtaking(), link, workers=3, warmup=0)
    with pytest.raises(ShortCutFailed):
        world.EventWorld(job, 0, want_trace=False).run()
    assert_same_without_trace(job)


@pytest.mark.parametrize("seed", range(20))
def test_messages_reach_a_port_in_order(seed):
    """Some are posted while others are handed over, and calls of the clock come between. Of those that come together the lowest
    sender's is first."""
    rng, clock, told = random.Random(seed), Clock(), []
    left = [rng.choice([30, 300])]

    def deliver(reach_s, message):
        assert clock.now == reach_s
        told.append((reach_s, message.sender))
        post(rng.choice([0, 0, 1, 2, 12]))

    def post(count):
        for _ in range(min(count, left[0])):
            left[0] -= 1
            latency_s = rng.choice([0.0, 0.5, rng.random()])
            posted.append((clock.now + latency_s, rng.random() if latency_s else len(posted) + 1))
            arrivals.add(posted[-1][0], SimpleNamespace(sender=posted[-1][1]))

    posted, arrivals = [], Arrivals(clock, deliver)
    over = clock.event()
    for moment in range(400):
        clock.call(moment / 4, lambda _: post(2))
    clock.call(1000.0, lambda _: over.succeed())
    assert clock.run_until(over)
    assert told == sorted(posted)
    assert len(told) > 20


def test_a_clock_holds_events_and_calls_in_one_order():
    clock, told = Clock(), []
    for number, time_s in enumerate([2.0, 1.0, 2.0, 1.0]):
        if number % 2:
            clock.call(time_s, told.append, number)
        else:
            clock.timeout(time_s).callbacks.append(lambda _, number=number: told.append(number))
    assert not clock.run_until(clock.event())
    assert told == [1, 3, 0, 2]


def ring_call(ranks: int = 3) -> Call:
    link = Link(latency_s=0.0, overhead_s=0.0, gap_s=1.0, bandwidth_bytes_per_s=float("inf"))
    return Call(Ring(slice(0, 300), link, Line(), [1.0] * ranks), *(np.zeros(ranks) for _ in range(3)))


def test_a_ring_is_its_closed_form():
    """2 (n - 1) turns of one port time each."""
    assert ring_call().ended_s.tolist() == [4.0] * 3


def other(occupancy_s: float, sender: int = 2) -> Message:
    found = Message(sender, 0, 0, (0,), 0)
    found.occupancy_s = occupancy_s
    return found


class At:
    """The second rank."""

    rank = type("Rank", (), {"rank": 1})
    ingress = type("Port", (), {"free_s": 4.0, "reached_s": 3.0})


def test_a_message_of_another_call_passes_between_those_of_a_ring():
    def course() -> Course:
        return Course(ring_call(), [None] * 3, 0, [0.0] * 3, [])

    late = course()
    assert late.passing(At, 3.5, other(0.1)) == (4.0, 4.1)
    assert late.ended_s == [4.0] * 3
    held = course()
    assert held.passing(At, 2.5, other(0.25)) == (3.0, 3.25)
    assert held.ended_s == [4.0, 4.25, 4.0]
    assert held.passing(At, 2.75, other(0.25)) == (3.25, 3.5)
    assert held.ended_s == [4.0, 4.5, 4.0]
    with pytest.raises(ShortCutFailed):
        course().passing(At, 1.5, other(0.25))


@pytest.mark.parametrize(("sender", "begin_s"), [(0, 4.0), (2, 4.0), (-1, 3.0)])
def test_a_message_that_comes_with_one_of_a_ring_passes_in_the_order_of_senders(sender, begin_s):
    """The last one of the ring, from rank 0, comes after 3 seconds and takes 1."""
    course = Course(ring_call(), [None] * 3, 0, [0.0] * 3, [])
    assert course.passing(At, 3.0, other(0.25, sender)) == (begin_s, begin_s + 0.25)


UNIT_S = 2.0**-16  # in which one number passes a port, so that messages often come together


def equal_ranks(
    workers: int, sizes: list[int], latency: int, gap: int, overhead: int, compute: int, by_name: bool
) -> Scenario:
    lines = dict.fromkeys(("pack", "take_up", "reduce", "update", "evaluate", "call"), Line())
    costs, mlp = Costs(compute=Line(base_s=compute * UNIT_S), **lines), workload.read("mlp")
    link = Link(
        latency_s=latency * UNIT_S,
        gap_s=gap * UNIT_S,
        overhead_s=overhead * UNIT_S,
        bandwidth_bytes_per_s=ITEM_BYTES / UNIT_S,
    )
    variables = tuple(
        mlp.variables[0].model_copy(update={"name": f"v{number}", "shape": (size,)})
        for number, size in enumerate(sizes)
    )
    place = Cluster(hosts=[Host(count=workers, slots=1, cores=2)], network=link, costs={"mlp": costs})
    protocol = protocols.make("horovod", ["algorithm=ring", "fusion_bytes=0", "cycle_s=0", f"by_name={by_name}"])
    of = {"cluster": place, "steps": 3, "warmup": 0, "batch": 20, "seed": 1}
    return Scenario(protocol, mlp.model_copy(update={"variables": variables}), workers, **of)


@settings(max_examples=15, deadline=None)
@example(5, [15, 1], 0, 0, 1, 96, False)  # a request comes to rank 0 with the last message of a ring
@example(6, [32, 15, 25], 1, 0, 0, 96, False)
@example(8, [55, 4], 0, 0, 0, 96, True)
@given(
    workers=st.integers(3, 9),
    sizes=st.lists(st.integers(1, 60), min_size=2, max_size=3),
    latency=st.sampled_from([0, 1, 2, 4]),
    gap=st.sampled_from([0, 1, 4]),
    overhead=st.sampled_from([0, 1]),
    compute=st.sampled_from([96, 192]),
    by_name=st.booleans(),
)
def test_requests_that_come_together_with_messages_of_a_ring(workers, sizes, latency, gap, overhead, compute, by_name):
    assert_same_without_trace(equal_ranks(workers, sizes, latency, gap, overhead, compute, by_name))


def test_memory_is_free_at_once():
    """A world's ranks refer to one another no more, so that the collector has nothing to find."""
    import gc
    import weakref

    whole = world.EventWorld(replace(scenario(protocols.make("fmb")), steps=2), 0, want_trace=False)
    machine = weakref.ref(whole.machines[1])
    gc.disable()
    try:
        whole.run()
        whole.fall_apart()
        del whole
        assert machine() is None
    finally:
        gc.enable()
