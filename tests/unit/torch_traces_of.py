"""Traces as torch.profiler writes them of a GPU (schema of Kineto), of planted times."""

import json
from pathlib import Path

MILLI = 1e3  # in microseconds
BEGAN = 4_709_128_396_878.0  # a clock of the host
FORWARD, BACKWARD, UPDATE, IDLE = 10 * MILLI, 20 * MILLI, 2 * MILLI, 1 * MILLI
BYTES = {"Float": 4, "Half": 2, "BFloat16": 2}
RUNS_AHEAD = 0.5 * MILLI  # of the CPU, before its kernels run


def ring_us(size: int, ranks: int, latency_us: float, bytes_per_us: float) -> float:
    """Patarasuk and Yuan (2009)."""
    return 2 * (ranks - 1) * (latency_us + size / ranks / bytes_per_us)


def trace(
    rank: int,
    world: int,
    buckets: list[int],
    steps: int = 6,
    slow: float = 1.0,
    latency_us: float = 20.0,
    bytes_per_us: float = 1250.0,
    hidden: bool = True,
    sizes: bool = True,
    dtype: str = "Float",
    micro_batches: int = 1,
    loading: float = 0.0,
) -> dict:
    """Of one rank: each step computes forward, backward and an update; buckets are reduced as backward makes them, evenly, or after it.

    Args:
        buckets: items of each.
        slow: a factor on this rank's computing.
        sizes: whether calls say their bytes, as newer versions do.
        dtype: of the gradients that are summed.
        micro_batches: profiler steps of a step, of which the last reduces.
        loading: microseconds at the begin of a profiler step in which nothing runs.
    """
    events: list[dict] = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]
    now, correlation = BEGAN, 0

    def launched(name: str, at: float, lasts: float, stream: int, **args) -> float:
        nonlocal correlation
        correlation += 1
        about = {"correlation": correlation, "stream": stream, "device": 0}
        events.append(event("cuda_runtime", "cudaLaunchKernel", at - RUNS_AHEAD, 5.0, correlation=correlation))
        events.append(event("kernel", name, at, lasts, **about, **args))
        return at + lasts

    for step in range(steps):
        began = now
        reduces = world > 1 and (step + 1) % micro_batches == 0
        free = launched("ampere_sgemm_128x64_nn", began + loading + RUNS_AHEAD, FORWARD * slow, 7)
        backward = free
        free = reduced = launched("void cutlass::Kernel<cutlass_80_gemm>", backward, BACKWARD * slow, 7)
        for number, items in enumerate(buckets if reduces else (), 1):
            about = {"Collective name": "allreduce", "In msg nelems": items, "dtype": dtype, "Group size": world}
            ready = backward + BACKWARD * slow * (number / len(buckets) if hidden else 1.0)
            at = ready if number == 1 else max(ready, reduced)
            lasts = ring_us(BYTES[dtype] * items, world, latency_us, bytes_per_us)
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
            reduced = launched(name, at, lasts, 20, **about if sizes else {})
        free = max(free, reduced)
        free = launched("multi_tensor_apply_kernel", free, UPDATE, 7)
        now = free + IDLE - RUNS_AHEAD
        events.append(event("user_annotation", f"ProfilerStep#{step + 3}", began, now - began))
        events.append(event("gpu_user_annotation", f"ProfilerStep#{step + 3}", began + RUNS_AHEAD, free - began))
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world},
        "displayTimeUnit": "ms",
        "traceEvents": events,
        "traceName": f"rank{rank}.json",
    }


def event(kind: str, name: str, at: float, lasts: float, **args) -> dict:
    """A complete event."""
    when = {"ts": round(at, 3), "dur": round(lasts, 3)}
    return {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 1, "args": args} | when


def write(folder: Path, traces: list[dict]) -> list[Path]:
    """A file for each."""
    paths = [folder / f"rank{number}.json" for number in range(len(traces))]
    for path, one in zip(paths, traces, strict=True):
        path.write_text(json.dumps(one))
    return paths
