"""Placement by TensorFlow's rules: what lies where, and that nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim import placement
from sim.errors import WrongSetting
from sim.workload import HEADER_BYTES, NAMED, Variable


def variables(*sizes):
    return [Variable(name=f"v{i}", shape=(size,)) for i, size in enumerate(sizes)]


def test_round_robin_goes_in_creation_order():
    assert placement.round_robin(variables(9, 9, 9, 9, 9), 2) == [0, 1, 0, 1, 0]


def test_greedy_takes_the_server_with_the_fewest_bytes():
    """Seed 004's picture: weights and biases; the large ones do not all land on one server."""
    assert placement.greedy(variables(784 * 100, 100, 100 * 10, 10), 2) == [0, 1, 1, 1]


def test_vgg_like_layers_collapse_on_one_server():
    held = placement.server_bytes(variables(10, 10, 1000, 10), 4)
    assert max(held) == HEADER_BYTES + 4 * 1000


@given(
    st.lists(st.integers(1, 10**6), min_size=4, max_size=40),
    st.integers(1, 4),
    st.sampled_from(list(placement.STRATEGIES)),
)
def test_every_byte_lies_somewhere(sizes, servers, strategy):
    held = placement.server_bytes(variables(*sizes), servers, strategy)
    assert sum(held) - servers * HEADER_BYTES == 4 * sum(sizes)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40), st.integers(1, 4))
def test_greedy_is_never_worse_than_the_largest_variable_above_the_mean(sizes, servers):
    loads = [0] * servers
    for size, server in zip(sizes, placement.greedy(variables(*sizes), servers), strict=True):
        loads[server] += size
    assert max(loads) <= sum(sizes) / servers + max(sizes)


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_partitions_keep_all_rows_and_differ_by_one(parts):
    cut = placement.partitioned(NAMED["toy_fc"].variables, parts)
    assert sum(v.size for v in cut) == NAMED["toy_fc"].parameters
    rows = [v.shape[0] for v in cut if v.name.startswith("w1/")]
    assert len(rows) == parts
    assert max(rows) - min(rows) <= 1


def test_partitions_level_the_servers():
    whole = placement.server_bytes(NAMED["mnist"].variables, 3)
    cut = placement.server_bytes(NAMED["mnist"].variables, 3, parts=3)
    assert max(cut) < 0.4 * max(whole)


def test_what_cannot_be_placed_is_said():
    with pytest.raises(WrongSetting, match="greedy"):
        placement.server_bytes(variables(1), 1, "random")
    with pytest.raises(WrongSetting, match="at most 2"):
        placement.server_bytes(variables(1, 1), 3)
