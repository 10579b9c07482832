"""Configurations that differ by their batch alone: the largest passes the most samples a second, and is simulated first."""

import time
from dataclasses import replace

import numpy as np
import pytest

from sim import Scenario, protocols, read_cluster, read_stragglers, read_workload, simulate
from sim.plans import families, plan, search
from sim.plans.candidates import Candidate, Figures
from sim.plans.configurations import Room
from sim.plans.question import Question
from sim.sweeps.dealing import Dealing
from sim.sweeps.pools import Own

KNOWN = [name for name in protocols.PROTOCOLS if not name.startswith("amb")]
QUESTION = {"workload": "resnet50", "samples_per_s": 500, "hosts": ["g5.xlarge"], "counts": [2]}
QUESTION["batches"] = [16, 64, 32]


def room(**further) -> Room:
    return Room(Question(**QUESTION | {"protocols": ["allreduce"]} | further))


@pytest.fixture
def batches() -> list[Candidate]:
    """Candidates of one family, the largest batch first."""
    found, _ = search.screened(room())
    return sorted(found, key=lambda one: -one.configuration.batch)


@pytest.mark.parametrize(
    "batch", [pytest.param(1, marks=pytest.mark.slow), 20, pytest.param(100, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("cluster", [None, "p3.8xlarge*2"])
@pytest.mark.parametrize("name", KNOWN)
def test_more_samples_a_second_are_passed_with_a_larger_batch(name, cluster, batch):
    """The law that a search rests on: with equal random numbers, in each replication, by a little and by much.

    Gradients that just miss a cycle of Horovod's wait for the next one: a percent of a step. Of protocols by order of arrival another
    gradient may come first. A search takes what differs by 2 % for a tie (sim.plans.search).
    """
    about = {"steps": 12, "warmup": 2, "seed": batch, "stragglers": read_stragglers("niagara*0.01")}
    about |= {"cluster": read_cluster(cluster)} if cluster else {}
    job = Scenario(protocols.make(name), read_workload("mnist"), 5, batch=batch, **about)
    speeds = [simulate(replace(job, batch=batch + more), replications=3).outcome.throughput() for more in (0, 1, 80)]
    least = -0.015 if name == "horovod" else -0.005 if job.protocol.by_arrival else 0
    assert (np.diff(np.log(speeds), axis=0) > least).all()


def test_of_texts_that_time_cuts_short_and_of_ones_own_nothing_is_known():
    asked = room().all[0]
    known = {name: bool(families.of(protocols.make(name), asked)) for name in protocols.PROTOCOLS}
    assert {name for name, is_known in known.items() if not is_known} == {"amb", "amb-dg"}

    class Own(type(protocols.make("fmb"))):
        pass

    assert families.of(Own(), asked) == ()


def test_the_largest_batch_of_a_family_comes_first(batches):
    largest, middle, smallest = batches
    assert families.largest_first(batches, 0, 1, 3, set()) == [largest]
    assert families.largest_first(batches, 0, 2, 3, set()) == [largest, middle]  # for two processes
    assert families.largest_first(batches, 0, 1, 2, {largest.family}) == [largest, middle]
    largest.effort = 1
    assert families.largest_first(batches, 0, 1, 3, set()) == []  # it is to be simulated further before
    assert families.largest_first([middle, smallest], 0, 1, 3, set()) == [middle]


def test_smaller_batches_learn_from_a_larger_one(batches):
    largest, middle, smallest = batches
    middle.figures, middle.effort = Figures(45.0, 50.0, 55.0), search.WHOLE
    families.learn([middle], batches, lambda one: False)
    assert (largest.no_faster, smallest.no_faster) == (float("inf"), 50.0)
    assert smallest.hoped == 50.0 < smallest.samples_per_s
    families.learn([middle], batches, lambda one: one is middle)
    assert [one.beaten for one in batches] == [False, False, True]


class Simulated:
    """Each candidate passes so many samples a second as its batch, whatever the effort."""

    def __init__(self):
        self.pool, self.left_s, self.until_s, self.cut, self.calls = Own(1), 1.0, 1.0, False, []

    def simulate(self, candidates, effort):
        for one in candidates:
            self.calls.append(one.configuration.batch)
            one.effort, one.figures = effort, Figures(*[float(one.configuration.batch)] * 3)


def test_a_batch_that_misses_spares_smaller_ones(batches):
    simulating, asked = Simulated(), room(samples_per_s=90).question
    found = search.best_first(
        batches,
        lambda one: (-one.hoped,),
        2,
        simulating,
        lambda one: not one.beaten and one.may_meet(asked),
        lambda one: True,
    )
    assert not found
    assert simulating.calls == [64]
    assert search.thrown_out(batches, [], lambda one: False)[search.BEATEN] == 2


def test_smaller_batches_are_among_the_nearest_where_none_meets_the_target(batches):
    found, met = plan._best(room().question, batches, Simulated())
    assert not met
    assert [one.configuration.batch for one in found] == [64, 32, 16]


def test_the_front_asks_for_the_largest_batch_alone(batches):
    largest, _, smallest = batches
    assert families.best_of_each(batches) == [largest]
    smallest.figures = Figures(1.0, 1.0, 1.0)
    assert families.best_of_each(batches) == [largest, smallest]


@pytest.mark.processes
def test_nobody_waits_for_what_is_under_way_when_time_is_over():
    with Own(1) as pool:
        pool.submit(time.sleep, 3600)
        assert list(Dealing([], pool, lambda: 0.0).rows()) == []
