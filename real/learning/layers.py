"""Parameters that travel variable by variable. No gradient is stale there: a step's are of what the step before has made."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from real.learning.parameters import Gradient, Held, Whole

NONE = Held(np.empty(0, np.float32))

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from real.learning.trainer import Trainer
    from sim.job.scenario import Scenario


class Layers:
    """The variables of all servers, step by step.

    Args:
        scenario: the job, whose protocol is layerwise.
        trainer: makes optimisers.
        start: first parameters, float32 (parameters,).
        total: sums gradients.
    """

    def __init__(
        self,
        scenario: Scenario,
        trainer: Trainer,
        start: np.ndarray,
        total: Callable[[list[Gradient]], np.ndarray],
    ):
        self._total = total
        sizes = [variable.size for variable, _ in scenario.traffic.placed]
        self._places = [slice(*bounds) for bounds in pairwise([0, *accumulate(sizes)])]
        self._held: dict[int, list[Held]] = {0: [Held(start[place]) for place in self._places]}
        self._updaters = [trainer.updater(size) for size in sizes]
        self._wholes: dict[int, Whole] = {}
        self._gradients: dict[int, list[Gradient]] = defaultdict(list)
        self._missing: dict[int, set[int]] = {}  # variables, by step

    def whole(self, step: int) -> Whole:
        """All parameters of a step, some of which may be made later; no gradient is computed before."""
        if step not in self._wholes:
            self._wholes[step] = Whole(self._of(step), self._places)
        return self._wholes[step]

    def computed(self, step: int, gradient: Gradient) -> None:
        """A worker computes its gradient of a step."""
        self._gradients[step].append(gradient)

    def update(self, step: int, variables: Collection[int]) -> None:
        """Update some variables by the sum of all workers' gradients."""
        gradients, now, then = self._gradients[step], self._held[step], self._of(step + 1)
        total, samples = self._total(gradients), sum(len(gradient.samples) for gradient in gradients)
        for number in variables:
            then[number] = self._updaters[number].updated(now[number], total[self._places[number]], samples)
        missing = self._missing.setdefault(step, set(range(len(now))))
        missing.difference_update(variables)
        if not missing:
            for old in (self._held, self._wholes, self._gradients, self._missing):
                del old[step]

    def _of(self, step: int) -> list[Held]:
        """The variables of a step, each empty until it is made."""
        return self._held.setdefault(step, [NONE] * len(self._places))

    @property
    def newest(self) -> Whole:
        """All parameters after the last step that is complete."""
        return self.whole(min(self._held))
