"""Models of residual blocks: both engines give the same gradients, which are those of differences; and they learn."""

from __future__ import annotations

import numpy as np
import pytest
from test_models import sample

from real.data import Batches, data_for
from real.engines import engine_of
from real.models import RESIDUAL, TRAINED, initial
from sim.model.workload import NAMED

pytestmark = pytest.mark.tensorflow
SMALL = [name for name in RESIDUAL if name != "resnet18"]  # which has the forward pass of resnet18_cifar


@pytest.mark.parametrize("name", SMALL)
def test_gradients_are_equal_and_those_of_differences(name):
    """To rounding: parameters that differ in their last digit change a ResNet's gradient by 0.3 %, because ReLUs have kinks.

    Along the gradient, the loss changes by its length: by central differences.
    """
    parameters, x, y = sample(NAMED[name], 4)
    expected, found = (engine_of(engine).gradients("whole", NAMED[name]) for engine in ("tensorflow", "jax"))
    theirs, ours = (engine.fixed(parameters, x, y) for engine in (expected, found))
    length = np.linalg.norm(theirs.sum)
    assert np.linalg.norm(ours.sum - theirs.sum) < 5e-3 * length
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-4)
    along = theirs.sum / length
    ahead, behind = (found.fixed(parameters + sign * 1e-2 * along, x, y).loss for sign in (1, -1))
    assert (ahead - behind) / 2e-2 == pytest.approx(length, rel=0.05)


def test_scales_start_at_one_and_every_trained_model_is_in_the_zoo():
    assert set(TRAINED) <= set(NAMED)
    for name, scales in (("resnet18_cifar", 4800), ("transformer_small", 5 * 64)):
        assert np.count_nonzero(initial(NAMED[name], 0) == 1) == scales


def test_the_transformer_learns():
    workload = NAMED["transformer_small"]
    gradients, update = engine_of("jax").gradients("whole", workload), engine_of("jax").optimiser(1, "adm", 3e-3)
    parameters, batches = initial(workload, 0), Batches(data_for(workload, None, 0), 64, 0, 0, 1)
    losses = []
    for _ in range(25):
        gradient = gradients.fixed(parameters, *next(batches))
        update.apply(parameters, gradient.sum, gradient.samples)
        losses.append(gradient.loss / gradient.samples)
    assert losses[0] == pytest.approx(np.log(10_000), rel=0.2)
    assert np.mean(losses[-5:]) < 0.9 * losses[0]
