"""Models of residual blocks: their gradients are those of differences; and they learn."""

from __future__ import annotations

import numpy as np
import pytest
from test_models import sample

from real.data import Batches, data_for
from real.models import RESIDUAL, TRAINED, initial
from real.training.gradients import Gradients
from real.training.optimiser import Optimiser
from sim.model.workload import NAMED

pytestmark = pytest.mark.tensorflow
SMALL = [name for name in RESIDUAL if name != "resnet18"]  # which has the forward pass of resnet18_cifar


@pytest.mark.parametrize("name", SMALL)
def test_gradients_are_those_of_differences(name):
    """Along the gradient, the loss changes by its length: by central differences."""
    parameters, x, y = sample(NAMED[name], 4)
    gradients = Gradients(NAMED[name])
    found = gradients.fixed(parameters, x, y).sum
    length = np.linalg.norm(found)
    along = found / length
    ahead, behind = (4 * gradients.evaluate(parameters + sign * 1e-2 * along, x, y)[0] for sign in (1, -1))
    assert (ahead - behind) / 2e-2 == pytest.approx(length, rel=0.05)


def test_scales_start_at_one_and_every_trained_model_is_in_the_zoo():
    assert set(TRAINED) <= set(NAMED)
    for name, scales in (("resnet18_cifar", 4800), ("transformer_small", 5 * 64)):
        assert np.count_nonzero(initial(NAMED[name], 0) == 1) == scales


def test_the_transformer_learns():
    workload = NAMED["transformer_small"]
    gradients, update = Gradients(workload), Optimiser("adm", 3e-3)
    parameters, batches = initial(workload, 0), Batches(data_for(workload, None, 0), 64, 0, 0, 1)
    losses = []
    for _ in range(25):
        x, y = next(batches)
        losses.append(gradients.evaluate(parameters, x, y)[0])
        update.apply(parameters, gradients.fixed(parameters, x, y).sum, 64)
    assert losses[0] == pytest.approx(np.log(10_000), rel=0.2)
    assert np.mean(losses[-5:]) < 0.9 * losses[0]
