"""A scenario as a job of the language (sim.language), and what its event world says of it.

The scenario's protocol tells how many servers there are; what the ranks do is the text's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sim.answers.outcome import Outcome
from sim.job.scenario import Scenario
from sim.language import event
from sim.language.job import Job, Layer, Result
from sim.language.links import Fair, Windows
from sim.language.text import Text, require
from sim.laws import LogNormal
from sim.laws.randomness import Stream
from sim.model.sizes import HEADER_BYTES
from sim.platform.cluster import Link
from sim.platform.tcp import Tcp
from sim.verbs.me import FORWARD_SHARE

LOOPED = "partitions"  # the setting of texts whose micro-batches are turns of one loop in a graph


class Drawn:
    """The random numbers of a scenario, as sim.language.job.Laws has them."""

    def __init__(self, scenario: Scenario):
        self.sleeps, self.noises = scenario.draws.sleeps, scenario.draws.noise
        self._shares = LogNormal(cv=scenario.network.unfairness), scenario.seed

    def weights(self, replication: int, worker: int) -> Stream:
        """See sim.language.job.Laws."""
        return Stream(*self._shares, replication, worker, "share")


def run(scenario: Scenario, text: Text, replication: int = 0) -> Outcome:
    """One run of a scenario whose ranks follow a text.

    Raises:
        WrongSetting: the job has what texts in the language do not have.
        RunFailed: the text waits for ever, or does what no world can run.
    """
    return outcome_of(scenario, event.run(job_of(scenario, text, replication), text))


def outcome_of(scenario: Scenario, found: Result) -> Outcome:
    """What a run of a scenario's job comes to."""
    warmup = scenario.warmup
    step_s = np.diff(found.ends_s, prepend=0.0)[warmup:]
    idle = np.array(found.idle_s) / np.maximum(found.own_s, np.finfo(float).tiny)
    return Outcome(step_s[None], np.array(found.samples[warmup:])[None], idle[None], warmup=warmup)


def job_of(scenario: Scenario, text: Text, replication: int = 0) -> Job:
    """The job of a scenario.

    Raises:
        WrongSetting: naming what the job has and texts in the language do not have.
    """
    for setting, value, allowed in lacking(scenario, text):
        require(not value, setting, value, f"{allowed} with {text.name}, a text in the language of named vectors")
    costs, link, local, batch = scenario.costs, scenario.network, scenario.local, scenario.batch
    compute_s, fixed, input_s = costs.compute(batch), costs.compute.base_s / costs.compute(batch), costs.input(batch)
    if text.micros == LOOPED:
        parts = getattr(text, text.micros)
        compute_s, fixed, input_s = parts * costs.partition(batch // parts), 0.0, input_s + costs.loop_s
    sizes = [variable.size for variable in scenario.workload.variables]
    of_forward, of_backward = (compute_s * share / sum(sizes) for share in (FORWARD_SHARE, 1 - FORWARD_SHARE))
    per_host, host = scenario.hosts.count(scenario.hosts[0]), scenario.kinds[scenario.hosts[-1]]
    header_bytes = HEADER_BYTES if scenario.servers else 0  # which are added and updated, too
    drift = [scenario.draws.run_factor(replication, one) for one in scenario.hosts]
    return Job(
        scenario.ranks,
        tuple(Layer(size, of_forward * size, of_backward * size) for size in sizes),
        scenario.rounds,
        scenario.warmup,
        batch,
        per_host,
        cores=None if host.gpus or host.cores >= per_host else host.cores,
        in_turn=False,
        speeds=tuple(speed / factor for speed, factor in zip(scenario.speeds, drift, strict=True)),
        latency_s=link.latency_s,
        overhead_s=link.overhead_s,
        gap_s=link.gap_s,
        bandwidth=link.bandwidth_bytes_per_s,
        sustained=link.sustained_bytes_per_s or math.inf,
        whole_messages=link.store_and_forward,
        windows=windows_of(link.tcp) if link.tcp else None,
        fair=fair_of(link) if link.fair else None,
        shared_ports=True,
        local_latency_s=local.latency_s + local.overhead_s + local.gap_s,
        local_bandwidth=local.bandwidth_bytes_per_s,
        item_bytes=scenario.item_bytes,
        header_bytes=header_bytes,
        update_s=4 * costs.update.slope_s,
        update_base_s=costs.update(HEADER_BYTES),
        mix_s=4 * costs.reduce.slope_s,
        mix_base_s=costs.reduce(header_bytes),
        fixed=fixed,
        input_s=input_s,
        pack_s=costs.pack(scenario.traffic.packed_bytes),
        take_up_s=4 * costs.take_up.slope_s if scenario.servers else 0.0,
        evaluate_s=costs.evaluate(scenario.test_size) if scenario.test_size else 0.0,
        evaluate_every=scenario.evaluate_every,
        laws=Drawn(scenario),
        seed=scenario.seed,
        replication=replication,
    )


def windows_of(tcp: Tcp) -> Windows:
    """The windows of all connections between two ranks, over which a message is spread evenly."""
    return Windows(tcp.initial_window_bytes * tcp.connections, tcp.window_bytes * tcp.connections)


def fair_of(link: Link) -> Fair:
    """How messages share the ports of a fair link."""
    eager_bytes = math.inf if link.eager_bytes is None else link.eager_bytes
    return Fair(link.ramp_bytes, link.burst_bytes, link.queue_bytes, link.buffer_bytes, eager_bytes)


def lacking(scenario: Scenario, text: Text) -> Iterator[tuple[str, object, str]]:
    """What a text in the language cannot have: the setting, its value in this job (nothing if it is right), and what is allowed."""
    cluster, link, local, costs = scenario.cluster, scenario.network, scenario.local, scenario.costs
    rows = [variable.name for variable in scenario.workload.variables if variable.rows]
    each = scenario.hosts.count(scenario.hosts[0])
    yield "--servers", scenario.servers if scenario.servers != text.servers else 0, str(text.servers)
    yield "--workload: rows", rows, "dense variables"
    yield (
        "--workload",
        scenario.workload.name if text.name == "pipeline" else "",
        "a model that says the sizes of its layers' inputs",
    )
    yield (
        "--cluster: hosts",
        cluster.name if scenario.hosts != [rank // each for rank in range(scenario.ranks)] else "",
        "as many ranks each",
    )
    yield "--cluster: network: background_s", link.background_s, "none"
    yield "--cluster: local: wakes", local.wakes, "false"
    yield "--cluster: poll_s", cluster.poll_s, "0"
    yield "--cluster: oversleep_s", cluster.oversleep_s, "0"
    yield "--cluster: hosts: gpus", scenario.gpus_shared, "one for each worker"
    for kind in scenario.kinds:
        yield "--cluster: hosts: contention", kind.contention, "0"
    for name in ("input", "compute", "partition", "update"):
        yield f"costs: {name}: cold_s", getattr(costs, name).cold_s, "0"
    for name in ("resume_s", "agree_s", "negotiate_s"):
        yield f"costs: {name}", getattr(costs, name), "0"
    for name in ("background", "call", "to_device", "to_host"):
        yield f"costs: {name}", any(getattr(costs, name).model_dump().values()), "0"
    for name in ("input_noise", "update_noise", "common_noise", "common_input_noise", "common_update_noise"):
        yield f"costs: {name}", getattr(costs, name).sole is None, "none"
