"""Jobs that are trained in simulated time in a moment: a small model, NumPy."""

from dataclasses import dataclass, field

import numpy as np

from real.learning.train import train
from real.learning.trainer import Trainer
from real.learning.versions import Versions
from real.training.trainee import Training
from sim import protocols, stragglers
from sim.base.activity import Activity
from sim.job.scenario import Scenario
from sim.language.text import Text
from sim.model.workload import Variable, Workload
from sim.protocols.base import Protocol, protocol_of

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
    protocol: str | Text | Protocol, *settings: str, workers: int = 3, batch: int = 16, steps: int = 12, **further
) -> Scenario:
    """A job whose workers sleep, each at another time."""
    asked = protocols.make(protocol, settings) if isinstance(protocol, str) else protocol
    asked = protocol_of(type(asked))(**vars(asked)) if isinstance(asked, Text) else asked
    sleeps = further.pop("stragglers", "exponential(mean=5ms)")
    law = stragglers.read(sleeps) if isinstance(sleeps, str) else sleeps
    return Scenario(asked, MODEL, workers=workers, batch=batch, steps=steps, warmup=0, stragglers=law, **further)


@dataclass
class Trained:
    """A run.

    Args:
        versions: all weights before and after each update of rank 0, float32 (updates + 1, parameters).
        times_s, samples: of each version, since the start.
        rows: all activities.
    """

    versions: list[np.ndarray] = field(default_factory=list)
    times_s: list[float] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    rows: list[Activity] = field(default_factory=list)
    learned: Versions | None = None

    @property
    def end(self) -> np.ndarray:
        """All weights when the last rank has ended."""
        return self.learned.newest.vector


def trained(scenario: Scenario, replication: int = 0, training: Training = TRAINING) -> Trained:
    """Train a job, run `replication`."""
    found, trainer = Trained(), Trainer(scenario.workload, scenario.seed, training)
    found.versions.append(trainer.initial(replication))

    def made(versions, updates, time_s, samples):
        found.versions.append(versions.newest.vector.copy())
        found.times_s.append(time_s)
        found.samples.append(samples)
        return False

    found.learned, found.rows = train(scenario, replication, trainer, made, want_trace=True)
    return found
