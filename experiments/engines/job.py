"""The jobs that all engines simulate: fixed minibatches, with contention at the master's port, and three without a master."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sim.language.rank import drawn

COMPUTE_S, CV = 1.0, 0.25  # mean of a worker's computation, and its standard deviation over the mean
PASSING_S = 4.0  # in which the messages of all workers pass the master's port one way
UPDATE_S = 0.05


@dataclass(frozen=True)
class Job:
    """One run.

    Of fmb: in a step the master sends a message to every worker; they leave its port one after another. Each worker computes for a random
    time (log-normal) and sends a message back. The master's port receives these one after another, in order of arrival, and can do so
    while the port still sends. When it has received all, the master updates, and the next step begins.

    Of the others: all ranks compute for a second. Those of ddp sum two buckets by rings, the first beside computing; those of local-sgd sum
    in every fourth step; those of d-psgd send all to a drawn rank.

    Args:
        workers: ranks, of fmb besides the master.
        steps: of the job.
        seed: of the random times, and of the draws.
        text: fmb, ddp, local-sgd or d-psgd.
    """

    workers: int
    steps: int
    seed: int = 0
    text: str = "fmb"

    @property
    def messages(self) -> float:
        """Messages of a worker in a step, in the mean."""
        of_ring = 2 * (self.workers - 1)
        return {"fmb": 1, "ddp": 2 * of_ring, "local-sgd": of_ring / 4, "d-psgd": 1}[self.text]

    @property
    def message_s(self) -> float:
        """Seconds that a message takes a port: a part of half the gradient, a part of all, or all."""
        return self.port_s * {"fmb": 1, "ddp": 1, "local-sgd": 2, "d-psgd": 2 * self.workers}[self.text]

    @property
    def shifts(self) -> list[int]:
        """How far away the peer is in each step of d-psgd."""
        return [1 + drawn(self.seed, 0, step) % (self.workers - 1) for step in range(self.steps)]

    @property
    def port_s(self) -> float:
        """Seconds that a message takes a port: contention is alike at every number of workers."""
        return PASSING_S / self.workers

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm of a computation's seconds."""
        return math.sqrt(math.log1p(CV**2))

    @property
    def mu(self) -> float:
        """Mean of that logarithm."""
        return math.log(COMPUTE_S) - self.sigma**2 / 2
