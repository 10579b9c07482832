"""Rows of sparse variables: none is lost or counted twice on its way to the parts and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from real.language.rows import places_of
from real.training.row_slices import Slices
from real.training.sparse_gradients import look_up
from sim import protocols
from sim.job.scenario import Scenario
from sim.model.sparse_rows import Rows
from sim.model.workload import Variable, Workload
from sim.protocols.base import text_of
from sim.runs.job import layers_of

WORDS = Variable(name="words", shape=(11, 3), rows=Rows(per_sample=1))
OTHER = Variable(name="other", shape=(2, 5))
TABLE = np.arange(33, dtype=np.float32).reshape(11, 3)
SOME = st.sets(st.integers(0, 10)).map(sorted)


def slices(rows: list[int], factor: float = 1) -> Slices:
    rows = np.array(rows, np.int32)
    return Slices(rows, factor * TABLE[rows])


@pytest.mark.parametrize(("count", "servers"), [(1, 1), (2, 1), (4, 3), (11, 2), (40, 5)])
def test_parts_have_every_row_once_and_those_that_leave_the_same(count, servers):
    """As many as the job's layers, server by server; what workers hold comes first."""
    model = Workload(name="model", variables=(WORDS, OTHER))
    scenario = Scenario(protocols.make("hybrid"), model, 1, servers=servers, variable_partitions=count)
    places, layers = places_of(scenario), layers_of(scenario, text_of(scenario), 1.0)
    assert sorted(places) == list(range(model.parameters))
    found = np.split(places, np.cumsum([layer.items for layer in layers])[:-1])
    assert list(found[0]) == list(range(WORDS.size, model.parameters))
    for part, layer in zip(found[1:], layers[1:], strict=True):
        rows = part.reshape(-1, 3)[:, 0] // 3
        assert {int(row) % min(count, 11) for row in rows} == {int(rows[0])}
        assert layer.server == rows[0] % servers


@given(SOME, SOME)
def test_a_sum_has_the_rows_of_both_once(one, other):
    total = slices(one) + slices(other, 10)
    expected = np.zeros_like(TABLE)
    expected[one] += TABLE[one]
    expected[other] += 10 * TABLE[other]
    assert list(total.rows) == sorted({*one, *other})
    np.testing.assert_array_equal(total.values, expected[total.rows])


@given(st.lists(st.integers(0, 10), min_size=1))
def test_places_look_up_what_words_do(words):
    x = np.array(words, np.float32).reshape(-1, 1)
    rows, places = look_up(x)
    assert list(rows) == sorted(set(words))
    np.testing.assert_array_equal(TABLE[rows][places.astype(int)], TABLE[x.astype(int)])
