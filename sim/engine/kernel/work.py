"""Work of ranks: minibatches, gradients, sums and updates, whose seconds are lines of costs times what was drawn."""

from __future__ import annotations

import math

from sim.engine.kernel import layout, ops, state
from sim.engine.kernel.at_hand import may_add, may_compute, may_update
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.heap import schedule, schedule_after_messages
from sim.engine.kernel.layout import (
    CLOCK_S,
    COMPUTES,
    CONTENDED,
    DRAWS,
    ENDS,
    GO,
    GRADIENT_READY,
    NEXT,
    PIECES,
    ROUND_OFF_S,
    SPENDS,
    WAITS,
    WRONG,
)
from sim.engine.kernel.memory import read
from sim.engine.kernel.records import note_missed, note_step, note_wait
from sim.engine.kernel.rounds import note_computed, note_updated
from sim.engine.kernel.side_by_side import at_once, do_sides
from sim.engine.kernel.threads import begin_background

COLD_FROM_S, COLD_AFTER_S = 2e-3, 8e-3  # sim.model.costs
# Phases of a gradient.
INPUT, TO_DEVICE, BEGIN, WHOLE, PACK, TO_HOST, AT_HOST, PART_DONE, PARTITIONS, BY_LAYER, LAYER, LAYER_DONE, DONE = (
    range(13)
)


@in_place
def count_computed(S, rank, samples):
    """Samples of a gradient, where a step has those of all ranks."""
    if S.all_ranks:
        note_computed(S, rank, samples)


@in_place
def seconds_of(line, amount):
    """Seconds of a warm rank for an amount."""
    return max(line.floor_s, line.base_s + line.slope_s * amount)


@in_place
def cold_s(line, idle_s):
    """Further seconds after so many idle ones."""
    if line.cold_s == 0.0:
        return 0.0
    share = math.log(min(max(idle_s, COLD_FROM_S), COLD_AFTER_S) / COLD_FROM_S)
    return line.cold_s * share / math.log(COLD_AFTER_S / COLD_FROM_S)


@in_place
def column(S, width, step):
    """Where the draw of a step is; in the only column if all steps are alike."""
    return step - S.drawn_from if width > 1 else 0


@in_place
def lacks(S, width, step):
    """Whether nothing has been drawn yet for a step."""
    return step - S.drawn_from >= width > 1


@in_place
def factor(S, r, step):
    """On the computing of a rank in a step."""
    return state.computing(S, r, column(S, S.computing_width, step)).value


@in_place
def sleep(S, strand, rank, r):
    """The induced straggler; one that sleeps at all oversleeps a little."""
    if strand.phase == 0:
        step = int(rank.step)
        if lacks(S, S.sleep_width, step):
            return ENDS + DRAWS
        rank.calls = rank.calls + 1 if step == rank.slept else 0
        rank.slept = step
        if S.ranks * (rank.calls + 1) > S.sleep_count:
            rank.calls, S.calls = rank.calls - 1, rank.calls + 1
            return ENDS + DRAWS
        seconds = state.sleep(S, r + S.ranks * rank.calls, column(S, S.sleep_width, step)).value
        if seconds <= 0.0:
            return NEXT
        strand.t0_s, strand.phase = strand.clock_s, 1
        if S.mode == CONTENDED:
            schedule(S, S.now_s + (seconds + S.oversleep_s), GO, strand.number, 0)
            return WAITS
        strand.clock_s += seconds + S.oversleep_s
    rank.slept_s = strand.clock_s - strand.t0_s
    rank.computed_s += rank.slept_s
    return NEXT


@in_place
def input_s(S, rank, r, step):
    """Seconds of the next minibatch: the first work after a sleep."""
    resume_s = S.resume_s if rank.slept_s != 0.0 else 0.0
    rank.slept_s = 0.0
    return max(0.0, state.input(S, r, column(S, S.input_width, step)).value * S.input_s + resume_s)


@in_place
def compute(S, strand, rank, s, r, line):
    """A minibatch and its gradient, whole, in partitions until a deadline, by layer, or a part of it; or the minibatch alone."""
    op, step = line.op, int(rank.step)
    if lacks(S, S.computing_width, step):
        return ENDS + DRAWS
    if S.own and strand.phase == INPUT and op != ops.FETCH and not may_compute(S, rank, s, r, line):
        return ENDS + WRONG
    if PIECES * rank.begun >= S.moment_width > 1:
        return ENDS + DRAWS
    phase = strand.phase
    if phase == INPUT:
        strand.t0_s = strand.clock_s
        phase = begin_gradient(S, rank, s, r, line)
    while phase != DONE:
        strand.spend_s, strand.on_gpu = 0.0, 0
        phase = advance_gradient(S, strand, rank, s, r, line, phase, step)
        if strand.spend_s > ROUND_OFF_S:
            if S.mode == CONTENDED:
                strand.phase = phase
                return COMPUTES if strand.on_gpu else SPENDS
            strand.clock_s += strand.spend_s / rank.speed
    rank.computed_s += (strand.clock_s - strand.t0_s) * (1.0 if S.mode == CONTENDED else rank.speed)
    return NEXT


@compiled
def begin_gradient(S, rank, s, r, line):
    """A gradient counts as made on the parameters that the rank has now; a later part needs no further minibatch."""
    if line.op == ops.PART:
        if read(S, s, r, line.a) > 0.0:
            return TO_DEVICE
        rank.samples, rank.minibatches = 0.0, 1.0
    if line.op == ops.PART or line.op == ops.COMPUTE:
        rank.oldest = int(rank.version)
    return INPUT


@compiled
def advance_gradient(S, strand, rank, s, r, line, phase, step):
    """One phase: the seconds that it takes are in `spend_s`; the next phase."""
    op = line.op
    if phase == INPUT:
        if op != ops.FETCH and rank.fetched == 1:
            rank.fetched = 0
            return TO_DEVICE
        if S.threaded and (op == ops.FETCH or op == ops.COMPUTE):
            begin_background(S, rank, r)
        strand.spend_s = input_s(S, rank, r, step)
        rank.fetched = 1 if op == ops.FETCH else 0
        if S.layerwise and op == ops.FETCH:
            rank.version = rank.step
        return DONE if op == ops.FETCH else TO_DEVICE
    if phase == TO_DEVICE:
        if op == ops.PART:
            rank.samples += int(S.batch) // line.b
            count_computed(S, rank, int(S.batch) // line.b)
            copy_to_device(S, strand, rank, S.batch // line.b)
        elif op != ops.LAYERS:
            copy_to_device(S, strand, rank, S.batch)
        return BEGIN
    if phase == BEGIN:
        return begin_computing(S, strand, rank, r, line, step)
    if phase == PARTITIONS:
        return partition(S, strand, rank, s, r, line)
    if phase == PACK:
        strand.spend_s = S.pack_s
        return TO_HOST
    if phase == TO_HOST:
        rank.warm_s, strand.spend_s = strand.clock_s, S.to_host_s
        return AT_HOST
    if phase == AT_HOST:
        if S.to_host_s != 0.0:
            rank.warm_s = strand.clock_s
        return DONE
    if phase == WHOLE:
        rank.samples, rank.minibatches = S.batch, 1.0
        count_computed(S, rank, S.batch)
    if phase == WHOLE or phase == PART_DONE:
        rank.warm_s = strand.clock_s
        return PACK
    return by_layer(S, strand, rank, r, phase)


@compiled
def copy_to_device(S, strand, rank, samples):
    """Parameters and samples are copied to the rank's device, if it has one."""
    size_bytes = S.model_bytes + samples * S.sample_bytes
    if size_bytes > 0.0:
        strand.spend_s = seconds_of(state.line(S, layout.TO_DEVICE), size_bytes)


@compiled
def begin_computing(S, strand, rank, r, line, step):
    """The first seconds on the device."""
    op, noise, idle_s = line.op, factor(S, r, step), strand.clock_s - rank.warm_s
    computing, strand.began_s = state.line(S, layout.COMPUTE), strand.clock_s
    if op == ops.LAYERS:
        rank.samples, rank.minibatches, rank.ready = S.batch, 1.0, 0
        count_computed(S, rank, S.batch)
        beside_s = S.to_device_s + S.to_host_s
        strand.t1_s = noise * S.compute_s + cold_s(computing, idle_s) + beside_s
        return BY_LAYER
    strand.on_gpu = 1
    if op == ops.COMPUTE:
        strand.spend_s = noise * S.compute_s + cold_s(computing, idle_s)
        return WHOLE
    samples = int(S.batch) // line.b
    if op == ops.PART:
        strand.spend_s = seconds_of(computing, samples) * noise + cold_s(computing, idle_s)
        return PART_DONE
    strand.spend_s = noise * S.loop_s + cold_s(state.line(S, layout.PARTITION), idle_s)
    strand.t1_s, strand.turn = noise * seconds_of(state.line(S, layout.PARTITION), samples), 0
    return PARTITIONS


@compiled
def partition(S, strand, rank, s, r, line):
    """The next partition, if there is time; the first in any case."""
    left_s, partitions = read(S, s, r, line.a) - strand.clock_s, line.b
    if strand.turn < partitions and (strand.turn == 0 or left_s > CLOCK_S):
        strand.turn += 1
        strand.spend_s, strand.on_gpu = strand.t1_s, 1
        return PARTITIONS
    if strand.turn == partitions and left_s > CLOCK_S:
        rank.ran_out += 1.0
    rank.samples, rank.minibatches = strand.turn * (int(S.batch) // partitions), 1.0
    count_computed(S, rank, rank.samples)
    rank.warm_s = strand.clock_s
    return PACK


@compiled
def by_layer(S, strand, rank, r, phase):
    """A layer after another; at once where nothing makes them longer."""
    variables = S.variables
    if phase == BY_LAYER and S.mode != CONTENDED:
        begin_s, scale_s = strand.clock_s, strand.t1_s / rank.speed
        for k in range(variables):
            at_s = begin_s + scale_s * (S.forward + state.backward(S, k).value)
            state.ready(S, r, k).value = at_s
            n = rank.ready_before + k
            if ready_everywhere(S, n, at_s) and state.gradient(S, n).waiting > 0:
                schedule_after_messages(S, max(state.gradient(S, n).at_s, S.now_s), GRADIENT_READY, n, 0)
        rank.ready = S.variables
        strand.clock_s = state.ready(S, r, S.variables - 1).value
    elif phase == BY_LAYER:
        strand.turn, strand.spend_s, strand.on_gpu = 0, strand.t1_s * S.forward, 1
        return LAYER
    elif phase == LAYER and strand.turn < variables:
        strand.spend_s, strand.on_gpu = strand.t1_s * state.part(S, strand.turn).value, 1
        return LAYER_DONE
    elif phase == LAYER_DONE:
        k = rank.ready
        state.ready(S, r, k).value = strand.clock_s
        rank.ready = k + 1
        n = rank.ready_before + k
        if ready_everywhere(S, n, strand.clock_s):
            schedule(S, max(state.gradient(S, n).at_s, S.now_s), GRADIENT_READY, n, 0)
        strand.turn += 1
        return LAYER
    rank.warm_s = strand.clock_s
    return DONE


@compiled
def ready_everywhere(S, n, at_s):
    """A rank has a gradient: whether now all have it."""
    ready = state.gradient(S, n)
    ready.ranks += 1
    ready.at_s = max(ready.at_s, at_s)
    return ready.ranks == S.ranks


@in_place
def spend(S, strand, rank, seconds, phase):
    """Seconds of a core: by arithmetic, or as an event, after which the phase is this one."""
    if seconds > ROUND_OFF_S:
        if S.mode == CONTENDED:
            strand.phase, strand.spend_s = phase, seconds
            return SPENDS
        strand.clock_s += seconds / rank.speed
    return NEXT


@in_place
def take_up(S, strand, rank, s, line):
    """Parameters of a letter: their version counts if the sender is rank 0."""
    if strand.phase:
        return NEXT
    if state.register(S, s, line.a + layout.L_SENDER).value == 0.0:
        rank.version = state.register(S, s, line.a + layout.L_VERSION).value
    size_bytes = state.register(S, s, line.a + layout.L_BYTES).value
    return spend(S, strand, rank, seconds_of(state.line(S, layout.TAKE_UP), size_bytes), 1)


@compiled
def copy(S, strand, rank, s, line):
    """Pieces are copied into one buffer, or out of it."""
    if strand.phase:
        return NEXT
    start, stop = state.register(S, s, line.a).value, state.register(S, s, line.b).value
    return spend(S, strand, rank, seconds_of(state.line(S, layout.PACK), 4.0 * (stop - start)), 1)


@compiled
def agree(S, strand, rank, r, line):
    """What a runtime does before a call: seconds in which a rank waits (0), or works (1)."""
    if line.a == 1:
        return end_agreeing(S, strand, rank)
    if strand.phase == 0:
        strand.began_s = strand.clock_s
        if S.agree_s > 0.0 and S.mode == CONTENDED:
            schedule(S, S.now_s + S.agree_s, GO, strand.number, 0)
            strand.phase = 1
            return WAITS
        strand.clock_s += S.agree_s
    note_wait(S, r, strand.began_s, strand.clock_s)
    return NEXT


@compiled
def end_agreeing(S, strand, rank):
    """The runtime's work for an agreement, besides its messages."""
    if strand.phase or strand.passes:
        return NEXT
    return spend(S, strand, rank, S.negotiate_s, 1)


@in_place
def add(S, strand, rank, s, r, line):
    """The gradient of a letter."""
    if strand.phase:
        rank.applied_s += strand.clock_s - strand.began_s
        return NEXT
    if S.own and not may_add(S, rank, s, r, line):
        return ENDS + WRONG
    if r == 0:
        note_missed(S, int(rank.version - state.register(S, s, line.a + layout.L_VERSION).value))
    if S.layerwise == 0 or state.register(S, s, line.a + layout.L_VARIABLE).value == rank.held:  # which counts for all
        rank.samples += state.register(S, s, line.a + layout.L_SAMPLES).value
    rank.minibatches += state.register(S, s, line.a + layout.L_MINIBATCHES).value
    if S.in_parts:
        minibatches = max(1, int(state.register(S, s, line.a + layout.L_MINIBATCHES).value))
        return do_sides(S, strand, rank, r, minibatches - 1, 1.0, 0.0)
    return at_once(
        S, strand, rank, seconds_of(state.line(S, layout.REDUCE), state.register(S, s, line.a + layout.L_BYTES).value)
    )


@in_place
def update(S, strand, rank, r):
    """New parameters of the sum; rank 0's update ends a step."""
    if strand.phase == 0:
        if S.own and not may_update(S, rank, r):
            return ENDS + WRONG
        if S.counts_updates == 1:
            rank.step = rank.version
        step = int(rank.step)
        if lacks(S, S.update_width, step):
            return ENDS + DRAWS
        rank.version += 1.0
        line = state.line(S, layout.UPDATE)
        noise, further_s = (
            state.update(S, r, column(S, S.update_width, step)).value,
            cold_s(line, strand.clock_s - rank.warm_s),
        )
        if S.layerwise:  # what each variable takes has been charged
            result = at_once(S, strand, rank, line.base_s + further_s)
        elif S.in_parts:
            result = do_sides(S, strand, rank, r, S.most_minibatches, noise, further_s)
        else:
            result = at_once(S, strand, rank, noise * seconds_of(line, rank.update_bytes) + further_s)
        if result != NEXT:
            return result
    if strand.phase:
        rank.applied_s += strand.clock_s - strand.began_s
    if S.all_ranks:
        note_updated(S, rank, rank.samples, strand.clock_s)
    elif r == 0:
        note_step(S, strand.clock_s, rank.samples)
    rank.warm_s = strand.clock_s
    rank.samples, rank.minibatches = 0.0, 0.0
    return NEXT


@compiled
def evaluate(S, strand, rank, r):
    """Loss and accuracy at the master, where they are due."""
    if strand.phase:
        rank.applied_s += strand.clock_s - strand.began_s
    if strand.phase or r != 0 or S.evaluate_every == 0 or (int(rank.step) + 1) % S.evaluate_every != 0:
        return NEXT
    strand.began_s = strand.clock_s
    rank.applied_s += 0.0 if S.mode == CONTENDED else S.evaluate_s
    return spend(S, strand, rank, S.evaluate_s, 1)
