"""Cores of hosts that ranks share, as events: what sim.event.machines.cores does, on arrays.

A core serves its tasks in turns. An idle core takes over a waiting task after a tick. Polls of waiting ranks take cores too, and all
busy cores of a host have one pace. On a GPU that ranks share they compute in time slices (sim.event.machines.shared_gpu).
"""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import BALANCE, GO, GPU_TIMER, ROUND_OFF_S, TIMER, TIMERS

TICK_S, MOST_TURNS = 4e-3, 20
NOTHING = -1  # the kind of event after work that nobody waits for
EPSILON = 2.3e-16  # of a double


@compiled
def pace(group, busy, polls):
    """The pace of each busy core; 1 is a core that has its host to itself."""
    left = group.cores - min(polls, group.cores * 0.5)
    return min(1.0, left / busy) / (1 + group.contention * (min(busy + polls, group.cores) - 1))


@compiled
def pace_now(group):
    """The pace of a core that is busy."""
    return pace(group, max(1, group.busy), group.polls)


@compiled
def advance(S, c, rate):
    """Advance the task that has a core to now."""
    core = state.core(S, c)
    if core.tasks > 0:
        state.task(S, c, 0).left_s -= (S.now_s - core.updated_s) * rate
    core.updated_s = S.now_s


@compiled
def wake(S, c):
    """Set the timer for the end of the work, or of the turn, of the task that has a core."""
    core, first = state.core(S, c), state.task(S, c, 0)
    core.timer = (core.timer + 1) & TIMERS
    if core.tasks:
        group = state.group(S, core.group)
        lasts_s = first.left_s / pace(group, group.busy, group.polls)
        if core.tasks > 1:
            least_s = first.left_s
            for k in range(1, core.tasks):
                least_s = min(least_s, state.task(S, c, k).left_s)
            lasts_s = min(lasts_s, core.since_s + max(group.turn_s, least_s / MOST_TURNS) - S.now_s)
        schedule(S, S.now_s + max(0.0, lasts_s), TIMER, c, core.timer)


@compiled
def repace(S, g, busy, polls, besides):
    """Set the pace of all cores of a group but one anew, where so many were busy and so many polled before."""
    group = state.group(S, g)
    if busy == 0:
        return
    before = pace(group, busy, polls)
    if before != pace_now(group):
        for c in range(group.first, group.first + group.cores):
            if state.core(S, c).tasks > 0 and c != besides:
                advance(S, c, before)
                wake(S, c)


@compiled
def write(task, left_s, rank, strand, kind):
    """Write a task down."""
    task.left_s, task.rank, task.strand, task.kind = left_s, rank, strand, kind


@compiled
def move(S, c, k, to):
    """Write the k-th task of a core down at another place."""
    task = state.task(S, c, k)
    write(state.task(S, c, to), task.left_s, task.rank, task.strand, task.kind)


@compiled
def put(S, c, left_s, rank, strand, kind, since_s):
    """Put a task on a core; from `since_s` >= 0 on it goes on with the turn of the rank's earlier task."""
    core = state.core(S, c)
    g = core.group
    group = state.group(S, g)
    advance(S, c, pace_now(group))
    count, at = core.tasks, core.tasks
    if count == S.task_width:
        S.short = 1
        return
    if since_s >= 0.0:
        for k in range(count, 0, -1):
            move(S, c, k - 1, k)
        at = 0
    write(state.task(S, c, at), left_s, rank, strand, kind)
    core.tasks = count + 1
    if at == 0:
        core.since_s = S.now_s if since_s < 0.0 else since_s
    if count == 0:
        group.busy += 1
        repace(S, g, group.busy - 1, group.polls, c)
    wake(S, c)


@compiled
def least_busy(S, group, last):
    """The core with the fewest tasks: of several the rank's last one, or the first."""
    best = group.first
    for c in range(group.first, group.first + group.cores):
        fewer = state.core(S, c).tasks - state.core(S, best).tasks
        if fewer < 0 or (fewer == 0 and c == last):
            best = c
    return best


@compiled
def work(S, g, seconds, rank, strand, kind):
    """Work for some seconds of a core of speed 1; then an event of this kind happens to the strand. Rank S.ranks is a runtime's threads."""
    group, turn = state.group(S, g), state.turn(S, rank)
    left_s = seconds / group.speed
    if turn.core >= 0 and turn.done_s >= S.now_s:
        put(S, turn.core, left_s, rank, strand, kind, turn.since_s)
    else:
        put(S, least_busy(S, group, turn.core), left_s, rank, strand, kind, -1.0)


@compiled
def take_cores(S, g, more):
    """From now on polls of waiting ranks take so many cores more, or less."""
    group = state.group(S, g)
    before = group.polls
    group.polls = max(0.0, round(before + more, 9))
    if group.busy and pace(group, group.busy, before) != pace(group, group.busy, group.polls):
        repace(S, g, group.busy, before, -1)


@compiled
def take_over(S, c, other, k):
    """Move the k-th task of another core to this one."""
    advance(S, other, pace_now(state.group(S, state.core(S, c).group)))
    task = state.task(S, other, k)
    left_s, rank, strand, kind = task.left_s, task.rank, task.strand, task.kind
    remove(S, other, k)
    wake(S, other)
    put(S, c, left_s, rank, strand, kind, -1.0)


@compiled
def remove(S, c, k):
    """Take the k-th task from a core's queue."""
    core = state.core(S, c)
    core.tasks -= 1
    for i in range(k, core.tasks):
        move(S, c, i + 1, i)


@compiled
def end_turn(S, c, timer):
    """The work, or the turn, of the task that has a core is over."""
    core = state.core(S, c)
    if timer != core.timer:
        return
    advance(S, c, pace_now(state.group(S, core.group)))
    since_s, core.since_s = core.since_s, S.now_s
    task = state.task(S, c, 0)
    left_s, rank, strand, kind = task.left_s, task.rank, task.strand, task.kind
    remove(S, c, 0)
    if left_s > max(ROUND_OFF_S, S.now_s * EPSILON):
        write(state.task(S, c, core.tasks), left_s, rank, strand, kind)
        core.tasks += 1
    else:
        if rank != S.ranks:
            turn = state.turn(S, rank)
            turn.core, turn.done_s, turn.since_s = c, S.now_s, since_s
        if kind != NOTHING:
            schedule(S, S.now_s, kind, strand, 0)
        if core.tasks == 0:
            becomes_idle(S, c)
    wake(S, c)


@compiled
def becomes_idle(S, c):
    """A core has come to the end of its tasks; it takes over waiting work of other threads, or a rank's after a tick."""
    g = state.core(S, c).group
    group = state.group(S, g)
    group.busy -= 1
    repace(S, g, group.busy + 1, group.polls, -1)
    waiting = False
    for other in range(group.first, group.first + group.cores):
        for k in range(1, state.core(S, other).tasks):
            waiting = True
            if state.task(S, other, k).rank == S.ranks:
                take_over(S, c, other, k)
                return
    if waiting:
        schedule(S, S.now_s + TICK_S, BALANCE, c, 0)


@compiled
def balance(S, c):
    """Give an idle core a waiting task of the longest queue: the one with most work left."""
    group = state.group(S, state.core(S, c).group)
    longest = group.first
    for other in range(group.first + 1, group.first + group.cores):
        if state.core(S, other).tasks > state.core(S, longest).tasks:
            longest = other
    waiting = state.core(S, longest).tasks
    if state.core(S, c).tasks == 0 and waiting > 1:
        most = 1
        for k in range(2, waiting):
            if state.task(S, longest, k).left_s > state.task(S, longest, most).left_s:
                most = k
        take_over(S, c, longest, most)


@compiled
def gpu_pace(gpu):
    """The pace of each rank that computes; 1 is a rank that has the GPU to itself."""
    return min(1.0, 1.0 / (gpu.works * (1 + gpu.switching))) if gpu.works > 1 else 1.0


@compiled
def advance_gpu(S, gpu):
    """Advance all that compute to now."""
    if gpu.works > 0:
        gpu.progress_s += (S.now_s - gpu.updated_s) * gpu_pace(gpu)
    gpu.updated_s = S.now_s


@compiled
def wake_gpu(S, g):
    """Set the timer for the first that ends; an earlier timer is then stale."""
    gpu = state.gpu(S, g)
    gpu.timer = (gpu.timer + 1) & TIMERS
    if gpu.works > 0:
        left_s = max(0.0, state.gpu_work(S, g, 0).end_s - gpu.progress_s) / gpu_pace(gpu)
        schedule(S, S.now_s + left_s, GPU_TIMER, g, gpu.timer)


@compiled
def compute_on(S, g, seconds, s):
    """A GPU gives a strand so many seconds, of a GPU of speed 1; then it goes on. Works are kept in the order in which they end."""
    gpu = state.gpu(S, g)
    advance_gpu(S, gpu)
    end_s, at = gpu.progress_s + seconds / gpu.speed, gpu.works
    while at > 0 and state.gpu_work(S, g, at - 1).end_s > end_s:
        work, before = state.gpu_work(S, g, at), state.gpu_work(S, g, at - 1)
        work.end_s, work.strand = before.end_s, before.strand
        at -= 1
    work = state.gpu_work(S, g, at)
    work.end_s, work.strand = end_s, s
    gpu.works += 1
    wake_gpu(S, g)


@compiled
def end_works(S, g, timer):
    """Those that have computed all go on."""
    gpu = state.gpu(S, g)
    if timer != gpu.timer:
        return
    advance_gpu(S, gpu)
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
    wake_gpu(S, g)
