"""Jobs that are trained in simulated time in a moment: a small model, NumPy, and a trainer that keeps what it is asked."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from real.learning.parameters import Gradient
from real.learning.trainer import Trainer
from real.learning.world import LearningWorld
from real.training.trainee import Training
from sim import protocols, stragglers
from sim.job.scenario import Scenario
from sim.model.workload import Variable, Workload
from sim.protocols.base import Protocol
from sim.recording.traces import Trace

SHAPES = {"w1": (16, 8), "b1": (8,), "w2": (8, 3), "b2": (3,)}
TRAINING = Training(data="synthetic", optimiser="mom", learning_rate=0.1, engine="numpy")
MODEL = Workload(
    name="mlp",
    sample_shape=(16,),
    classes=3,
    batch=16,
    flops_per_sample=1e7,
    variables=tuple(Variable(name=name, shape=shape) for name, shape in SHAPES.items()),
)


def job(
    protocol: str | Protocol, *settings: str, workers: int = 3, batch: int = 16, steps: int = 12, **further
) -> Scenario:
    """A job whose workers sleep, each at another time."""
    asked = protocols.make(protocol, settings) if isinstance(protocol, str) else protocol
    sleeps = further.pop("stragglers", "exponential(mean=5ms)")
    law = stragglers.read(sleeps) if isinstance(sleeps, str) else sleeps
    return Scenario(asked, MODEL, workers=workers, batch=batch, steps=steps, warmup=0, stragglers=law, **further)


@dataclass
class Trained:
    """A run.

    Args:
        versions: all parameters before and after each update of rank 0, float32 (updates + 1, parameters).
        summed: the gradients of each sum that was computed.
        times_s, samples: of each update, since the start.
        trace: all activities.
        parameters: of each rank at the end, by its section.
        end: all parameters when the last rank has ended.
    """

    versions: list[np.ndarray] = field(default_factory=list)
    summed: list[list[Gradient]] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    trace: Trace | None = None
    parameters: list[dict] = field(default_factory=list)
    end: np.ndarray | None = None


class Keeping(Trainer):
    """Keeps the gradients of each sum."""

    def __init__(self, *given):
        super().__init__(*given)
        self.kept: list[list[Gradient]] = []

    def sum(self, gradients):
        """As any trainer."""
        of = list(gradients)
        self.kept.append(of)
        return super().sum(of)


def trained(
    scenario: Scenario,
    replication: int = 0,
    training: Training = TRAINING,
    seen: Callable[[LearningWorld], object] = lambda world: None,
    keep: bool = True,
) -> Trained:
    """Train a job, run `replication`; `seen` is called with the world after each update of rank 0. Gradients are kept, or not."""
    found = Trained()
    trainer = (Keeping if keep else Trainer)(scenario.workload, scenario.seed, training)
    found.summed = trainer.kept if keep else []
    found.versions.append(trainer.initial(replication))

    def made(world, updates, time_s, samples):
        found.versions.append(world.newest.vector.copy())
        found.times_s.append(time_s)
        found.samples.append(samples)
        seen(world)
        return False

    world = LearningWorld(scenario, replication, trainer, made, want_trace=True)
    world.run()
    found.trace, found.parameters = world.trace, [dict(rank.parameters) for rank in world.ranks]
    found.end = world.newest.vector
    world.fall_apart()
    return found
