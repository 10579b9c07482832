"""A scenario as a job of the language (sim.language), and what its event world says of it.

The scenario's protocol tells how many servers there are; what the ranks do is the text's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim.answers.outcome import Outcome
from sim.job.scenario import Scenario
from sim.language import event
from sim.language.hosts import TICK_S, Host
from sim.language.job import Job, Layer, Result
from sim.language.text import Text, require
from sim.model.sizes import HEADER_BYTES
from sim.verbs.me import FORWARD_SHARE

THREADS_TURN_S = 0.25e-3  # of a runtime whose threads hand work on to one another: its phases are many short tasks
LOOPED = "partitions"  # the setting of texts whose micro-batches are turns of one loop in a graph


class Drawn:
    """The random numbers of a scenario, as sim.language.job.Laws has them."""

    def __init__(self, scenario: Scenario):
        self.sleeps, self.noises = scenario.draws.sleeps, scenario.draws.noise


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
    idle = np.array(found.idle_s) / max(step_s.sum(), np.finfo(float).tiny)
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
    to_device_s, to_host_s = scenario.traffic.copies_s
    header_bytes = HEADER_BYTES if scenario.servers else 0  # which are added and updated, too
    at = [0] * scenario.ranks if scenario.cluster.shared_cores else scenario.hosts  # whose speed a rank's cores have
    drift = [scenario.draws.run_factor(replication, one) for one in scenario.hosts]
    return Job(
        scenario.ranks,
        tuple(Layer(size, of_forward * size, of_backward * size) for size in sizes),
        scenario.rounds,
        scenario.warmup,
        batch,
        placement=tuple(scenario.hosts),
        kinds=tuple(host_of(scenario, index) for index in range(max(scenario.hosts) + 1)),
        one_machine=bool(scenario.cluster.shared_cores),
        poll_s=scenario.cluster.poll_s,
        oversleep_s=scenario.cluster.oversleep_s,
        background_s=costs.background(batch),
        call_base_s=costs.call.base_s,
        call_s=4 * costs.call.slope_s,
        speeds=tuple(scenario.machines[host].speed / factor for host, factor in zip(at, drift, strict=True)),
        latency_s=link.latency_s,
        overhead_s=link.overhead_s,
        gap_s=link.gap_s,
        bandwidth=link.bandwidth_bytes_per_s,
        shared_ports=True,
        local_latency_s=local.latency_s + local.overhead_s,
        local_bandwidth=local.bandwidth_bytes_per_s,
        item_bytes=scenario.item_bytes,
        header_bytes=header_bytes,
        update_s=4 * costs.update.slope_s,
        update_base_s=costs.update(HEADER_BYTES),
        mix_s=4 * costs.reduce.slope_s,
        mix_base_s=costs.reduce(header_bytes),
        fixed=fixed,
        input_s=input_s + to_device_s,
        pack_s=costs.pack(scenario.traffic.packed_bytes) + to_host_s,
        take_up_s=4 * costs.take_up.slope_s if scenario.servers else 0.0,
        evaluate_s=costs.evaluate(scenario.test_size) if scenario.test_size else 0.0,
        evaluate_every=scenario.evaluate_every,
        laws=Drawn(scenario),
        seed=scenario.seed,
        replication=replication,
    )


def host_of(scenario: Scenario, index: int) -> Host:
    """A host of a scenario by its index in the cluster's machines."""
    host, turn_s = scenario.machines[index], THREADS_TURN_S if scenario.threaded else TICK_S
    return Host(scenario.cluster.shared_cores or host.cores, turn_s, host.contention, host.gpus, host.switching)


def lacking(scenario: Scenario, text: Text) -> Iterator[tuple[str, object, str]]:
    """What a text in the language cannot have: the setting, its value in this job (nothing if it is right), and what is allowed."""
    link, local, costs = scenario.network, scenario.local, scenario.costs
    rows = [variable.name for variable in scenario.workload.variables if variable.rows]
    yield "--servers", scenario.servers if scenario.servers != text.servers else 0, str(text.servers)
    yield "--workload: rows", rows, "dense variables"
    yield (
        "--workload",
        scenario.workload.name if text.name == "pipeline" else "",
        "a model that says the sizes of its layers' inputs",
    )
    for name in ("fair", "tcp", "store_and_forward", "sustained_bytes_per_s", "background_s"):
        yield f"--cluster: network: {name}", getattr(link, name), "none"
    yield "--cluster: local: wakes", local.wakes, "false"
    for name in ("input", "compute", "partition", "update"):
        yield f"costs: {name}: cold_s", getattr(costs, name).cold_s, "0"
    for name in ("resume_s", "agree_s", "negotiate_s"):
        yield f"costs: {name}", getattr(costs, name), "0"
    for name in ("input_noise", "update_noise", "common_noise", "common_input_noise", "common_update_noise"):
        yield f"costs: {name}", getattr(costs, name).sole is None, "none"
