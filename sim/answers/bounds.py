"""The least that a step takes, in closed form: what a search throws out by it cannot have been the answer.

Counted are the computing of a gradient and the bytes that the busiest port has to pass; not counted are sleeps, waiting, latency, sums and
updates. Bounds of an allreduce: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009,
section 3; of a given algorithm they are its own moves.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.answers import candidates, growth
from sim.language.moves import moves
from sim.model.nominal import layer_shares
from sim.model.workload import ITEM_BYTES
from sim.protocols import is_ours

if TYPE_CHECKING:
    from sim.job.scenario import Scenario
    from sim.model.workload import Workload

UNLUCKY = 0.05  # share of computing that may be faster where a job does not wait for its slowest rank


class Least(NamedTuple):
    """The least time of one step: the larger of computing + serial_s and port_s; or the rest after overlap with calls.

    Args:
        samples: the largest number that it sums.
        compute_s: seconds of computing, in which no message of serial_s travels.
        serial_s: seconds of messages before or after that.
        port_s: seconds that the busiest port passes bytes.
        calls: sums of gradients while others are computed.
    """

    samples: float
    compute_s: float
    serial_s: float
    port_s: float
    calls: Calls | None = None

    def samples_per_s(self, factor: float = 1.0) -> float:
        """At most, where computing takes longer by a factor."""
        compute_s = factor * self.compute_s
        ended_s = self.calls.ended_s(compute_s) if self.calls else compute_s
        step_s = max(ended_s + self.serial_s, self.port_s)
        return self.samples / step_s if step_s else math.inf

    def times(self, factor: float) -> Least:
        """Where all seconds are so many times as long."""
        calls = self.calls and self.calls._replace(sum_s=tuple(factor * one for one in self.calls.sum_s))
        return Least(self.samples, factor * self.compute_s, factor * self.serial_s, factor * self.port_s, calls)


class Calls(NamedTuple):
    """Gradients that are summed while others are computed: each call sums those that have become ready during the last one.

    Args:
        ready: of each, the last variable's first, the share of computing after which it is there.
        sum_s: seconds of a call with it alone.
    """

    ready: tuple[float, ...]
    sum_s: tuple[float, ...]

    def ended_s(self, compute_s: float) -> float:
        """When all are summed, from the beginning of computing."""
        now_s, next_one, count = 0.0, 0, len(self.ready)
        while next_one < count:
            now_s = max(now_s, self.ready[next_one] * compute_s)
            begun_s = now_s
            while next_one < count and self.ready[next_one] * compute_s <= begun_s:
                now_s += self.sum_s[next_one]
                next_one += 1
        return max(now_s, compute_s)


def least(scenario: Scenario, batch: int | None = None) -> Least:
    """The least that one step takes, at a typical speed of the hosts; with another batch than the scenario's, if one is given."""
    return Bounds(scenario).least(batch or scenario.batch)


class Bounds:
    """The least that one step of a job takes, with each batch; what does not depend on the batch is worked out once.

    Args:
        scenario: of which the batch is of no account.
    """

    def __init__(self, scenario: Scenario):
        self._scenario = scenario
        network = scenario.network
        self._per_s = network.bandwidth_bytes_per_s
        # Of a port's speed, once it has used up its credit.
        self._long_run = min(1.0, (network.sustained_bytes_per_s or math.inf) / self._per_s)

    @cached_property
    def _summed_s(self) -> tuple[float, float]:
        return _summed(self._scenario) if self._scenario.summed_items and self._scenario.workers > 1 else (0.0, 0.0)

    @cached_property
    def _ports(self) -> Ports:
        return Ports.of(self._scenario)

    @cached_property
    def _calls(self) -> Calls:
        return _calls(self._scenario, self._summed_s[0])

    @cached_property
    def _at_largest(self) -> Bounds | None:
        job = growth.at_largest(self._scenario)
        return Bounds(job) if job else None

    def least(self, batch: int) -> Least:
        """At a typical speed of the hosts. Beyond a table's sizes a step may take as little as at the largest (sim.answers.growth)."""
        found, grown = self._simulated(batch), growth.of(self._scenario)
        if grown is None:
            return found
        if self._at_largest:
            smaller = self._at_largest.least(batch)._replace(samples=found.samples)
            found = max(found, smaller, key=Least.samples_per_s)
        return found.times(min(1.0, math.exp(grown.largest_off)))

    def _simulated(self, batch: int) -> Least:
        scenario, protocol, (sum_s, port_s) = self._scenario, self._scenario.protocol, self._summed_s
        samples, compute_s = self._computing(batch)
        if not self._known:
            return Least(samples, 0.0, 0.0, 0.0)
        if protocol.overlaps and protocol.masterless:
            return Least(samples, compute_s, 0.0, self.port_s, self._calls)
        one_s = self._ports.one_bytes / self._per_s
        if protocol.by_arrival:
            travels_s = 0.0 if protocol.overlaps or not protocol.has_servers else 2 * one_s
            served_s = self._ports.by_arrival_s(self._per_s * self._long_run, compute_s, scenario.workers)
            return Least(samples, compute_s, sum_s + travels_s, max(served_s, port_s / self._long_run))
        pull_s = self._ports.most_bytes / self._per_s
        if protocol.overlaps:
            return Least(samples, compute_s, 0.0, self.port_s)
        return Least(samples, compute_s, sum_s + pull_s + one_s, self.port_s)

    @property
    def _known(self) -> bool:
        """Whether every worker computes a minibatch of its own, and all sum by a named algorithm or send to servers."""
        protocol = self._scenario.protocol
        sums = not protocol.masterless or hasattr(protocol, "algorithm")
        return is_ours(protocol) and protocol.text_class.data == "own" and sums

    @property
    def port_s(self) -> float:
        """Seconds that the busiest port passes the bytes of a step in one direction, in the long run, if every worker contributes once."""
        return (self._summed_s[1] + self._ports.both_bytes / self._per_s) / self._long_run

    def _computing(self, batch: int) -> tuple[float, float]:
        """Samples of a step at most, and seconds of computing at least."""
        costs, protocol, speed = self._scenario.costs, self._scenario.protocol, self._speed
        samples, work_s = float(batch), costs.compute(batch)
        parts: Any = getattr(protocol, "partitions", None)
        limit_s: Any = getattr(protocol, "time_limit_s", None)
        if parts and limit_s is not None and protocol.text_class.loops:
            part = batch // parts
            part_s = costs.partition(part) * (1 - UNLUCKY) / speed
            turns = min(parts, 1 + limit_s / part_s) if part_s else parts
            samples, work_s = part * turns, (costs.loop_s / speed + turns * part_s) * speed
        lucky = 1 - UNLUCKY if protocol.by_arrival else 1.0
        return max(1, self._scenario.workers) * samples, work_s / speed * self._typical * lucky

    @cached_property
    def _speed(self) -> float:
        """Of the hosts with workers: of all where order of arrival matters, or else of the slowest."""
        scenario = self._scenario
        hosts = scenario.hosts[scenario.servers :] or scenario.hosts
        speeds = [scenario.machines[host].speed for host in hosts]
        return sum(speeds) / len(speeds) if scenario.protocol.by_arrival else min(speeds)

    @cached_property
    def _typical(self) -> float:
        """Factor on computing."""
        scenario = self._scenario
        if scenario.costs.run.sole is not None:
            of_hosts = scenario.costs.run.sole
        else:
            of_hosts = min(scenario.draws.run_factor(0, host) for host in {*scenario.hosts})
        return min(1.0, of_hosts)


def _calls(scenario: Scenario, sum_s: float) -> Calls:
    """The calls of variables in reverse order, as in sim.model.nominal; `sum_s` is of all together."""
    ready, sizes = _readiness(scenario.workload, getattr(scenario.protocol, "order", "parameters"))
    whole = sum(sizes)
    return Calls(ready, tuple(sum_s * size / whole for size in sizes))


@lru_cache(maxsize=64)
def _readiness(workload: Workload, order: str) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Shares of computing after which gradients are there, and their numbers, the last variable's first."""
    sizes = [variable.size for variable in workload.variables]
    shares = layer_shares(sizes, order)
    ready = accumulate(reversed(shares), initial=1 - sum(shares))
    return tuple(ready)[1:], tuple(reversed(sizes))


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
        hosts = scenario.hosts
        receivers = Counter(hosts[sender] for sender in scenario.senders)
        held: Counter[int] = Counter()
        for server, size_bytes in enumerate(scenario.traffic.server_bytes):
            held[hosts[server]] += size_bytes
        everywhere, whole = sum(receivers.values()), sum(held.values())
        served = {host: size_bytes * (everywhere - receivers[host]) for host, size_bytes in held.items()}
        pushed = {host: count * (whole - held[host]) for host, count in receivers.items()}
        busiest = [*served.values(), *pushed.values()]
        both_bytes = max(served.get(host, 0) + pushed.get(host, 0) for host in {*served, *pushed})
        beside = scenario.servers > 1 or any(host in receivers for host in held)
        one_bytes = 0.0 if beside else min(scenario.traffic.server_bytes)
        return cls(
            tuple((size_bytes, receivers[host]) for host, size_bytes in held.items()),
            max(busiest),
            one_bytes,
            both_bytes,
        )

    def by_arrival_s(self, bytes_per_s: float, compute_s: float, workers: int) -> float:
        """Seconds of so many gradients, whosever: those of a server's own host need not pass its port."""
        found = 0.0
        for size_bytes, beside in self.servers:
            rate = (
                bytes_per_s / size_bytes + (beside / compute_s if compute_s else math.inf) if size_bytes else math.inf
            )
            found = max(found, workers / rate)
        return found


def _summed(scenario: Scenario) -> tuple[float, float]:
    """Seconds of an allreduce, and those that it takes a port: of any that is optimal, and of this one's moves if all is one call."""
    if candidates.unknown(scenario):
        serial, port = zip(*map(_summed, candidates.of(scenario).values()), strict=True)
        return min(serial), min(port)
    hosts, items = tuple(scenario.hosts[scenario.servers :]), scenario.summed_items
    per_s = scenario.network.bandwidth_bytes_per_s
    count = len(set(hosts))
    any_s = 2 * (count - 1) / count * items * ITEM_BYTES / per_s
    protocol: Any = scenario.protocol
    if protocol.overlaps or not getattr(protocol, "fused", True) or not hasattr(protocol, "algorithm"):
        return any_s, any_s
    local_per_s = scenario.local.bandwidth_bytes_per_s
    serial_s, port_s = _exchanged_s(scenario.algorithm(protocol.algorithm), hosts, items, per_s, local_per_s)
    return max(any_s, serial_s, port_s), max(any_s, port_s)


@lru_cache(maxsize=4096)
def _exchanged_s(
    algorithm: str, hosts: tuple[int, ...], items: int, per_s: float, local_per_s: float
) -> tuple[float, float]:
    """Seconds of the moves of the ranks on the first host: of the busiest rank one after another, and of their port.

    The first may be more: a rank that sends, and then receives, waits for both, but either direction of its port passes one of them.
    """
    here = [rank for rank, host in enumerate(hosts) if host == hosts[0]]
    out_bytes = in_bytes = longest_s = 0.0
    for rank in here:
        now_s = left_s = 0.0  # and when all has left that was posted
        for move in moves(algorithm, rank, hosts, items):
            if move.to is not None:
                sent = move.bytes if hosts[move.to] != hosts[0] else 0
                out_bytes, left_s = out_bytes + sent, max(now_s, left_s) + sent / per_s
            elif move.frm is not None:
                away = hosts[move.frm] != hosts[0]
                in_bytes, now_s = in_bytes + move.bytes * away, now_s + move.bytes / (per_s if away else local_per_s)
            else:
                now_s = max(now_s, left_s)
        longest_s = max(longest_s, now_s)
    return longest_s, max(out_bytes, in_bytes) / per_s
