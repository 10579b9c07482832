"""Gradients by rows are the dense gradient's rows, and updates in which all rows have one are the dense optimiser's."""

import numpy as np
import pytest
from test_models import sample, split

from real.training.gradients import Gradients
from real.training.optimiser import Optimiser
from real.training.row_optimiser import BY_ROWS, RowOptimiser, Table
from real.training.row_slices import Slices
from real.training.sparse_gradients import SparseGradients, look_up
from sim.model.workload import NAMED

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("name", ["lstm_lm", "bigram"])
def test_rows_have_the_dense_gradient_and_others_none(name):
    workload = NAMED[name]
    parameters, x, y = sample(workload, 8)
    x[1] = x[0]  # words that come twice
    expected = Gradients(workload).fixed(parameters, x, y)
    table, *dense = split(workload, parameters)
    rows, places = look_up(x)
    flat = np.concatenate([np.ravel(v) for v in dense]) if dense else np.empty(0, np.float32)
    found = SparseGradients(workload).by_rows(flat, [table[rows]], places, y)
    of_table, *of_dense = split(workload, expected.sum)
    np.testing.assert_allclose(found.rows[0], of_table[rows], rtol=1e-5, atol=1e-6)
    assert not np.delete(of_table, rows, axis=0).any()
    if dense:
        np.testing.assert_allclose(found.sum, np.concatenate([g.ravel() for g in of_dense]), rtol=1e-5, atol=1e-6)
    assert found.computed_s > 0


@pytest.mark.parametrize("name", BY_ROWS)
def test_an_update_of_all_rows_is_kerass(name):
    rng = np.random.default_rng(0)
    start = rng.normal(size=(5, 3)).astype(np.float32)
    dense, by_rows = Optimiser(name, 0.1, 2, 0.5), RowOptimiser(name, 0.1, 2, 0.5)
    expected, table = start.ravel().copy(), Table(start.copy(), by_rows)
    for _ in range(4):
        gradient = rng.normal(size=(5, 3)).astype(np.float32)
        dense.apply(expected, gradient.ravel(), 7)
        table.add(Slices(np.arange(5), gradient))
        table.update(7)
        np.testing.assert_allclose(table.all().ravel(), expected, rtol=1e-5, atol=1e-6)
