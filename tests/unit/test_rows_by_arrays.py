"""Servers of sparse variables and an allreduce of the others, in the vector world: their messages pass the same ports."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scenarios import EXACT_S, assert_alike_or_refused, assert_same_without_trace

from sim import collectives, event, protocols, stragglers, vector
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
from sim.vector.shared.wires import Wires
from sim.verbs import allreduce, collect, hand_in, let_go, pull

WORK = ("input", "pack", "take_up", "reduce", "update", "call")
DENSE = [Variable(name=f"dense{i}", shape=(size,)) for i, size in enumerate((5000, 33))]
SPARSE = [Variable(name=f"rows{i}", shape=(900 * i, 40), rows=Rows(fraction=0.1 * i)) for i in (1, 2)]
# Of many rows and numbers, so that some workers begin the next step while others sum.
LARGE = [Variable(name="large", shape=(60_000,)), Variable(name="much", shape=(4000, 40), rows=Rows(fraction=0.2))]
LINK = Link(latency_s=2e-5, overhead_s=1e-5, gap_s=1e-6, bandwidth_bytes_per_s=1e8)
LOCAL = Link(latency_s=2e-6, overhead_s=1e-5, bandwidth_bytes_per_s=2e10)
MANY = 64  # cores
AT_ONCE = {"compute_s": 0.0, "cold_s": 0.0, "link": LINK.model_copy(update={"overhead_s": 1e-6})}

SLOW_NOTES = LINK.model_copy(update={"gap_s": 1e-4})  # which hold up pieces
VARIABLES = [SPARSE[0], *DENSE, SPARSE[1]]


def job(name="hybrid", *said, workers=4, servers=1, cores=8, noise=0.3, slots=1, **of) -> Scenario:
    """Each rank has a host, or so many share one, each with these cores."""
    of = {"variables": VARIABLES, "link": LINK, "compute_s": 4e-3, "cold_s": 1e-3, "agree_s": 0.0} | of
    law = LogNormal(cv=noise)
    costs = Costs(
        compute=Line(base_s=of.pop("compute_s"), cold_s=of["cold_s"]),
        noise=law,
        input_noise=law,
        update_noise=LogNormal(cv=noise / 3),
        agree_s=of.pop("agree_s"),
        negotiate_s=1e-5,
        reduce_rows=Line(base_s=3e-5, slope_s=4e-9),
        **dict.fromkeys(WORK, Line(base_s=1e-4, slope_s=1e-9)),
    ).model_copy(update={"update": Line(base_s=2e-4, slope_s=1e-9, cold_s=of.pop("cold_s"))})
    model = Workload(name="words", variables=of.pop("variables"), costs=costs)
    each = [
        Host(name=f"h{i}", slots=slots, cores=cores, speed=1 - (noise > 0) * i / 37) for i in range(workers + servers)
    ]
    cluster = Cluster(hosts=each, network=of.pop("link"), local=of.pop("local", LOCAL))
    protocol = name if isinstance(name, protocols.base.Protocol) else protocols.make(name, list(said))
    return Scenario(
        protocol, model, workers, servers=servers, cluster=cluster, **{"steps": 4, "warmup": 1, "batch": 8} | of
    )


@st.composite
def jobs(draw, names=("hybrid",), slots=(1,), on=("own",)) -> Scenario:
    """Servers on hosts of their own, or on those of workers, too; so many ranks have a host."""
    name, workers, parts = draw(st.sampled_from(names)), draw(st.integers(1, 7)), draw(st.integers(1, 4))
    of = {"slots": draw(st.sampled_from(slots)), "servers_on": draw(st.sampled_from(on))}
    alone = of == {"slots": 1, "servers_on": "own"}
    said = {
        "hybrid": [
            f"algorithm={draw(st.sampled_from(collectives.NAMES))}",
            f"local_aggregation={draw(st.booleans())}",
        ],
        "ps-sync": ["barrier=true"],
        "allreduce": [
            f"algorithm={draw(st.sampled_from(collectives.NAMES))}",
            f"fused={draw(st.booleans())}",
            "sparse_as_dense=false",
        ],
        "ps-backup": ["barrier=true", f"backup={draw(st.integers(0, workers - 1))}"],
    }[name]
    variables = draw(
        st.sampled_from([[*SPARSE, *DENSE], [SPARSE[0], *DENSE], SPARSE, [*DENSE, SPARSE[1]], [*LARGE, SPARSE[0]]])
    )
    link, local = (
        Link(
            latency_s=draw(st.sampled_from([1e-6, 2e-5, 1e-3])),
            overhead_s=draw(st.sampled_from([0.0, 1e-5])),
            gap_s=draw(st.sampled_from([0.0, 1e-6, 1e-4])),
            bandwidth_bytes_per_s=draw(st.floats(1e6, 1e10)),
        )
        for _ in range(2)
    )
    return job(
        name,
        *said,
        workers=workers,
        servers=draw(st.integers(1, parts)),
        variable_partitions=parts,
        cores=draw(st.sampled_from([1, 8])) if alone else MANY,
        noise=draw(st.sampled_from([0.0, 0.3, 1.0])),
        compute_s=draw(st.sampled_from([0.0, 1e-4, 1e-2])),
        cold_s=draw(st.sampled_from([0.0, 1e-3])),
        agree_s=draw(st.sampled_from([0.0, 1e-3])),
        stragglers=stragglers.read(draw(st.sampled_from(["none", "niagara*0.002"]))),
        seed=draw(st.integers(0, 99)),
        variables=variables,
        link=link,
        local=local,
        **of,
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


@settings(max_examples=40, deadline=None)
@example(job("ps-sync", "barrier=true", workers=8, slots=4, cores=MANY, servers=2, variable_partitions=2))
@example(
    job(
        "ps-sync",
        "barrier=true",
        workers=6,
        slots=3,
        cores=MANY,
        noise=0.0,
        servers_on="workers",
        variable_partitions=3,
    )
)
@example(job("ps-backup", "barrier=true", "backup=2", workers=6, slots=3, cores=MANY, servers_on="workers", steps=8))
@given(jobs(["ps-sync", "ps-backup"], slots=(1, 2, 3, 4), on=("own", "workers")))
def test_the_worlds_agree_where_servers_of_rows_share_hosts(scenario):
    """Several messages that travel together are called, copied and added as several, and pass a port as one."""
    assert_alike_or_refused(scenario)


@settings(max_examples=40, deadline=None)
@example(job(workers=8, slots=4, cores=MANY, servers=2, variable_partitions=2))
@example(job("hybrid", "local_aggregation=false", workers=6, slots=3, cores=MANY, noise=0.0, compute_s=0.0))
@example(job(workers=7, slots=3, cores=MANY, servers=2, servers_on="workers", variable_partitions=4, link=SLOW_NOTES))
@example(job("hybrid", "local_aggregation=false", workers=6, slots=3, cores=MANY, variables=LARGE, **AT_ONCE))
@example(
    job("hybrid", "algorithm=reduce-broadcast", workers=6, slots=2, cores=MANY, servers=2, servers_on="workers",
        variable_partitions=2, variables=LARGE, **AT_ONCE)
)  # fmt: skip
@example(job("hybrid", "algorithm=tree", workers=3, cores=MANY, servers_on="workers", noise=0.0))
@given(jobs(slots=(1, 2, 3, 4), on=("own", "workers")))
def test_the_worlds_agree_where_ranks_share_hosts(scenario):
    """A worker sends for its neighbours, or each for itself; some begin a step while others are in the call of the last."""
    assert_alike_or_refused(scenario)


@settings(max_examples=40, deadline=None)
@example(job("allreduce", "algorithm=ring", "sparse_as_dense=false", workers=5, variables=SPARSE))
@example(job("allreduce", "algorithm=tree", "sparse_as_dense=false", workers=6, slots=3, cores=MANY))
@given(jobs(["allreduce"], slots=(1, 2, 3, 4)))
def test_the_worlds_agree_where_workers_gather_rows(scenario):
    """Rows go round a ring, variable after variable, before the sum of the others."""
    assert_alike_or_refused(scenario)


@pytest.mark.parametrize("fused", ["true", "false"])
def test_the_samples_of_all_workers_count_where_all_variables_are_gathered(fused):
    found = event.trace(job("allreduce", f"fused={fused}", "sparse_as_dense=false", variables=SPARSE))
    assert set(of_trace(found).samples.ravel()) == {4 * 8}


def test_what_has_begun_to_pass_a_port_holds_up_what_comes_after_it():
    """Two messages from host 0 to host 1: the first was held up by others, which are not there any more."""
    wires = Wires(np.array([0, 0]), np.array([1, 1]), np.arange(2), np.ones(2), 1.0, 0.0)
    called_s, free_s = np.array([[1.0, 2.0]]), (np.zeros((1, 2)),) * 2
    known_s, begun_s = np.full((1, 2), np.inf), np.array([[[4.0, -np.inf]], [[7.0, -np.inf]]])
    passed = wires.carry(called_s, np.zeros((1, 2)), free_s, known_s, begun_s)
    np.testing.assert_array_equal(passed.reach_s, [[5.0, 6.0]])
    np.testing.assert_array_equal(passed.here_s, [[8.0, 9.0]])


def test_it_is_answered_by_the_vector_world():
    assert simulate(job(servers=2, variable_partitions=2), replications=2).world == "vector"
    assert simulate(job(slots=2, cores=MANY, servers_on="workers"), replications=2).world == "vector"


@pytest.mark.parametrize(("cores", "slots"), [(1, 1), (8, 1), (MANY, 3)])
@pytest.mark.parametrize(
    ("name", "said"),
    [("hybrid", ()), ("ps-sync", ("barrier=true",)), ("ps-async", ()), ("allreduce", ("sparse_as_dense=false",))],
)
def test_parts_side_by_side_take_as_long_as_on_cores_that_are_events(monkeypatch, cores, slots, name, said):
    """A part has a core of its own, or all take turns on one; of an update that is quick, too."""
    scenario = job(name, *said, cores=cores, slots=slots, cold_s=0.0, servers=3, variable_partitions=3)
    assert_same_without_trace(scenario)
    found = of_trace(event.trace(scenario))
    monkeypatch.setattr(assembly, "mechanics_of", lambda *_: Contended)
    by_events = of_trace(event.trace(scenario))
    np.testing.assert_allclose(found.step_s, by_events.step_s, rtol=0, atol=EXACT_S)
    np.testing.assert_allclose(found.idle_fraction, by_events.idle_fraction, rtol=0, atol=1e-7)


@pytest.mark.parametrize("of", [{}, {"slots": 2, "cores": MANY, "servers_on": "workers"}], ids=["apart", "together"])
def test_a_run_that_ends_early_is_as_a_shorter_one(of):
    scenario = job(servers=2, variable_partitions=2, steps=6, warmup=2, **of)
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
        ({"cores": 2}, "has not a core for each part"),
        ({"slots": 2, "cores": 3}, "has not a core for each part"),
        ({"link": LINK.model_copy(update={"latency_s": 0.0})}, "without latency"),
    ],
)
def test_what_is_not_known_exactly_is_the_event_worlds(of, why):
    assert why in vector.refusal(job(servers=1, variable_partitions=2, **of))
