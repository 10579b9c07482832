"""The cost of one more server for a step of TensorFlow's: runs of a small model by one worker, with one server and two."""

from __future__ import annotations

import numpy as np

from real.servers.task_runner import TaskRunner
from sim import protocols
from sim.job.scenario import Scenario
from sim.model import workload
from sim.recording.traces import Trace

BLOCKS = 5  # each a run with one server and a run with two, because the processor drifts
STEPS = 80
PROTOCOLS = {"asynchronous": "ps-async", "synchronous": "ps-sync"}  # one for each way of updating


def measure(runtime: TaskRunner, comm, way: str) -> dict[str, float]:
    """Seconds that a step is longer, and processor seconds of all processes, with two servers instead of one.

    Collective: over the ranks of a launch that has two servers at least.
    """
    found = [np.subtract(*(_run(runtime, comm, way, servers) for servers in (2, 1))) for _ in range(BLOCKS)]
    serial_s, processor_s = np.median(found, axis=0)
    return {"serial_s": max(0.0, float(serial_s)), "processor_s": max(0.0, float(processor_s))}


def job(way: str, servers: int) -> Scenario:
    """The job of one worker, which never sleeps and whose step is messages alone."""
    return Scenario(
        protocols.make(PROTOCOLS[way]), workload.read("mlp"), batch=1, steps=STEPS, workers=1, servers=servers
    )


def _run(runtime: TaskRunner, comm, way: str, servers: int) -> tuple[float, float]:
    """Seconds of a step, the median, and processor seconds of one, at every rank."""
    trace = runtime.run(job(way, servers))
    costs = [found for found in comm.allgather(trace and of_step(trace)) if found]
    return costs[0]


def of_step(trace: Trace) -> tuple[float, float]:
    """Seconds from one step's begin to the next's, the median, and processor seconds of all processes for one."""
    header, rows = trace.header, trace.rows
    mine = rows[(rows["rank"] == header.servers) & (rows["step"] >= header.warmup)]
    begins_s = mine.groupby("step")["start_s"].min().sort_index().to_numpy()
    return float(np.median(np.diff(begins_s))), sum(header.cpu_s.values()) / len(begins_s)
