"""A scenario as a job of the language (sim.language).

The scenario's protocol tells how many servers there are; what the ranks do is the text's.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import repeat
from operator import itemgetter

import numpy as np

from sim.job.scenario import Scenario
from sim.language.hosts import TICK_S, Fair, Host, Windows
from sim.language.job import Job
from sim.language.layers import Layer, Rows
from sim.language.library import Library, Line
from sim.language.text import Text, require
from sim.laws import Constant, FoldedMixture, LogNormal
from sim.laws.base import Steps, joined
from sim.laws.randomness import Stream
from sim.model.costs import Line as ByBytes
from sim.model.nominal import CORE_BYTES_PER_S, CORE_FLOPS, TRAINING, layer_shares
from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.model.workload import Variable
from sim.platform.cluster import Link, Tcp

THREADS_TURN_S = 0.25e-3  # of a runtime whose threads hand work on to one another: its phases are many short tasks


class Drawn:
    """The random numbers of a scenario, as sim.language.job.Laws has them.

    Args:
        delay_std_s: of messages (sim.language.text.Text).
    """

    def __init__(self, scenario: Scenario, delay_std_s: float):
        self._scenario, self._draws = scenario, scenario.draws
        law = FoldedMixture.model_validate({"components": [{"mean_s": 0.0, "std_s": delay_std_s, "weight": 1}]})
        self._delay = law if delay_std_s else Constant(value=0.0)
        self._share = LogNormal(cv=scenario.network.unfairness)

    def sleeps(self, replication: int, worker: int, call: int = 0):
        """The sleeps of a worker by its number; call 1 and on are further sleeps of a round."""
        if not self._scenario.workers:  # a process alone has a master's number
            found = self._draws.sleeps(replication, 0, call)
            return Steps(found.first, found.sole)
        return self._draws.sleeps(replication, worker, call)

    def noises(self, replication: int, worker: int, of: str = "noise"):
        """The factors of a worker by its number on passes, with stragglers and the drift of its host, input or updates, delays, shares."""
        scenario, number = self._scenario, worker if self._scenario.workers else 0
        if of in ("delay", "share"):
            return Stream(self._delay if of == "delay" else self._share, scenario.seed, replication, worker, of)
        differ = not scenario.workers
        if of == "noise":
            host = scenario.hosts[min(scenario.rank_of(number), scenario.ranks - 1) if number else 0]
            parts = [self._draws.noise(replication, number), Steps(sole=self._draws.run_factor(replication, host))]
            differ = differ or scenario.stragglers.slows_computing or scenario.costs.run.sole is None
        else:
            law = getattr(scenario.costs, f"{of}_noise")
            parts = [Stream(law, scenario.seed, replication, number, of), self._draws.common(replication, of)]
        found = joined(parts, np.multiply, 1.0)
        return Steps(found.first, found.sole) if differ else found  # no stream: those of others may differ


def job_of(scenario: Scenario, text: Text, replication: int = 0) -> Job:
    """The job of a scenario.

    Raises:
        WrongSetting: naming what the job has and texts in the language do not have.
    """
    given = scenario.servers if scenario.workers else 0
    require(given == text.servers, "--servers", given, f"{text.servers} with {text.name}")
    costs, link, local, batch = scenario.costs, scenario.network, scenario.local, scenario.batch
    line, parts, loop_s = costs.compute, 1, 0.0
    if text.loops:  # whose micro-batches are turns of one loop in a graph
        parts, loop_s = getattr(text, text.micros), costs.loop_s
        line = costs.partition.model_copy(update={"base_s": parts * costs.partition.base_s})
    compute_s = line.base_s + line.slope_s * batch  # of a minibatch, if there is no floor
    to_device_s, to_host_s = scenario.traffic.copies_s
    layers = layers_of(scenario, text, compute_s + (0.0 if text.joins else to_device_s + to_host_s))
    header_bytes = HEADER_BYTES if scenario.servers else 0  # which are added and updated, too
    servers = scenario.servers
    updates = len(layers) / servers if text.layerwise else 1  # of a server in a step
    shares = [(size - HEADER_BYTES) // ITEM_BYTES for size in scenario.traffic.server_bytes] if servers > 1 else []
    takes_up = bool(servers) and not text.layerwise
    at = [0] * scenario.ranks if scenario.cluster.shared_cores else scenario.hosts  # whose speed a rank's cores have
    # Servers of layers have other threads that send and receive.
    overhead_s, others_s = (0.0, link.overhead_s) if text.layerwise else (link.overhead_s, 0.0)
    return Job(
        scenario.ranks,
        layers,
        scenario.rounds,
        scenario.warmup,
        batch,
        placement=tuple(scenario.hosts),
        kinds=tuple(host_of(scenario, index) for index in range(max(scenario.hosts) + 1)),
        one_machine=bool(scenario.cluster.shared_cores),
        poll_s=scenario.cluster.poll_s,
        oversleep_s=scenario.cluster.oversleep_s,
        background_s=costs.background(batch),
        speeds=tuple(scenario.machines[host].speed for host in at),
        latency_s=link.latency_s,
        overhead_s=overhead_s,
        gap_s=link.gap_s,
        bandwidth=link.bandwidth_bytes_per_s,
        sustained=link.sustained_bytes_per_s or math.inf,
        whole_messages=link.store_and_forward,
        windows=windows_of(link.tcp) if link.tcp else None,
        fair=fair_of(link, scenario.protocol.in_library) if link.fair else None,
        shared_ports=True,
        local_latency_s=local.latency_s,
        local_overhead_s=local.overhead_s + local.occupancy_s(0),
        local_bandwidth=local.bandwidth_bytes_per_s if local.by_port else math.inf,
        local_copy_s=0.0 if local.by_port else 1 / local.bandwidth_bytes_per_s,
        local_wakes=local.wakes,
        message_background_s=link.background_s,
        local_background_s=local.background_s,
        item_bytes=scenario.item_bytes,
        header_bytes=header_bytes,
        update_s=4 * costs.update.slope_s,
        update_base_s=costs.update.base_s / updates + costs.update.slope_s * HEADER_BYTES,
        update_cold_s=costs.update.cold_s,
        mix_s=4 * costs.reduce.slope_s,
        mix_base_s=costs.reduce(header_bytes) + others_s,
        rows_s=4 * costs.reduce_rows.slope_s if costs.reduce_rows else None,
        rows_base_s=costs.reduce_rows(header_bytes) if costs.reduce_rows else None,
        fixed=0.0 if text.loops or not compute_s else line.base_s / compute_s,
        least=line.floor_s / compute_s if compute_s else 0.0,
        loop_s=loop_s,
        cold_s=line.cold_s,
        input_s=costs.input(batch),
        resume_s=costs.resume_s,
        to_device_s=to_device_s if text.joins else 0.0,
        copied_at_once=text.loops,
        pack_s=costs.pack(scenario.traffic.packed_bytes) + to_host_s if text.joins else 0.0,
        take_up_base_s=costs.take_up(HEADER_BYTES) if takes_up else 0.0,
        take_up_s=4 * costs.take_up.slope_s if takes_up else 0.0,
        library=Library(
            in_items(costs.call), in_items(costs.pack), costs.agree_s, costs.negotiate_s, scenario.algorithm("auto")
        ),
        flops=flops_of(scenario),
        memory_bandwidth=1 / costs.reduce.slope_s if costs.reduce.slope_s else CORE_BYTES_PER_S,
        evaluate_s=costs.evaluate(scenario.test_size) if scenario.test_size else 0.0,
        evaluate_every=scenario.evaluate_every,
        shares=tuple(shares),
        laws=Drawn(scenario, text.delay_std_s),
        seed=scenario.seed,
        replication=replication,
    )


def windows_of(tcp: Tcp) -> Windows:
    """The windows of all connections between two ranks, over which a message is spread evenly."""
    return Windows(tcp.initial_window_bytes * tcp.connections, tcp.window_bytes * tcp.connections)


def fair_of(link: Link, in_library: bool) -> Fair:
    """How messages share the ports of a fair link."""
    eager_bytes = math.inf if link.eager_bytes is None else link.eager_bytes
    return Fair(link.ramp_bytes, link.burst_bytes, link.queue_bytes, link.buffer_bytes, eager_bytes, in_library)


def host_of(scenario: Scenario, index: int) -> Host:
    """A host of a scenario by its index in the cluster's machines."""
    host, turn_s = scenario.machines[index], THREADS_TURN_S if scenario.threaded else TICK_S
    return Host(scenario.cluster.shared_cores or host.cores, turn_s, host.contention, host.gpus, host.switching)


def in_items(line: ByBytes) -> Line:
    """A line by bytes as one by items."""
    return Line(line.base_s, ITEM_BYTES * line.slope_s, line.floor_s)


def layers_of(scenario: Scenario, text: Text, compute_s: float) -> tuple[Layer, ...]:
    """A layer for each variable; where rows travel, those that are summed come first, and then each part that a server holds.

    Args:
        compute_s: seconds of a minibatch's gradient, of which each layer takes as much as it has of all items; or all alike where they
            travel one by one.
    """
    held: list[tuple[Variable, int | None]]
    if text.layerwise:
        rows = scenario.traffic.sends_rows
        held = [(one if rows else without_rows(one), server) for one, server in scenario.traffic.placed]
    elif scenario.traffic.sends_rows:
        held = [*zip(scenario.summed, repeat(None)), *sorted(scenario.traffic.placed, key=itemgetter(1))]
    elif scenario.gathered_variables:
        held = [*zip([*scenario.summed, *scenario.gathered_variables], repeat(None))]
    else:
        held = [*zip(map(without_rows, scenario.workload.variables), repeat(None))]
    weights = [1 if text.layerwise else one.size for one, _ in held]
    backward = layer_shares(weights, getattr(text, "order", "parameters"))
    of_forward = compute_s * (1 - sum(backward)) / sum(weights)
    return tuple(
        Layer(
            one.size,
            of_forward * weight,
            compute_s * last,
            one.activation_items,
            rows=Rows(one.shape[0], touched(one, scenario.batch)) if one.rows else None,
            server=server,
        )
        for (one, server), weight, last in zip(held, weights, backward, strict=True)
    )


def flops_of(scenario: Scenario) -> float:
    """Operations/s of other work: those that the model's passes reach, or a nominal core's."""
    line, flops = scenario.costs.compute, scenario.workload.flops_per_sample
    return TRAINING * flops / line.slope_s if flops and line.slope_s else CORE_FLOPS


def without_rows(variable: Variable) -> Variable:
    """A variable whose gradient is dense."""
    return variable.model_copy(update={"rows": None}) if variable.rows else variable


def touched(variable: Variable, batch: int):
    """How many rows so many minibatches touch together, as a function."""
    return cache(lambda minibatches: variable.load(batch, minibatches).rows)
