"""The models that can be trained: a forward pass for each workload's name, and where training starts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from real.models import attention, convolutional, dense, recurrent, residual
from real.models.operations import Operations, operations
from sim.base.errors import WrongSetting
from sim.laws.randomness import generator
from sim.model.workload import Variable, Workload

Forward = Callable  # (variables, x) -> logits, shapes (samples, *sample_shape) and (samples, classes)

FORWARD: dict[str, Callable] = {
    "toy_fc": dense.relu_layers,
    "toy_conv": convolutional.pool_last,
    "mnist": convolutional.pool_each,
    "cifar10": convolutional.pool_each,
    "mlp": dense.sigmoid_layers,
    "lstm_classifier": recurrent.row_by_row,
    "lstm_lm": recurrent.next_word,
    "bigram": recurrent.bigram,
    "softmax": dense.one_layer,
}
DENSE = [name for name, text in FORWARD.items() if text.__module__ == dense.__name__]

RESIDUAL: dict[str, Callable] = {  # deep models, whose blocks add to what they read
    "resnet18": residual.resnet18,
    "resnet18_cifar": residual.resnet18,
    "transformer_small": attention.next_word,
}
TRAINED = FORWARD | RESIDUAL
BY_BATCH = ("resnet18", "resnet18_cifar")  # normalised by their minibatch, so that no sample's answer is its own
FILTERS_FIRST = BY_BATCH  # PyTorch's order of a weight's dimensions: what it gives, what it reads


def forward_of(workload: Workload, engine: str = "tensorflow") -> Forward:
    """The forward pass of a workload, in the operations of an engine, which is imported when the pass is called.

    Raises:
        WrongSetting: a workload of the user's own, or another format of numbers; it can be simulated, but no model trains it. The pass
            raises it when the workload's variables do not fit the model.
    """
    if workload.name not in TRAINED:
        raise WrongSetting("--workload", workload.name, f"a model that can be trained: {', '.join(TRAINED)}")
    if workload.precision not in (None, "fp32"):
        raise WrongSetting("--workload: precision", workload.precision, "fp32, in which models are trained here")
    return lambda variables, x: _logits(workload, operations(engine), variables, x)


def _logits(workload: Workload, nn: Operations, variables: list, x):
    """What the model says of samples; a file may give its name to variables that its operations cannot take."""
    allowed = f"variables that fit the model {workload.name}"
    try:
        found = TRAINED[workload.name](nn, variables, x)
    except (ValueError, TypeError, IndexError, StopIteration, ZeroDivisionError) as error:
        raise WrongSetting("--workload", workload.name, f"{allowed} ({str(error)[:200]})") from error
    if tuple(found.shape[1:]) != (workload.classes,):
        raise WrongSetting("--workload", workload.name, f"{allowed}: its answers have {workload.classes} classes")
    return found


def initial(workload: Workload, seed: int, replication: int = 0) -> np.ndarray:
    """The parameters at step 0 of a replication, float32 (parameters,): weights by He et al. (ICCV 2015, eq. 10), biases zero, scales one.

    Of a sparse variable one row is read at a time, as if it had one input.
    """
    rng = generator(seed, replication, 0, "model")
    first = workload.name in FILTERS_FIRST
    return np.concatenate([_start(variable, rng, first) for variable in workload.variables])


def _start(variable: Variable, rng: np.random.Generator, filters_first: bool) -> np.ndarray:
    shape = variable.shape
    if len(shape) == 1:
        return np.full(shape, variable.name.endswith(".weight"), np.float32)
    inputs = 1 if variable.rows else math.prod(shape[1:] if filters_first else shape[:-1])
    return rng.normal(0.0, math.sqrt(2 / inputs), math.prod(shape)).astype(np.float32)
