"""What one server more costs a step of TensorFlow's that sends it nothing: a call to it, and its threads. For calibration."""

from __future__ import annotations

import time

import numpy as np

from real.foreign.replica import ps
from real.foreign.tensorflow_ps import Runtime
from real.waiting import barrier

BLOCKS, CALLS, WARM_UP = 6, 200, 20


def measure(runtime: Runtime, comm) -> dict[str, float]:
    """Seconds that a session.run is longer, and processor seconds of all processes, with two servers instead of one.

    Collective: over the ranks of a launch that has two servers at least.
    """
    call = _caller(runtime) if runtime.tasks.is_chief else lambda servers: 0.0
    found = []
    for _ in range(BLOCKS):
        elapsed_s, used_s = zip(*(_block(comm, call, servers) for servers in (1, 2)), strict=True)
        found.append((elapsed_s[1] - elapsed_s[0], used_s[1] - used_s[0]))
    serial_s, processor_s = np.median(found, axis=0)
    return {"serial_s": max(0.0, float(serial_s)), "processor_s": max(0.0, float(processor_s))}


def _block(comm, call, servers: int) -> tuple[float, float]:
    """Seconds of a call at the chief, and processor seconds of all ranks for it."""
    barrier(comm)
    began_s = time.process_time()
    elapsed_s = call(servers)
    barrier(comm)
    used = comm.allgather((elapsed_s, time.process_time() - began_s))
    return max(e for e, _ in used) / CALLS, sum(u for _, u in used) / CALLS


def _caller(runtime: Runtime):
    """A function that calls 1 or 2 servers many times and returns the seconds."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        clocks = []
        for device in (f"/job:worker/task:{runtime.tasks.task}", ps(0), ps(1)):
            with tf.device(f"{device}/cpu:0"):
                clocks.append(tf.timestamp())
    session = runtime.plain_session(graph, servers=2)

    def call(servers: int) -> float:
        for _ in range(WARM_UP):
            session.run(clocks[: servers + 1])
        start_s = time.perf_counter()
        for _ in range(CALLS):
            session.run(clocks[: servers + 1])
        return time.perf_counter() - start_s

    return call
