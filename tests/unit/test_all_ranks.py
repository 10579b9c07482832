"""A text of one's own without a master: its samples are those of all ranks, its step is that of the slowest, in all worlds and traces."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from engines import run as by_engine
from learning_texts import Alone, Drifting
from sim.verbs import allreduce, reduce
from sim.verbs.me import Partition

from sim import event, stragglers
from sim.answers.outcome import join, of_trace
from sim.collectives.base import swap
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform.cluster import Cluster, Host
from sim.recording import conformance
from sim.simulation import simulate

BATCH = 32


@dataclass(frozen=True)
class Nothing(Alone):
    """Ranks train for themselves."""


@dataclass(frozen=True)
class Gossip(Alone):
    """Each swaps its gradient with a neighbour; whether the number of samples is in it."""

    counts: int = 0

    def mix(self, me, step):
        peer = me.rank ^ 1
        if peer in me.workers:
            whole = slice(0, sum(variable.size for variable in me.scenario.summed) + self.counts)
            yield from me.exchange(swap(peer, whole, whole, adds=True))


@dataclass(frozen=True)
class Ring(Alone):
    """All sum, in steps that `every` divides."""

    every: int = 1

    def mix(self, me, step):
        if step % self.every == 0:
            yield from allreduce(me, "ring")


@dataclass(frozen=True)
class TopPart(Alone):
    """A part of the gradient is summed, as in top-k."""

    def mix(self, me, step):
        yield from reduce(me, "ring", slice(0, 1000))


@dataclass(frozen=True)
class InParts(Alone):
    """Gradients in parts."""

    def worker(self, me):
        for _ in me.steps():
            for index in range(4):
                yield from me.compute(Partition(index, 4))
            yield from me.update()


@dataclass(frozen=True)
class LastIdle(Alone):
    """The last rank only sleeps."""

    def worker(self, me):
        if me.rank < me.workers[-1]:
            yield from super().worker(me)
            return
        for _ in me.steps():
            yield from me.sleep()


TEXTS = [Nothing(), Gossip(), Gossip(1), Ring(), Ring(3), TopPart(), InParts()]


def job(protocol, workers=4, law="lognormal(mean=20ms, cv=1.5)", **more):
    given = {"batch": BATCH, "steps": 20, "warmup": 3, "stragglers": stragglers.read(law)} | more
    return Scenario(protocol, workload.read("mlp"), workers=workers, **given)


@pytest.mark.parametrize("text", TEXTS, ids=str)
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_samples_are_those_of_all_ranks(text, workers):
    found = simulate(job(text, workers), replications=2)
    assert (found.samples == workers * BATCH).all()


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_a_step_is_that_of_the_slowest_rank(text):
    found = simulate(job(text, warmup=0), "event", 2)
    assert found.rank_step_s.shape == (2, 20, 4)
    slowest_s = np.cumsum(found.rank_step_s, axis=1).max(axis=2)
    np.testing.assert_allclose(np.cumsum(found.step_s, axis=1), slowest_s, rtol=1e-9)


@pytest.mark.parametrize("text", TEXTS, ids=str)
@pytest.mark.parametrize("cluster", [None, Cluster(hosts=(Host(count=3, cores=2),))], ids=["apart", "together"])
def test_a_trace_says_the_same(text, cluster):
    scenario = job(text, cluster=cluster, test_size=64, evaluate_every=4)
    alone = event.run(scenario, 1, want_trace=False)[0]
    traced = of_trace(event.trace(scenario, 1))
    np.testing.assert_allclose(traced.step_s, alone.step_s, rtol=1e-9)
    np.testing.assert_allclose(traced.rank_step_s, alone.rank_step_s, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(traced.samples, alone.samples)
    np.testing.assert_allclose(traced.idle_fraction, alone.idle_fraction, atol=1e-9)


def test_a_rank_that_never_updates_ends_its_steps_too():
    scenario = job(LastIdle(), law="slow-ranks(rank=3, seconds=100ms)")
    found = simulate(scenario, "event", 1)
    assert (found.samples == 3 * BATCH).all()
    np.testing.assert_allclose(found.step_s, 0.1)
    np.testing.assert_allclose(of_trace(event.trace(scenario)).step_s, found.step_s, rtol=1e-9)
    assert conformance.gradients(event.trace(scenario)) == (3 * 23 * BATCH, 3 * 23 * BATCH)


def test_ranks_that_wait_for_nobody_have_steps_of_their_own():
    """With a slow rank it is the step; others are done long before."""
    found = simulate(job(Nothing(), law="slow-ranks(rank=2, seconds=100ms)"), "event", 1)
    own_s = found.rank_step_s.mean(axis=(0, 1))
    assert own_s[2] == pytest.approx(found.step_s.mean(), rel=0.05)
    assert own_s[0] < 0.1 * own_s[2]
    assert any("a step is over when the slowest rank has ended it" in note for note in found.notes)
    assert found.answer()["rank_step_s"] == pytest.approx(own_s.tolist())


def test_our_own_texts_have_one_step():
    from sim import protocols

    found = simulate(job(protocols.make("allreduce")), replications=1)
    assert "rank_step_s" not in found.answer()


def test_a_text_of_ours_in_which_ranks_are_steps_apart_counts_as_a_users(monkeypatch, compiled):
    """Whether a text has a name of its own does not change what a step of it is."""
    from sim import protocols

    @dataclass(frozen=True)
    class Named(Drifting):
        name = "named"

    of_a_user = simulate(job(Named()), "event", 2)
    monkeypatch.setitem(protocols.NAMES, "named", Named)
    monkeypatch.setitem(protocols.PROTOCOLS, "named", Named)
    ours = job(protocols.make("named"))
    for of_ours in (simulate(ours, "event", 2), by_engine(ours, 2)):
        np.testing.assert_array_equal(of_ours.samples, of_a_user.samples)
        np.testing.assert_allclose(of_ours.step_s, of_a_user.step_s, rtol=1e-9)
        np.testing.assert_allclose(of_ours.rank_step_s, of_a_user.rank_step_s, rtol=1e-9)
    traced = of_trace(event.trace(ours))
    np.testing.assert_allclose(traced.step_s, of_a_user.step_s[:1], rtol=1e-9)
    np.testing.assert_array_equal(traced.samples, of_a_user.samples[:1])


def test_a_run_that_is_cut_short_has_whole_steps():
    scenario = job(Gossip(), steps=100_000)
    cut, trace = event.run(scenario, within_s=0.0, want_trace=True)
    assert cut.step_s.shape[1] == cut.rank_step_s.shape[1] >= 1
    np.testing.assert_allclose(of_trace(trace).step_s, cut.step_s, rtol=1e-9)
    assert (cut.samples == 4 * BATCH).all()


def test_replications_are_joined_with_the_steps_of_ranks():
    runs = [event.run(job(Gossip()), number, want_trace=False)[0] for number in range(3)]
    assert join(runs).rank_step_s.shape == (3, 20, 4)
    assert join([runs[0], replace(runs[1], rank_step_s=None)]).rank_step_s is None


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_each_gradient_is_counted_once(text):
    computed, applied = conformance.gradients(event.trace(job(text)))
    assert computed == applied == 4 * 23 * BATCH
