"""One process that trains undistributed."""

import math
from dataclasses import dataclass

from sim.language.text import Text
from sim.language.verbs import compute, compute_until


@dataclass(frozen=True)
class Alone(Text):
    """Stochastic gradient descent, in fixed minibatches or, with a time limit, as one worker of "Anytime Minibatch" (sim.texts.amb)."""

    time_limit_s: float = math.inf  # seconds for a gradient, its sleep included
    partitions: int = 1  # micro-batches of a minibatch

    name, micros, infinite = "alone", "partitions", ("time_limit_s",)

    @property
    def loops(self):  # type: ignore[override]
        return self.time_limit_s < math.inf

    def __call__(self, me):
        for _ in me.steps():
            end_s, samples = me.now() + self.time_limit_s, me.batch
            yield from me.sleep()
            if self.loops:
                samples = yield from compute_until(me, end_s, self.partitions)
            else:
                yield from compute(me)
            yield from me.update(samples=samples)
            yield from me.evaluate()
