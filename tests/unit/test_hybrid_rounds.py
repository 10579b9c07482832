"""Servers of sparse variables and an allreduce of the others, in the vector world: their messages pass the same ports."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scenarios import EXACT_S, assert_alike_or_refused, assert_same_without_trace

from sim import event, protocols, stragglers, vector
from sim.answers.outcome import of_trace
from sim.event import assembly
from sim.event.machines.contended import Contended
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model.costs import Costs, Line
from sim.model.sparse_rows import Rows
from sim.model.workload import Variable, Workload
from sim.platform.cluster import Cluster, Host, Link
from sim.protocols.hybrid import Hybrid
from sim.simulation import simulate
from sim.verbs import allreduce, collect, hand_in, let_go, pull

WORK = ("input", "pack", "take_up", "reduce", "reduce_rows", "update", "call")
DENSE = [Variable(name=f"dense{i}", shape=(size,)) for i, size in enumerate((5000, 33))]
SPARSE = [Variable(name=f"rows{i}", shape=(900 * i, 40), rows=Rows(fraction=0.1 * i)) for i in (1, 2)]
LINK = Link(latency_s=2e-5, overhead_s=1e-5, gap_s=1e-6, bandwidth_bytes_per_s=1e8)


SLOW_NOTES = LINK.model_copy(update={"gap_s": 1e-4})  # which hold up pieces
VARIABLES = [SPARSE[0], *DENSE, SPARSE[1]]


def job(name="hybrid", *said, workers=4, servers=1, cores=8, noise=0.3, **of) -> Scenario:
    of = {"variables": VARIABLES, "link": LINK, "compute_s": 4e-3, "cold_s": 1e-3, "agree_s": 0.0} | of
    law = LogNormal(cv=noise)
    costs = Costs(
        compute=Line(base_s=of.pop("compute_s"), cold_s=of["cold_s"]),
        noise=law,
        input_noise=law,
        update_noise=LogNormal(cv=noise / 3),
        agree_s=of.pop("agree_s"),
        negotiate_s=1e-5,
        **dict.fromkeys(WORK, Line(base_s=1e-4, slope_s=1e-9)),
    ).model_copy(update={"update": Line(base_s=2e-4, slope_s=1e-9, cold_s=of.pop("cold_s"))})
    model = Workload(name="words", variables=of.pop("variables"), costs=costs)
    hosts = [Host(name=f"h{i}", slots=1, cores=cores, speed=1 - (noise > 0) * i / 37) for i in range(workers + servers)]
    cluster = Cluster(hosts=hosts, network=of.pop("link"))
    protocol = name if isinstance(name, protocols.base.Protocol) else protocols.make(name, list(said))
    return Scenario(
        protocol, model, workers, servers=servers, cluster=cluster, **{"steps": 4, "warmup": 1, "batch": 8} | of
    )


@st.composite
def jobs(draw, names=("hybrid",)) -> Scenario:
    name, workers, parts = draw(st.sampled_from(names)), draw(st.integers(1, 7)), draw(st.integers(1, 4))
    said = {
        "hybrid": [
            f"algorithm={draw(st.sampled_from(['ring', 'tree', 'halving-doubling', 'recursive-doubling', 'auto']))}"
        ],
        "ps-sync": ["barrier=true"],
    }[name]
    variables = draw(st.sampled_from([[*SPARSE, *DENSE], [SPARSE[0], *DENSE], SPARSE, [*DENSE, SPARSE[1]]]))
    link = Link(
        latency_s=draw(st.sampled_from([1e-6, 2e-5, 1e-3])),
        overhead_s=draw(st.sampled_from([0.0, 1e-5])),
        gap_s=draw(st.sampled_from([0.0, 1e-6, 1e-4])),
        bandwidth_bytes_per_s=draw(st.floats(1e6, 1e10)),
    )
    return job(
        name,
        *said,
        workers=workers,
        servers=draw(st.integers(1, parts)),
        variable_partitions=parts,
        cores=draw(st.sampled_from([1, 8])),
        noise=draw(st.sampled_from([0.0, 0.3, 1.0])),
        compute_s=draw(st.sampled_from([0.0, 1e-4, 1e-2])),
        cold_s=draw(st.sampled_from([0.0, 1e-3])),
        agree_s=draw(st.sampled_from([0.0, 1e-3])),
        stragglers=stragglers.read(draw(st.sampled_from(["none", "niagara*0.002"]))),
        seed=draw(st.integers(0, 99)),
        variables=variables,
        link=link,
    )


@settings(max_examples=40, deadline=None)
@example(job(servers=2, variable_partitions=2))
@example(job("hybrid", "algorithm=tree", workers=7, servers=3, variable_partitions=3, compute_s=0.0))
@example(job(workers=5, noise=0.0, cores=1))
@example(job(workers=5, servers=2, variable_partitions=2, link=SLOW_NOTES))
@given(jobs())
def test_the_worlds_agree(scenario):
    """Pieces of an allreduce come among answers and notes, and hold them up, and these hold up pieces."""
    assert_alike_or_refused(scenario)


@settings(max_examples=20, deadline=None)
@given(jobs(["ps-sync"]))
def test_the_worlds_agree_where_servers_hold_dense_variables_too(scenario):
    """Each part of a variable is a message of its own, and they travel together."""
    assert_alike_or_refused(scenario)


def test_it_is_answered_by_the_vector_world():
    assert simulate(job(servers=2, variable_partitions=2), replications=2).world == "vector"


@pytest.mark.parametrize("cores", [1, 8])
@pytest.mark.parametrize(
    ("name", "said"),
    [("hybrid", ()), ("ps-sync", ("barrier=true",)), ("ps-async", ()), ("allreduce", ("sparse_as_dense=false",))],
)
def test_parts_side_by_side_take_as_long_as_on_cores_that_are_events(monkeypatch, cores, name, said):
    """A part has a core of its own, or all take turns on one; of an update that is quick, too."""
    scenario = job(name, *said, cores=cores, cold_s=0.0, servers=3, variable_partitions=3)
    assert_same_without_trace(scenario)
    found = of_trace(event.trace(scenario))
    monkeypatch.setattr(assembly, "mechanics_of", lambda *_: Contended)
    by_events = of_trace(event.trace(scenario))
    np.testing.assert_allclose(found.step_s, by_events.step_s, rtol=0, atol=EXACT_S)
    np.testing.assert_allclose(found.idle_fraction, by_events.idle_fraction, rtol=0, atol=1e-7)


def test_a_run_that_ends_early_is_as_a_shorter_one():
    scenario = job(servers=2, variable_partitions=2, steps=6, warmup=2)
    cut, whole = vector.run(scenario, 2, within_s=0.0), vector.run(replace(scenario, warmup=1, steps=1), 2)
    np.testing.assert_array_equal(cut.step_s, whole.step_s)
    np.testing.assert_allclose(cut.idle_fraction, whole.idle_fraction, rtol=0, atol=1e-12)


@dataclass(frozen=True)
class UpdatesLast(Hybrid):
    """Workers update what they summed once servers have let them go."""

    def worker(self, me):
        for _ in me.steps():
            yield from me.fetch()
            yield from pull(me, me.servers)
            yield from me.compute()
            yield from hand_in(me)
            yield from allreduce(me, self.algorithm)
            yield from collect(me, me.aggregators)
            yield from me.update()
            yield from let_go(me, me.neighbours)


@dataclass(frozen=True)
class WorksBefore(Hybrid):
    """Workers fetch their minibatch when they have parameters."""

    def worker(self, me):
        for _ in me.steps():
            yield from pull(me, me.servers)
            yield from me.compute()
            yield from hand_in(me)
            yield from allreduce(me, self.algorithm)
            yield from me.update()
            yield from collect(me, me.aggregators)


@pytest.mark.parametrize("protocol", [UpdatesLast(), WorksBefore()])
def test_other_orders_are_the_event_worlds(protocol):
    with pytest.raises(vector.Refused, match="the text does not"):
        vector.run(job(protocol))


@pytest.mark.parametrize(
    ("of", "why"),
    [
        ({"cores": 2}, "share cores"),
        ({"servers_on": "workers"}, "share cores"),
        ({"link": LINK.model_copy(update={"latency_s": 0.0})}, "without latency"),
    ],
)
def test_what_is_not_known_exactly_is_the_event_worlds(of, why):
    assert why in vector.refusal(job(servers=1, variable_partitions=2, **of))
