"""The least that a step takes, in closed form: what a search throws out by it cannot have been the answer.

Counted are the computing of a gradient and the bytes that the busiest port has to pass; not counted are sleeps, waiting, latency, sums and
updates. The bound of an allreduce is that of any algorithm: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations", JPDC 2009, section 3.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.answers import growth
from sim.model.workload import ITEM_BYTES
from sim.protocols import is_ours

if TYPE_CHECKING:
    from sim.job.scenario import Scenario

UNLUCKY = 0.05  # share of computing that may be faster where a job does not wait for its slowest rank


class Least(NamedTuple):
    """The least time of one step: the larger of computing + serial_s and port_s.

    Args:
        samples: the largest number that it sums.
        compute_s: seconds of computing, in which no message of serial_s travels.
        serial_s: seconds of messages before or after that.
        port_s: seconds that the busiest port passes bytes.
    """

    samples: float
    compute_s: float
    serial_s: float
    port_s: float

    def samples_per_s(self, factor: float = 1.0) -> float:
        """At most, where computing takes longer by a factor."""
        step_s = max(factor * self.compute_s + self.serial_s, self.port_s)
        return self.samples / step_s if step_s else math.inf


def least(scenario: Scenario, batch: int | None = None) -> Least:
    """The least that one step takes at a typical speed of the hosts, with another batch than the scenario's if one is given.

    Beyond a table's sizes a step may take as little as at the largest (sim.answers.growth).
    """
    batch = batch or scenario.batch
    found, grown = _simulated(scenario, batch), growth.of(scenario)
    if grown is None:
        return found
    if largest := growth.at_largest(job := replace(scenario, batch=batch)):
        there = (growth.by_samples(job, largest) * seconds for seconds in least(largest)[1:])
        found = max(found, Least(found.samples, *there), key=Least.samples_per_s)
    times = min(1.0, math.exp(growth.off_of(largest or job, grown)))
    return Least(found.samples, *(times * seconds for seconds in found[1:]))


def port_s(scenario: Scenario) -> float:
    """Seconds that the busiest port passes the bytes of a step in one direction, in the long run, if every worker contributes once."""
    network = scenario.network
    at_once_s = _summed_s(scenario) + Ports.of(scenario).both_bytes / network.bandwidth_bytes_per_s
    return at_once_s / _long_run(scenario)


def _long_run(scenario: Scenario) -> float:
    """Of a port's speed, the share that is left once it has used up its credit."""
    network = scenario.network
    return min(1.0, (network.sustained_bytes_per_s or math.inf) / network.bandwidth_bytes_per_s)


def _simulated(scenario: Scenario, batch: int) -> Least:
    protocol, (samples, compute_s) = scenario.protocol, _computing(scenario, batch)
    # Every worker computes a minibatch of its own, and all sum by a named algorithm or send to servers.
    sums = not protocol.masterless or hasattr(protocol, "algorithm")
    if not (is_ours(protocol) and protocol.text_class.data == "own" and sums):
        return Least(samples, 0.0, 0.0, 0.0)
    per_s, ports = scenario.network.bandwidth_bytes_per_s, Ports.of(scenario)
    one_s = ports.one_bytes / per_s
    if protocol.by_arrival:
        travels_s = 0.0 if protocol.overlaps or not protocol.has_servers else 2 * one_s
        served_s = ports.by_arrival_s(per_s * _long_run(scenario), compute_s, scenario.workers)
        return Least(samples, compute_s, travels_s, served_s)
    serial_s = 0.0 if protocol.overlaps else _summed_s(scenario) + ports.most_bytes / per_s + one_s
    return Least(samples, compute_s, serial_s, port_s(scenario))


def _computing(scenario: Scenario, batch: int) -> tuple[float, float]:
    """Samples of a step at most, and seconds of computing at least."""
    costs, protocol = scenario.costs, scenario.protocol
    hosts = scenario.hosts[scenario.servers :] or scenario.hosts
    speeds = [scenario.machines[host].speed for host in hosts]
    speed = sum(speeds) / len(speeds) if protocol.by_arrival else min(speeds)
    of_hosts = costs.run.sole
    if of_hosts is None:
        of_hosts = min(scenario.draws.run_factor(0, host) for host in {*scenario.hosts})
    samples, work_s = float(batch), costs.compute(batch)
    parts: Any = getattr(protocol, "partitions", None)
    limit_s: Any = getattr(protocol, "time_limit_s", None)
    if parts and limit_s is not None and protocol.text_class.loops:
        part = batch // parts
        part_s = costs.partition(part) * (1 - UNLUCKY) / speed
        turns = min(parts, 1 + limit_s / part_s) if part_s else parts
        samples, work_s = part * turns, (costs.loop_s / speed + turns * part_s) * speed
    lucky = 1 - UNLUCKY if protocol.by_arrival else 1.0
    return max(1, scenario.workers) * samples, work_s / speed * min(1.0, of_hosts) * lucky


class Ports(NamedTuple):
    """The bytes of parameters, or of gradients, that pass ports in a step, in either direction.

    Args:
        servers: of each host with servers, the bytes of one worker and the workers that are on that host.
        most_bytes: of the busiest port, if every worker contributes once.
        one_bytes: of a worker's own messages, at least.
        both_bytes: of the busiest port, of parameters that its servers send and gradients that its workers send.
    """

    servers: tuple[tuple[float, int], ...] = ()
    most_bytes: float = 0.0
    one_bytes: float = 0.0
    both_bytes: float = 0.0

    @classmethod
    def of(cls, scenario: Scenario) -> Ports:
        """The bound of a scenario; none if servers pass rows, because their number is unknown."""
        if not scenario.served or scenario.traffic.sends_rows or not scenario.workers:
            return cls()
        hosts, sizes = scenario.hosts, scenario.traffic.server_bytes
        receivers = Counter(hosts[sender] for sender in scenario.senders)
        held: Counter[int] = Counter()
        for server, size_bytes in enumerate(sizes):
            held[hosts[server]] += size_bytes
        served = {host: size_bytes * (receivers.total() - receivers[host]) for host, size_bytes in held.items()}
        pushed = {host: count * (held.total() - held[host]) for host, count in receivers.items()}
        beside = scenario.servers > 1 or any(host in receivers for host in held)
        return cls(
            tuple((size_bytes, receivers[host]) for host, size_bytes in held.items()),
            max(*served.values(), *pushed.values()),
            0.0 if beside else min(sizes),
            max(served.get(host, 0) + pushed.get(host, 0) for host in {*served, *pushed}),
        )

    def by_arrival_s(self, bytes_per_s: float, compute_s: float, workers: int) -> float:
        """Seconds of so many gradients, whosever: those of a server's own host need not pass its port."""
        found = 0.0
        for size_bytes, beside in self.servers:
            of_beside = beside / compute_s if compute_s else math.inf
            found = max(found, workers / (bytes_per_s / size_bytes + of_beside) if size_bytes else 0.0)
        return found


def _summed_s(scenario: Scenario) -> float:
    """Seconds of an allreduce that is optimal, and that it takes a port."""
    count = len(set(scenario.hosts[scenario.servers :]))
    if scenario.workers < 2 or not scenario.summed_items:
        return 0.0
    return 2 * (count - 1) / count * scenario.summed_items * ITEM_BYTES / scenario.network.bandwidth_bytes_per_s
