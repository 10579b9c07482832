"""GPUs whose ranks compute in time slices: what sim.event.machines.shared_gpu does, on arrays."""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.cores import EPSILON
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import GO, GPU_TIMER, ROUND_OFF_S, TIMERS


@compiled
def pace(gpu):
    """The pace of each rank that computes; 1 is a rank that has the GPU to itself."""
    return min(1.0, 1.0 / (gpu.works * (1 + gpu.switching))) if gpu.works > 1 else 1.0


@compiled
def advance(S, gpu):
    """Advance all that compute to now."""
    if gpu.works > 0:
        gpu.progress_s += (S.now_s - gpu.updated_s) * pace(gpu)
    gpu.updated_s = S.now_s


@compiled
def wake(S, g):
    """Set the timer for the first that ends; an earlier timer is then stale."""
    gpu = state.gpu(S, g)
    gpu.timer = (gpu.timer + 1) & TIMERS
    if gpu.works > 0:
        left_s = max(0.0, state.gpu_work(S, g, 0).end_s - gpu.progress_s) / pace(gpu)
        schedule(S, S.now_s + left_s, GPU_TIMER, g, gpu.timer)


@compiled
def compute_on(S, g, seconds, s):
    """A GPU gives a strand so many seconds, of a GPU of speed 1; then it goes on. Works are kept in the order in which they end."""
    gpu = state.gpu(S, g)
    advance(S, gpu)
    end_s, at = gpu.progress_s + seconds / gpu.speed, gpu.works
    while at > 0 and state.gpu_work(S, g, at - 1).end_s > end_s:
        work, before = state.gpu_work(S, g, at), state.gpu_work(S, g, at - 1)
        work.end_s, work.strand = before.end_s, before.strand
        at -= 1
    work = state.gpu_work(S, g, at)
    work.end_s, work.strand = end_s, s
    gpu.works += 1
    wake(S, g)


@compiled
def end_works(S, g, timer):
    """Those that have computed all go on."""
    gpu = state.gpu(S, g)
    if timer != gpu.timer:
        return
    advance(S, gpu)
    least_s = gpu.progress_s + max(ROUND_OFF_S, S.now_s * EPSILON, gpu.progress_s * EPSILON)
    ended = 0
    while ended < gpu.works and state.gpu_work(S, g, ended).end_s <= least_s:
        ended += 1
    for at in range(ended):
        schedule(S, S.now_s, GO, state.gpu_work(S, g, at).strand, 0)
    gpu.works -= ended
    for at in range(gpu.works):
        work, after = state.gpu_work(S, g, at), state.gpu_work(S, g, at + ended)
        work.end_s, work.strand = after.end_s, after.strand
    wake(S, g)
