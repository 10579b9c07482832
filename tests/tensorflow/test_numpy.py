"""The engine of NumPy against that of TensorFlow: the same gradients, updates and parameters, to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from test_models import sample

from real.data import Batches, load
from real.engines import engine_of
from real.engines.numpy_optimiser import NumpyOptimiser
from real.models import DENSE, initial
from real.training.optimiser import LEARNING_RATES, Optimiser
from real.training.tensorflow_setup import tensorflow
from sim.model.workload import NAMED

pytestmark = pytest.mark.tensorflow
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


@pytest.mark.parametrize("name", DENSE)
def test_gradients_are_tensorflows(name):
    """And what is said of test samples."""
    parameters, x, y = sample(NAMED[name], 11)
    theirs, ours = (engine_of(engine).gradients("whole", NAMED[name]) for engine in ("tensorflow", "numpy"))
    expected, found = (one.fixed(parameters, x, y) for one in (theirs, ours))
    assert (found.sum.dtype, found.sum.flags.writeable) == (np.float32, False)
    np.testing.assert_allclose(found.sum, expected.sum, **CLOSE)
    assert ours.evaluate(parameters, x, y) == pytest.approx(theirs.evaluate(parameters, x, y), rel=1e-5)


@pytest.mark.parametrize("name", LEARNING_RATES)
def test_every_optimiser_is_kerass(name):
    """Over 20 updates, while the rate decays."""
    tensorflow(threads=1)
    rng, rates = np.random.default_rng(0), (name, 0.05, 3, 0.5)
    ours, theirs = NumpyOptimiser(*rates), Optimiser(*rates)
    found = rng.normal(size=40).astype(np.float32)
    expected = found.copy()
    for _ in range(20):
        total = rng.normal(size=40).astype(np.float32)
        total.flags.writeable = False
        ours.apply(found, total, 7)
        theirs.apply(expected, total, 7)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimiser", ["sgd", "mom", "rms"])
def test_parameters_after_some_steps_are_tensorflows(optimiser):
    workload = NAMED["softmax"]
    digits = load("digits", workload.sample_shape, workload.classes, seed=0)
    ends = []
    for engine in map(engine_of, ("tensorflow", "numpy")):
        parameters, update, computes = (
            initial(workload, 0),
            engine.optimiser(optimiser),
            engine.gradients("whole", workload),
        )
        batches = Batches(digits, 64, 0, 0, 1)
        for _ in range(10):
            gradient = computes.fixed(parameters, *next(batches))
            update.apply(parameters, gradient.sum, 64)
        ends.append(parameters)
    assert np.linalg.norm(ends[0] - ends[1]) < 1e-3 * np.linalg.norm(ends[0] - initial(workload, 0))
