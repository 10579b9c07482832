"""Requests of Horovod's next cycle that come to ports among the last messages of the call before."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim import vector
from sim.laws import LogNormal
from sim.model.costs import Line
from sim.platform.cluster import Link
from sim.vector.cycles.tails import Meeting
from tests.unit.test_cycles import assert_alike, assert_alike_or_refused, job

FREE = {"pack": Line(), "call": Line(), "compute": Line(base_s=2e-4)}


def meets(scenario) -> int:
    """How often requests meet messages, where both worlds agree."""
    with mock.patch.object(Meeting, "passing_s", autospec=True, side_effect=Meeting.passing_s) as met:
        assert_alike(scenario, 1)
    return met.call_count


def crowded(*said: str, noise: float = 0.0, compute_s: float = 2e-4, **of):
    """A job whose gradients are ready while others are summed, so that one cycle follows the next."""
    costs = FREE | {"noise": LogNormal(cv=noise), "compute": Line(base_s=compute_s)}
    return job("fusion_bytes=0", "cycle_s=0", *said, costs=costs, steps=2, **of)


@pytest.mark.parametrize(
    ("said", "of", "link"),
    [
        pytest.param(
            ["algorithm=ring"],
            {"workers": 28, "sizes": (700, 1, 20_000, 20_000, 9)},
            (1e-6, 1e-5, 1.4e-6, 5.8e7),
            id="a long ring's last rounds",
        ),
        pytest.param(
            ["algorithm=ring"],
            {"workers": 32, "sizes": (40, 20_000, 9, 20_000, 700), "speeds": 1.0},
            (1e-4, 0.0, 0.0, 6e6),
            id="where messages pass for long",
        ),
        pytest.param(
            ["algorithm=ring", "by_name=true"],
            {"workers": 21, "sizes": (9, 9, 9, 700, 40)},
            (1e-6, 1e-5, 1.4e-6, 3.4e7),
            id="at rank 0's port",
        ),
        pytest.param(
            ["algorithm=recursive-doubling"],
            {"workers": 33, "sizes": (40, 40, 9, 9, 1), "compute_s": 2e-3},
            (1e-4, 2e-6, 3e-7, 9.8e6),
            id="levels",
        ),
    ],
)
def test_requests_may_hold_up_messages_of_the_call_before(said, of, link):
    latency_s, overhead_s, gap_s, bandwidth = link
    link = Link(latency_s=latency_s, overhead_s=overhead_s, gap_s=gap_s, bandwidth_bytes_per_s=bandwidth)
    assert meets(crowded(*said, link=link, **of))


def test_replications_meet_each_for_itself():
    link = Link(latency_s=1e-6, overhead_s=1e-5, gap_s=1.4e-6, bandwidth_bytes_per_s=5.8e7)
    scenario = crowded("algorithm=ring", workers=28, sizes=(700, 1, 20_000, 20_000, 9), link=link, noise=0.3)
    together, apart = vector.run(scenario, 4), [vector.run(scenario, 1, first=one) for one in range(4)]
    for found, alone in zip(zip(together.step_s, together.idle_fraction, strict=True), apart, strict=True):
        np.testing.assert_allclose(found[0], alone.step_s[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[1], alone.idle_fraction[0], rtol=0, atol=1e-12)
    assert_alike(scenario, 2)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 34),
    st.sampled_from(["ring", "ring", "auto", "tree", "halving-doubling", "recursive-doubling", "alltoall-allgather"]),
    st.sampled_from([0, 10**4]),
    st.sampled_from([0, 1e-5, 1e-3]),
    st.booleans(),
    st.sampled_from([(0.0, 1.0), (0.02, 1.0), (0.02, None)]),
    st.floats(1e6, 1e9),
    st.sampled_from([1e-6, 5e-6, 2e-5, 1e-4]),
    st.sampled_from([0.0, 2e-6, 1e-5]),
    st.sampled_from([2e-4, 2e-3]),
    st.tuples(*[st.sampled_from([1, 9, 40, 700, 20_000])] * 4),
)
def test_the_worlds_agree_where_they_do(
    workers, algorithm, fusion_bytes, cycle_s, by_name, ranks, bandwidth, latency_s, overhead_s, compute_s, sizes
):
    cv, speeds = ranks
    said = (
        f"algorithm={algorithm}", f"fusion_bytes={fusion_bytes}", f"cycle_s={cycle_s}", f"by_name={str(by_name).lower()}",
    )  # fmt: skip
    link = Link(latency_s=latency_s, overhead_s=overhead_s, gap_s=overhead_s / 7, bandwidth_bytes_per_s=bandwidth)
    costs = FREE | {"noise": LogNormal(cv=cv), "compute": Line(base_s=compute_s)}
    assert_alike_or_refused(job(*said, workers=workers, link=link, sizes=sizes, speeds=speeds, costs=costs, steps=3))
