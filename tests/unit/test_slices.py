"""Rows of sparse variables: none is lost or counted twice on its way to the parts and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from real.training.row_slices import Slices, parts_of
from real.training.sparse_gradients import look_up
from real.worlds.parcels import Parcel
from sim import protocols
from sim.job.scenario import Scenario
from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.model.sparse_rows import Load, Rows
from sim.model.workload import Variable, Workload

WORDS = Variable(name="words", shape=(11, 3), rows=Rows(per_sample=1))
TABLE = np.arange(33, dtype=np.float32).reshape(11, 3)
SOME = st.sets(st.integers(0, 10)).map(sorted)


def parts(count: int, servers: int = 1, variables=(WORDS,)):
    model = Workload(name="model", variables=variables)
    return parts_of(Scenario(protocols.make("hybrid"), model, 1, servers=servers, variable_partitions=count))


def slices(rows: list[int], factor: float = 1) -> Slices:
    rows = np.array(rows, np.int32)
    return Slices(rows, factor * TABLE[rows])


@pytest.mark.parametrize("count", [1, 2, 4, 11, 40])
def test_parts_have_every_row_once_and_are_as_large_as_placed(count):
    model = Workload(name="model", variables=(WORDS,))
    scenario = Scenario(protocols.make("hybrid"), model, 1, variable_partitions=count)
    found = parts_of(scenario)
    rows = [part.cut(np.arange(11)) for part in found]
    assert sorted(np.concatenate(rows)) == list(range(11))
    assert [len(of) for of in rows] == [variable.shape[0] for variable, _ in scenario.traffic.placed]


@given(SOME, st.sampled_from([1, 2, 4, 11]))
def test_rows_lie_where_their_part_says(rows, count):
    rows, seen = np.array(rows, np.int32), []
    for part in parts(count):
        places = part.where(rows)
        seen += list(places)
        np.testing.assert_array_equal(part.cut(TABLE)[rows[places] // part.of], TABLE[rows[places]])
    assert sorted(seen) == list(range(len(rows)))


def test_parts_know_their_variable_and_server():
    other = WORDS.model_copy(update={"name": "other", "shape": (2, 5)})
    found = parts(4, servers=3, variables=(WORDS, other))
    assert [(part.variable, part.index, part.of, part.width) for part in found] == [
        *[(0, index, 4, 3) for index in range(4)],
        *[(1, index, 2, 5) for index in range(2)],
    ]
    assert [part.server for part in found] == [0, 1, 2, 0, 1, 2]


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


@pytest.mark.parametrize("rows", [[], [3], [0, 4, 10]])
def test_messages_are_as_long_as_simulated(rows):
    """Request, answer, gradient; and what they carry is there."""
    sent, load = slices(rows), Load(len(rows), 3 * len(rows))
    request, answer, gradient = Parcel.of(sent.rows), Parcel.of(values=sent.values), Parcel.of(sent.rows, sent.values)
    sizes = [parcel.buffer.nbytes for parcel in (request, answer, gradient)]
    assert sizes == [load.request_bytes, load.answer_bytes, load.gradient_bytes]
    assert sizes[0] == HEADER_BYTES + ITEM_BYTES * len(rows)
    np.testing.assert_array_equal(gradient.rows, sent.rows)
    np.testing.assert_array_equal(gradient.payload, sent.values.ravel())
