"""The master's update by NumPy: Keras's formulas on the flat parameter vector, so that both engines give the same parameters."""

from __future__ import annotations

import numpy as np

from real.training.optimiser import EPSILON, MOMENTUM, RHO, Rates, check_samples

FIRST, SECOND = 0.9, 0.999  # what Adam's moments keep (Kingma and Ba, ICLR 2015)
MOMENTS = {"sgd": 0, "mom": 1, "rms": 1, "adm": 2}  # vectors that an optimiser keeps


class NumpyOptimiser(Rates):
    """Applies summed gradients to parameters, on the CPU; as real.training.optimiser.Optimiser.

    Moments are replaced in an update, never changed in place.
    """

    def __init__(self, *rates, **named):
        super().__init__(*rates, **named)
        self._updates = 0
        self._moments: list | None = None

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next update."""
        return self.rate_after(self._updates)

    def apply(self, parameters: np.ndarray, gradient_sum: np.ndarray, samples: int) -> None:
        """One update of `parameters`, in place; both vectors float32 (parameters,).

        Raises:
            WrongSetting: no samples, so no mean.
        """
        check_samples(samples)
        if self._moments is None:
            self._moments = self._start(parameters.size)
        numbers = np.array([samples, *self._scales()], np.float32)
        parameters[:], self._moments = self._updated(self._moments, parameters, gradient_sum, numbers)
        self._updates += 1

    def warm_up(self, parameters: int) -> None:
        """Make an update of vectors of that many numbers, and leave the optimiser at step 0."""
        nothing = np.zeros(parameters, np.float32)
        self.apply(nothing, nothing.copy(), 1)
        self._updates, self._moments = 0, self._start(parameters)

    @property
    def state(self) -> list[np.ndarray]:
        """The state of a warm optimiser: everything but the parameters that the next updates depend on."""
        return [np.array(self._updates), *map(np.array, self._moments or [])]

    def restore(self, state: list[np.ndarray]) -> None:
        """Go on from a `state`."""
        self._updates, self._moments = int(state[0]), list(state[1:])

    def _start(self, parameters: int) -> list:
        return [np.zeros(parameters, np.float32) for _ in range(MOMENTS[self.name])]

    def _scales(self) -> tuple[float, float]:
        """The learning rate, and Adam's correction of it."""
        step = self._updates + 1
        corrected = np.sqrt(1 - SECOND**step) / (1 - FIRST**step) if self.name == "adm" else 1.0
        return self.learning_rate, corrected

    def _updated(self, moments, parameters, gradient_sum, numbers):
        samples, rate, corrected = numbers
        gradient = gradient_sum / samples + self.weight_decay * parameters
        return getattr(self, f"_{self.name}")(moments, parameters, gradient, rate * corrected)

    @staticmethod
    def _sgd(moments, parameters, gradient, rate):
        return parameters - rate * gradient, moments

    @staticmethod
    def _mom(moments, parameters, gradient, rate):
        velocity = MOMENTUM * moments[0] - rate * gradient
        return parameters + velocity, [velocity]

    def _rms(self, moments, parameters, gradient, rate):
        square = RHO * moments[0] + (1 - RHO) * gradient**2
        return parameters - rate * gradient / np.sqrt(square + EPSILON), [square]

    def _adm(self, moments, parameters, gradient, rate):
        first = moments[0] + (1 - FIRST) * (gradient - moments[0])
        second = moments[1] + (1 - SECOND) * (gradient**2 - moments[1])
        return parameters - rate * first / (np.sqrt(second) + EPSILON), [first, second]
