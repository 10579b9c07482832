"""Requests of Horovod's next cycle that come to ports among the last messages of the call before."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from sim import vector
from sim.laws import LogNormal
from sim.model.costs import Line
from sim.platform.cluster import Link
from sim.vector.tails import Meeting
from tests.unit.test_cycles import assert_alike, job

TINY = (9, 3, 40, 700)


def meets(said, workers: int, link: Link, cv: float = 0.0, replications: int = 1, **of) -> int:
    """How often requests meet messages, where both worlds agree."""
    with mock.patch.object(Meeting, "passing_s", autospec=True, side_effect=Meeting.passing_s) as met:
        assert_alike(job(*said, workers=workers, link=link, costs={"noise": LogNormal(cv=cv)}, **of), replications)
    return met.call_count


@pytest.mark.parametrize(
    ("algorithm", "workers", "latency_s", "bandwidth"),
    [
        pytest.param("ring", 23, 2e-5, 2e8, id="the last rounds of a long ring"),
        pytest.param("ring", 40, 1e-5, 5e7, id="many rounds"),
        pytest.param("halving-doubling", 11, 2e-5, 2e7, id="levels"),
    ],
)
def test_requests_may_hold_up_messages_of_the_call_before(algorithm, workers, latency_s, bandwidth):
    link = Link(latency_s=latency_s, overhead_s=5e-6, bandwidth_bytes_per_s=bandwidth)
    said = f"algorithm={algorithm}", "fusion_bytes=0", "cycle_s=0"
    assert meets(said, workers, link, sizes=TINY, speeds=1.0, steps=2)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 40),
    st.sampled_from(["ring", "ring", "auto", "tree", "halving-doubling", "recursive-doubling", "alltoall-allgather"]),
    st.sampled_from([0, 10**4]),
    st.sampled_from([0, 1e-5, 1e-3]),
    st.booleans(),
    st.sampled_from([(0.0, 1.0), (0.02, 1.0), (0.02, None)]),
    st.floats(1e6, 1e9),
    st.sampled_from([1e-6, 5e-6, 2e-5, 1e-4]),
    st.sampled_from([0.0, 2e-6, 1e-5]),
    st.tuples(*[st.sampled_from([1, 9, 40, 700, 20_000])] * 4),
)
def test_the_worlds_agree_where_they_do(
    workers, algorithm, fusion_bytes, cycle_s, by_name, ranks, bandwidth, latency_s, overhead_s, sizes
):
    cv, speeds = ranks
    said = (
        f"algorithm={algorithm}", f"fusion_bytes={fusion_bytes}", f"cycle_s={cycle_s}", f"by_name={str(by_name).lower()}",
    )  # fmt: skip
    link = Link(latency_s=latency_s, overhead_s=overhead_s, gap_s=overhead_s / 7, bandwidth_bytes_per_s=bandwidth)
    costs = {"noise": LogNormal(cv=cv), "compute": Line(base_s=2e-3), "pack": Line(), "call": Line()}
    try:
        assert_alike(job(*said, workers=workers, link=link, sizes=sizes, speeds=speeds, costs=costs, steps=3))
    except vector.Refused:
        reject()
