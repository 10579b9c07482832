"""Parallax's search for the number of parts: planted laws are recovered, and the simulator has such a law."""

import pytest

from sim import protocols
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host, Link
from sim.studies.partition_search import search, searched


def planted(a: float, b: float, c: float = 1.0):
    return lambda parts: b / parts + a * (parts - 1) + c


@pytest.mark.parametrize(("a", "b"), [(0.01, 1.0), (0.003, 4.0), (0.1, 0.9)])
@pytest.mark.parametrize("start", [1, 2, 8, 64])
def test_planted_laws_are_recovered(a, b, start):
    found = search(planted(a, b), start)
    assert found.fitted == pytest.approx((a, b, 1.0), abs=1e-9)
    assert found.best == min(range(1, 200), key=planted(a, b))


def test_it_doubles_then_halves_and_stops_at_the_first_rise():
    assert list(search(planted(0.01, 1.0), 4).tried) == [4, 8, 16, 2]
    assert list(search(planted(0.5, 0.9), 4).tried) == [4, 8, 2, 1]


def test_no_fewer_parts_than_are_possible():
    found = search(planted(1.0, 0.1), start=1, least=3)
    assert found.tried.keys() == {3, 6}
    assert (found.best, found.fitted) == (3, None)


def test_what_was_found_is_said():
    assert str(search(planted(0.5, 0.9), 4)).endswith("t(P) = 900/P + 500(P - 1) + 1e+03 ms")
    assert (
        str(search(planted(1.0, 0.1), start=1, least=3))
        == "3 variable partitions, searched for: 3: 3033 ms, 6: 6017 ms"
    )


def test_a_search_may_go_over_other_runs_than_simulated_ones():
    """From as many parts as servers, or as machines if there are more of these."""
    scenario = Scenario(protocols.make("hybrid"), workload.read("lstm_lm"), 3, servers=2, variable_partitions=2)
    for machines, first in ((1, 2), (5, 5)):
        tried = []
        found = searched(
            scenario, lambda s, tried=tried: tried.append(s) or planted(0.1, 0.9)(s.variable_partitions), machines
        )
        assert tried[0].variable_partitions == first
        assert found.tried.keys() == {s.variable_partitions for s in tried}


def test_the_simulator_has_such_a_law():
    """A server on 16 cores adds parts at once, and every part costs overheads: neither one part nor 64 is best."""
    costs = Costs(compute=Line(base_s=0.01), reduce_rows=Line(slope_s=2e-7))
    link = Link(overhead_s=5e-4, bandwidth_bytes_per_s=1e9)
    cluster = Cluster(
        hosts=[Host(name="server", cores=16, slots=1), Host(count=3)], network=link, costs={"lstm_lm": costs}
    )
    scenario = Scenario(protocols.make("hybrid"), workload.read("lstm_lm"), 3, steps=2, warmup=1, cluster=cluster)
    found = searched(scenario)
    assert 1 < found.best < 64
    a, b, _ = found.fitted
    assert a > 0
    assert b > 0
