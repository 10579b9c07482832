"""Numbers of a run: what does not change, and counters that do not begin at 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sim.event.ranks.amounts import Amounts
from sim.protocols import is_ours
from sim.worlds.time_budget import Patience

if TYPE_CHECKING:
    from sim.engine.arrays.shape import Shape


def constants(job: Shape) -> dict[str, float]:
    """Numbers that do not change: layout.CONSTANTS."""
    of = job.scenario
    link, local, cluster = of.network, of.local, of.cluster
    amounts, costs = Amounts(of), of.costs
    integers = {
        "layered": job.layered, "rings": job.rings,
        "variables": job.variables, "ranks": of.ranks, "first": of.servers, "polls": cluster.poll_s > 0,
        "cores_suffice": job.cores_suffice, "in_library": of.protocol.in_library,
        "counts_updates": of.protocol.counts_updates,
        "stores": link.store_and_forward,
        "nothing": of.summed_items + 1, "local_wakes": local.wakes, "threaded": of.threaded, "layerwise": of.protocol.layerwise,
        "rounds": of.rounds, "warm_ends": of.warmup * of.updates_per_step,
        "meters": job.meters, "least_ends": Patience(of).least_warmup * of.updates_per_step, "in_parts": of.traffic.in_parts,
        "most_minibatches": job.most_minibatches, "own": not is_ours(of.protocol), "all_ranks": of.by_all_ranks,
        "evaluate_every": of.evaluate_every if of.test_size else 0, "fair": link.fair, "tcp": link.tcp is not None,
    }  # fmt: skip
    floats = {
        "latency_s": link.latency_s, "overhead_s": link.overhead_s, "gap_s": link.gap_s,
        "bandwidth": link.bandwidth_bytes_per_s, "credit": 1 / (link.sustained_bytes_per_s or math.inf),
        "local_latency_s": local.latency_s, "local_overhead_s": local.overhead_s, "local_gap_s": local.gap_s,
        "local_bandwidth": local.bandwidth_bytes_per_s, "oversleep_s": cluster.oversleep_s, "poll_s": cluster.poll_s,
        "background_s": costs.background(of.batch), "link_background_s": link.background_s, "local_background_s": local.background_s,
        "evaluate_s": costs.evaluate(of.test_size) if of.test_size else 0.0, "resume_s": of.costs.resume_s,
        "batch": of.batch, "model_bytes": of.traffic.to_device_bytes(0),
        "sample_bytes": of.traffic.to_device_bytes(1) - of.traffic.to_device_bytes(0),
        "input_s": amounts.input_s,
        "to_device_s": amounts.to_device_s, "compute_s": amounts.compute_s, "pack_s": amounts.pack_s,
        "to_host_s": amounts.to_host_s, "loop_s": costs.loop_s, "agree_s": costs.agree_s,
        "negotiate_s": costs.negotiate_s * (of.workers > 1),
        "fusion_bytes": getattr(of.protocol, "fusion_bytes", 0), "buffer_bytes": link.buffer_bytes, "ramp_bytes": link.ramp_bytes,
        "eager_bytes": math.inf if link.eager_bytes is None else link.eager_bytes,
        "forward": 1 - sum(job.shares),
    }  # fmt: skip
    if link.tcp:
        floats |= {"window_bytes": link.tcp.initial_window_bytes * link.tcp.connections, "trip_s": 2 * link.latency_s,
                   "most_window_bytes": link.tcp.window_bytes * link.tcp.connections}  # fmt: skip
    return integers | floats


def counters(job: Shape) -> dict[str, float]:
    """Counters that do not begin at 0."""
    ranks, flows = job.scenario.ranks, job.most if job.scenario.network.fair else 1
    return {"alive": ranks, "todo": ranks, "free_flows": flows, "backgrounds_left": job.backgrounds}
