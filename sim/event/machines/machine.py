"""A host at work in the event world."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sim.event.clock import Clock
from sim.event.machines.cores import Cores
from sim.event.machines.flows import Bucket
from sim.event.machines.port import Port
from sim.event.machines.shared_gpu import SharedGpu
from sim.platform.cluster import Host, Link


class Machine:
    """A host's cores, the two directions of its port, and the memory through which its GPUs' gradients are added.

    Args:
        speed, contention: of this run, see sim.platform.cluster.Host.
        shared: the cores of all hosts, if these are one machine.
    """

    def __init__(
        self, env: Clock, index: int, host: Host, speed: float, contention: float, link: Link, turn_s: float,
        shared: Cores | None = None,
    ):  # fmt: skip
        self.index, self.gpus, self.speed, self.count = index, host.gpus, speed, host.cores
        self._gpu = env, speed, host.switching
        self._shared_gpus: dict[int, SharedGpu] = {}
        self._own, self._shared = (env, host.cores, speed, contention, turn_s), shared
        self.egress: Any
        self.ingress: Any
        if link.fair:
            self.egress, self.ingress = (
                Bucket(link.bandwidth_bytes_per_s, link.burst_bytes, link.queue_bytes) for _ in range(2)
            )
        else:
            self.egress, self.ingress = Port(), Port()

    @property
    def busy_s(self) -> float:
        """Seconds for which messages took the busier direction of its port, or in which it earned their credit."""
        return max(self.egress.taken_s, self.ingress.taken_s)

    @cached_property
    def cores(self) -> Cores:
        """The cores; made when ranks share them for the first time."""
        return self._shared or Cores(*self._own)

    def shared_gpu(self, number: int) -> SharedGpu:
        """One of its GPUs that ranks share."""
        if number not in self._shared_gpus:
            self._shared_gpus[number] = SharedGpu(*self._gpu)
        return self._shared_gpus[number]

    @cached_property
    def memory(self) -> Port:
        """The memory, through which copies within the host pass one after another."""
        return Port()
