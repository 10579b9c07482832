"""Sparse variables in the vector world: servers that hold parts of them, and workers that gather their rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scenarios import EXACT_S, assert_alike_or_refused

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
from sim.simulation import simulate

WORK = ("input", "pack", "take_up", "reduce", "update", "call")
DENSE = [Variable(name=f"dense{i}", shape=(size,)) for i, size in enumerate((5000, 33))]
SPARSE = [Variable(name=f"rows{i}", shape=(900 * i, 40), rows=Rows(fraction=0.1 * i)) for i in (1, 2)]
# Of many rows and numbers, so that some workers begin the next step while others sum.
LARGE = [Variable(name="large", shape=(60_000,)), Variable(name="much", shape=(4000, 40), rows=Rows(fraction=0.2))]
LINK = Link(latency_s=2e-5, overhead_s=1e-5, gap_s=1e-6, bandwidth_bytes_per_s=1e8)
LOCAL = Link(latency_s=2e-6, overhead_s=1e-5, bandwidth_bytes_per_s=2e10)
MANY = 64  # cores
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
def jobs(draw, names, slots=(1,)) -> Scenario:
    """Servers on hosts of their own; so many workers have a host."""
    name, workers, parts = draw(st.sampled_from(names)), draw(st.integers(1, 7)), draw(st.integers(1, 4))
    of = {"slots": draw(st.sampled_from(slots))}
    alone = of["slots"] == 1
    said = {
        "ps-sync": ["barrier=true"],
        "allreduce": [
            f"algorithm={draw(st.sampled_from(collectives.NAMES))}",
            f"fused={draw(st.booleans())}",
            "sparse_as_dense=false",
        ],
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


@settings(max_examples=20, deadline=None)
@given(jobs(["ps-sync"]))
def test_the_worlds_agree_where_servers_hold_dense_variables_too(scenario):
    """Each part of a variable is a message of its own, and they travel together."""
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


@pytest.mark.parametrize(("cores", "slots"), [(1, 1), (8, 1), (MANY, 3)])
@pytest.mark.parametrize(
    ("name", "said"),
    [("hybrid", ()), ("ps-sync", ("barrier=true",)), ("ps-async", ()), ("allreduce", ("sparse_as_dense=false",))],
)
def test_parts_side_by_side_take_as_long_as_on_cores_that_are_events(monkeypatch, cores, slots, name, said):
    """A part has a core of its own, or all take turns on one; of an update that is quick, too."""
    scenario = job(name, *said, cores=cores, slots=slots, cold_s=0.0, servers=3, variable_partitions=3)
    found = of_trace(event.trace(scenario))
    monkeypatch.setattr(assembly, "mechanics_of", lambda *_: Contended)
    by_events = of_trace(event.trace(scenario))
    np.testing.assert_allclose(found.step_s, by_events.step_s, rtol=0, atol=EXACT_S)
    np.testing.assert_allclose(found.idle_fraction, by_events.idle_fraction, rtol=0, atol=1e-7)


def test_a_run_that_ends_early_is_as_a_shorter_one():
    scenario = job("ps-sync", "barrier=true", servers=2, variable_partitions=2, steps=6, warmup=2)
    cut, whole = vector.run(scenario, 2, within_s=0.0), vector.run(replace(scenario, warmup=1, steps=1), 2)
    np.testing.assert_array_equal(cut.step_s, whole.step_s)
    np.testing.assert_allclose(cut.idle_fraction, whole.idle_fraction, rtol=0, atol=1e-12)


def differed() -> Scenario:
    """Servers on the hosts of workers, and rows: an idle share was 0.3256 in the vector world, and 0.3278 in the event world."""
    rows = [Variable(name=f"rows{i}", shape=(900 * i, 40), rows=Rows(fraction=0.1 * i)) for i in (1, 2)]
    return job(
        "ps-sync",
        "barrier=true",
        servers=2,
        servers_on="workers",
        variable_partitions=3,
        cores=MANY,
        noise=0.0,
        compute_s=0.0,
        cold_s=0.0,
        stragglers=stragglers.read("niagara*0.002"),
        variables=[*rows, *DENSE],
        link=Link(latency_s=1e-6, overhead_s=0.0, gap_s=1e-4, bandwidth_bytes_per_s=88021605.0),
        local=Link(latency_s=1e-6, overhead_s=0.0, bandwidth_bytes_per_s=25197974.0),
    )


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        pytest.param(differed(), "ports of hosts that ranks share", id="servers on hosts of workers"),
        pytest.param(job("ps-sync", "barrier=true", slots=2, cores=MANY), "ports of hosts", id="shared hosts"),
        pytest.param(job("ps-backup", "barrier=true"), "with the first gradients", id="late workers"),
        pytest.param(job("hybrid"), "the text uses", id="hybrid"),
        pytest.param(job("ps-sync", "barrier=true", cores=2, variable_partitions=2), "a core for each", id="parts"),
    ],
)
def test_what_is_not_known_exactly_is_the_event_worlds(scenario, why):
    with pytest.raises(vector.Refused, match=why):
        vector.run(scenario)
    assert simulate(scenario, replications=1).world == "event"
