"""One rank of a run of a text over MPI, and what all ranks of the run have measured."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from real.language.world import Measured, MpiWorld
from real.launching.clock import common_clock
from sim.language.job import Job
from sim.language.learning import Chain, Values
from sim.language.text import Text


@dataclass
class Ran:
    """What a run has come to, at rank 0.

    Args:
        ends_s: when each step ended, shape (steps,); samples: that entered an update in it.
        measured: of each rank.
        weights: of each rank at the end; what it has dropped is NaN.
    """

    ends_s: list[float]
    samples: list[float]
    measured: list[Measured]
    weights: list[np.ndarray]

    @property
    def step_s(self) -> float:
        """Mean seconds of a step, but for the first."""
        return (self.ends_s[-1] - self.ends_s[0]) / max(1, len(self.ends_s) - 1)


def run(comm, job: Job, text: Text, model: Chain) -> Ran | None:
    """Run a text on all ranks; what it has come to at rank 0, None elsewhere. Collective."""
    values = Values(job, model, text.data == "shared")
    world = MpiWorld(comm, job, text, values, common_clock(comm), core_s=time.thread_time)
    measured = world.run()
    every = comm.gather((measured, values.vectors[comm.rank]["weights"]))
    if every is None:
        return None
    ended = [of.ends_s for of, _ in every if of.ends_s]
    samples = every[0][0].samples
    samples.merge(of.samples for of, _ in every[1:])
    steps = max(map(len, ended), default=0)
    ends_s = [max(of[step] for of in ended if step < len(of)) for step in range(steps)]
    return Ran(ends_s, [samples.of(step) for step in range(steps)], *map(list, zip(*every, strict=True)))
