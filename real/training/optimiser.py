"""The master's update: Keras optimisers on the flat parameter vector, decaying learning rate, weight decay."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from real.training.tensorflow_setup import OF_KERAS, without
from sim.base.errors import WrongSetting
from sim.base.ranges import check, check_integer

if TYPE_CHECKING:
    import numpy as np

LEARNING_RATES = {"sgd": 0.1, "mom": 0.02, "rms": 0.001, "adm": 0.001}
WEIGHT_DECAY = 5e-4
SLOWEST, FASTEST = 1e-30, 1e6  # of a rate: a float32 times it is a float32
MOMENTUM, RHO, EPSILON = 0.9, 0.9, 1e-7


class Rates:
    """The size of updates.

    Args:
        name: sgd, mom (momentum 0.9), rms (RMSprop) or adm (Adam), the AMB repository's names.
        learning_rate: at step 0; None for the optimiser's own in `LEARNING_RATES`.
        decay_steps: updates in which the learning rate falls by `decay_rate`; 0 keeps it constant.
        decay_rate: learning_rate * decay_rate ** (step / decay_steps).
        weight_decay: times half the squared parameters is added to the loss (not decoupled as in AdamW).

    Raises:
        WrongSetting: there is no such optimiser, or a rate is impossible.
    """

    def __init__(
        self,
        name: str,
        learning_rate: float | None = None,
        decay_steps: int = 0,
        decay_rate: float = 1.0,
        weight_decay: float = WEIGHT_DECAY,
    ):
        if name not in LEARNING_RATES:
            raise WrongSetting("--optimiser", name, ", ".join(LEARNING_RATES))
        self.name, self.start = name, LEARNING_RATES[name] if learning_rate is None else learning_rate
        self.decay_steps, self.decay_rate, self.weight_decay = decay_steps, decay_rate, weight_decay
        self._check()

    def rate_after(self, updates: int) -> float:
        """The learning rate of the update after so many."""
        return self.start * self.decay_rate ** (updates / self.decay_steps if self.decay_steps else 0)

    def _check(self) -> None:
        check_integer("--decay-steps", self.decay_steps, 0)
        check("--weight-decay", self.weight_decay, 0, FASTEST)
        check("--learning-rate", self.start, SLOWEST, FASTEST)
        check("--decay-rate", self.decay_rate, SLOWEST, FASTEST)


def check_samples(samples: int) -> None:
    """Refuse an update by a mean over nothing.

    Raises:
        WrongSetting: no samples.
    """
    if samples < 1:
        raise WrongSetting("samples", samples, "1 or more in an update")


class Optimiser(Rates):
    """Applies summed gradients to parameters."""

    def __init__(self, *rates, **named):
        super().__init__(*rates, **named)
        self._keras = _keras(self.name, _schedule(self.start, self.decay_steps, self.decay_rate))
        self._variable = None

    def apply(self, parameters: np.ndarray, gradient_sum: np.ndarray, samples: int) -> None:
        """One update of `parameters`, in place; both vectors float32 (parameters,).

        Raises:
            WrongSetting: no samples, so no mean.
        """
        check_samples(samples)
        from numpy import float32

        if self._variable is None:
            self.warm_up(parameters.size)
        parameters[:] = self._update(parameters, gradient_sum, float32(samples))

    def warm_up(self, parameters: int) -> None:
        """Compile the update for vectors of that many numbers, and leave the optimiser at step 0."""
        import numpy as np
        import tensorflow as tf

        with tf.device("CPU:0"):
            self._variable = tf.Variable(tf.zeros(parameters))
            self._keras.build([self._variable])
            self._update = self._compiled(parameters)
            kept = [v.numpy() for v in self._keras.variables]
            nothing = np.zeros(parameters, np.float32)
            self._update(nothing, nothing, np.float32(1))
            for variable, value in zip(self._keras.variables, kept, strict=True):
                variable.assign(value)

    @property
    def state(self) -> list[np.ndarray]:
        """The state of a warm optimiser: everything but the parameters that the next updates depend on."""
        return [variable.numpy() for variable in self._keras.variables]

    def restore(self, state: list[np.ndarray]) -> None:
        """Go on from a `state`."""
        for variable, value in zip(self._keras.variables, state, strict=True):
            variable.assign(value)

    def _compiled(self, parameters: int):
        """Compile by XLA, which fuses the passes over the parameters into one: 10 to 30 % faster than op by op."""
        import tensorflow as tf

        vector, number = tf.TensorSpec((parameters,), tf.float32), tf.TensorSpec((), tf.float32)
        return tf.function(self._step, input_signature=(vector, vector, number), jit_compile=True)

    def _step(self, parameters, gradient_sum, samples):
        self._variable.assign(parameters)
        self._keras.apply([gradient_sum / samples + self.weight_decay * parameters], [self._variable])
        return self._variable.read_value()


class OptimiserByPiece:
    """Applies summed gradients to pieces of the parameters, each with an optimiser of its own.

    Args:
        of: the optimisers by first item and the one behind the last; more are made when they are needed.
        make: makes an optimiser, of any engine.
    """

    def __init__(self, of: dict[tuple[int, int], Optimiser], make: Callable[[], Optimiser]):
        self._of, self._make = of, make

    def apply(self, piece: tuple[int, int], parameters: np.ndarray, gradient_sum: np.ndarray, samples: float) -> None:
        """One update of a piece of the parameters, in place."""
        if piece not in self._of:
            self._of[piece] = self._make()
        self._of[piece].apply(parameters, gradient_sum, samples)


def _schedule(learning_rate: float, decay_steps: int, decay_rate: float):
    if decay_steps == 0:
        return learning_rate
    return _optimizers().schedules.ExponentialDecay(learning_rate, decay_steps, decay_rate)


def _optimizers():
    with without(*OF_KERAS):
        from keras import optimizers
    return optimizers


def _keras(name: str, learning_rate):
    optimizers = _optimizers()
    make = {
        "sgd": lambda: optimizers.SGD(learning_rate),
        "mom": lambda: optimizers.SGD(learning_rate, momentum=MOMENTUM),
        "rms": lambda: optimizers.RMSprop(learning_rate, rho=RHO, epsilon=EPSILON),
        "adm": lambda: optimizers.Adam(learning_rate),
    }
    return make[name]()
