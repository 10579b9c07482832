"""The job that all engines simulate: fixed minibatches, with contention at the master's port."""

from __future__ import annotations

import math
from dataclasses import dataclass

COMPUTE_S, CV = 1.0, 0.25  # mean of a worker's computation, and its standard deviation over the mean
PASSING_S = 4.0  # in which the messages of all workers pass the master's port one way
UPDATE_S = 0.05


@dataclass(frozen=True)
class Job:
    """One run.

    In a step the master sends a message to every worker; they leave its port one after another. Each worker computes for a random
    time (log-normal) and sends a message back. The master's port receives these one after another, in order of arrival, and can do so
    while the port still sends. When it has received all, the master updates, and the next step begins.

    Args:
        workers: ranks besides the master.
        steps: of the master.
        seed: of the random times.
    """

    workers: int
    steps: int
    seed: int = 0

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
