"""A host at work in the event world."""

from __future__ import annotations

import simpy

from sim.cluster import Host, Link
from sim.event.cores import Cores
from sim.event.flows import Bucket
from sim.event.port import Port


class Machine:
    """Its cores, the two directions of its port, and the memory through which GPUs' gradients are added."""

    def __init__(
        self, env: simpy.Environment, index: int, host: Host, link: Link, turn_s: float, shared: Cores | None = None
    ):
        self.sent_s = self.received_s = 0.0  # for which messages took the two directions of its port
        self.index, self.gpus, self.speed, self.ranks = index, host.gpus, host.speed, 0
        self.cores = shared or Cores(env, host.cores, host.speed, host.contention, turn_s)
        self.egress, self.ingress, self.memory = Port(), Port(), Port()
        if link.fair:
            self.egress, self.ingress = (
                Bucket(link.bandwidth_bytes_per_s, link.burst_bytes, link.queue_bytes) for _ in range(2)
            )
