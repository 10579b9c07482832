"""Work of ranks: minibatches, gradients, sums and updates, whose seconds are lines of costs times what was drawn."""

from __future__ import annotations

import math

from sim.engine.kernel import layout, ops, state
from sim.engine.kernel.at_hand import may_add, may_compute, may_update
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.cores import work
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.memory import read
from sim.engine.kernel.records import note_computed, note_missed, note_step, note_updated, note_wait
from sim.engine.kernel.threads import begin_background

COLD_FROM_S, COLD_AFTER_S = 2e-3, 8e-3  # sim.model.costs
# Phases of a gradient.
INPUT, TO_DEVICE, BEGIN, WHOLE, PACK, TO_HOST, AT_HOST = range(7)
PART_DONE, PARTITIONS, BY_LAYER, LAYER, LAYER_DONE, DONE = range(7, 13)


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
            return layout.ENDS + layout.DRAWS
        rank.calls = rank.calls + 1 if step == rank.slept else 0
        rank.slept = step
        if S.ranks * (rank.calls + 1) > S.sleep_count:
            rank.calls, S.calls = rank.calls - 1, rank.calls + 1
            return layout.ENDS + layout.DRAWS
        seconds = state.sleep(S, r + S.ranks * rank.calls, column(S, S.sleep_width, step)).value
        if seconds <= 0.0:
            return layout.NEXT
        strand.t0_s, strand.phase = strand.clock_s, 1
        schedule(S, S.now_s + (seconds + S.oversleep_s), layout.GO, strand.number, 0)
        return layout.WAITS
    rank.slept_s = strand.clock_s - strand.t0_s
    rank.computed_s += rank.slept_s
    return layout.NEXT


@in_place
def input_s(S, rank, r, step):
    """Seconds of the next minibatch: the first work after a sleep."""
    resume_s = S.resume_s if rank.slept_s != 0.0 else 0.0
    rank.slept_s = 0.0
    return max(0.0, state.input(S, r, column(S, S.input_width, step)).value * S.input_s + resume_s)


@in_place
def compute(S, strand, rank, s, r, line):
    """A minibatch and its gradient, whole, in partitions until a deadline, by layer, or a part of it; or the minibatch alone.

    Where each rank has a core, all phases are one event, at whose end the rank's clock stands meanwhile.
    """
    op, step = line.op, int(rank.step)
    if lacks(S, S.computing_width, step):
        return layout.ENDS + layout.DRAWS
    if S.own and strand.phase == INPUT and op != ops.FETCH and not may_compute(S, rank, s, r, line):
        return layout.ENDS + layout.WRONG
    if layout.PIECES * rank.begun >= S.moment_width > 1:
        return layout.ENDS + layout.DRAWS
    phase = strand.phase
    if phase == INPUT:
        strand.t0_s = strand.clock_s
        phase = begin_gradient(S, rank, s, r, line)
    while phase != DONE:
        strand.spend_s, strand.on_gpu = 0.0, 0
        phase = advance_gradient(S, strand, rank, s, r, line, phase, step)
        if strand.spend_s > layout.ROUND_OFF_S:
            if S.cores_suffice == 0:
                strand.phase = phase
                return layout.COMPUTES if strand.on_gpu else layout.SPENDS
            strand.clock_s += strand.spend_s / rank.speed
    if strand.clock_s > S.now_s:
        if op == ops.LAYERS and S.own == 0:
            rank.idle_s = strand.clock_s
        schedule(S, strand.clock_s, layout.GO, s, 0)
        strand.phase = DONE
        return layout.WAITS
    rank.computed_s += strand.clock_s - strand.t0_s
    return layout.NEXT


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
    if strand.turn < partitions and (strand.turn == 0 or left_s > layout.CLOCK_S):
        strand.turn += 1
        strand.spend_s, strand.on_gpu = strand.t1_s, 1
        return PARTITIONS
    if strand.turn == partitions and left_s > layout.CLOCK_S:
        rank.ran_out += 1.0
    rank.samples, rank.minibatches = strand.turn * (int(S.batch) // partitions), 1.0
    count_computed(S, rank, rank.samples)
    rank.warm_s = strand.clock_s
    return PACK


@compiled
def by_layer(S, strand, rank, r, phase):
    """A layer after another."""
    variables = S.variables
    if phase == BY_LAYER:
        strand.turn, strand.spend_s, strand.on_gpu = 0, strand.t1_s * S.forward, 1
        return LAYER
    if phase == LAYER_DONE:
        end_layer(S, rank, r, strand.clock_s)
        strand.turn += 1
    for k in range(strand.turn, variables):
        seconds = strand.t1_s * state.part(S, k).value
        if S.cores_suffice == 0:
            strand.spend_s, strand.on_gpu, strand.turn = seconds, 1, k
            return LAYER_DONE
        strand.clock_s += seconds / rank.speed if seconds > layout.ROUND_OFF_S else 0.0
        end_layer(S, rank, r, strand.clock_s)
    rank.warm_s = strand.clock_s
    return DONE


@in_place
def end_layer(S, rank, r, at_s):
    """A rank has one more gradient, which maybe all have now."""
    k = rank.ready
    rank.ready, ready = k + 1, state.gradient(S, rank.ready_before + k)
    state.ready(S, r, k).value = at_s
    ready.ranks, ready.at_s = ready.ranks + 1, max(ready.at_s, at_s)
    if ready.ranks == S.ranks and ready.waiting > 0:
        schedule(S, max(ready.at_s, S.now_s), layout.GRADIENT_READY, rank.ready_before + k, 0)


@in_place
def spend(strand, seconds, phase):
    """Seconds of a core, if there are any, after which the phase is this one."""
    if seconds <= layout.ROUND_OFF_S:
        return layout.NEXT
    strand.phase, strand.spend_s = phase, seconds
    return layout.SPENDS


@in_place
def take_up(S, strand, rank, s, line):
    """Parameters of a letter: their version counts if the sender is rank 0."""
    if strand.phase:
        return layout.NEXT
    if state.register(S, s, line.a + layout.L_SENDER).value == 0.0:
        rank.version = state.register(S, s, line.a + layout.L_VERSION).value
    size_bytes = state.register(S, s, line.a + layout.L_BYTES).value
    return spend(strand, seconds_of(state.line(S, layout.TAKE_UP), size_bytes), 1)


@compiled
def copy(S, strand, rank, s, line):
    """Pieces are copied into one buffer, or out of it."""
    if strand.phase:
        return layout.NEXT
    start, stop = state.register(S, s, line.a).value, state.register(S, s, line.b).value
    return spend(strand, seconds_of(state.line(S, layout.PACK), 4.0 * (stop - start)), 1)


@compiled
def agree(S, strand, rank, r, line):
    """What a runtime does before a call: seconds in which a rank waits (0), or works (1)."""
    if line.a == 1:
        return end_agreeing(S, strand, rank)
    if strand.phase == 0:
        strand.began_s = strand.clock_s
        if S.agree_s > 0.0:
            schedule(S, S.now_s + S.agree_s, layout.GO, strand.number, 0)
            strand.phase = 1
            return layout.WAITS
    note_wait(S, r, strand.began_s, strand.clock_s)
    return layout.NEXT


@compiled
def end_agreeing(S, strand, rank):
    """The runtime's work for an agreement, besides its messages."""
    if strand.phase or strand.passes:
        return layout.NEXT
    return spend(strand, S.negotiate_s, 1)


@in_place
def add(S, strand, rank, s, r, line):
    """The gradient of a letter."""
    if strand.phase:
        rank.applied_s += strand.clock_s - strand.began_s
        return layout.NEXT
    if S.own and not may_add(S, rank, s, r, line):
        return layout.ENDS + layout.WRONG
    if r == 0:
        note_missed(S, int(rank.version - state.register(S, s, line.a + layout.L_VERSION).value))
    if S.layerwise == 0 or state.register(S, s, line.a + layout.L_VARIABLE).value == rank.held:  # which counts for all
        rank.samples += state.register(S, s, line.a + layout.L_SAMPLES).value
    rank.minibatches += state.register(S, s, line.a + layout.L_MINIBATCHES).value
    if S.layerwise:
        return at_once(
            S, strand, state.variable_sum_s(S, int(state.register(S, s, line.a + layout.L_VARIABLE).value)).value
        )
    if S.in_parts:
        minibatches = max(1, int(state.register(S, s, line.a + layout.L_MINIBATCHES).value))
        return do_sides(S, strand, rank, r, minibatches - 1, 1.0, 0.0)
    size_bytes = state.register(S, s, line.a + layout.L_BYTES).value
    return at_once(S, strand, seconds_of(state.line(S, layout.REDUCE), size_bytes))


@in_place
def at_once(S, strand, seconds):
    """Parts of an addition or an update, side by side: where cores are shared an event even if they take no time."""
    strand.began_s = strand.clock_s
    if S.cores_suffice == 1 and seconds <= layout.ROUND_OFF_S:
        return layout.NEXT
    strand.phase, strand.spend_s = 1, seconds
    if seconds > layout.ROUND_OFF_S:
        return layout.SPENDS if S.cores_suffice == 1 else layout.TOGETHER
    schedule(S, S.now_s, layout.GO, strand.number, 0)
    return layout.WAITS


@compiled
def do_sides(S, strand, rank, r, amount, factor, further_s):
    """Do all parts of a gradient of so many minibatches, or of an update: seconds times a factor, and some more for the first."""
    parts = state.sides(S, amount, min(r, S.first))
    if S.cores_suffice == 0:
        return begin_sides(S, strand, rank, r, parts, factor, further_s)
    all_s = longest_s = 0.0
    for i in range(parts.first, parts.stop):
        seconds = state.side_s(S, i).value * factor + (further_s if i == parts.first else 0.0)
        all_s += seconds
        longest_s = max(longest_s, seconds)
    return at_once(S, strand, all_s if rank.cores == 1 else longest_s)


@compiled
def begin_sides(S, strand, rank, r, parts, factor, further_s):
    """The same as events; the strand goes on when all are done."""
    who = S.ranks if parts.stop - parts.first > 1 or S.threaded else r
    strand.phase, strand.pending, strand.began_s = 1, 0, strand.clock_s
    for i in range(parts.first, parts.stop):
        seconds = state.side_s(S, i).value * factor + (further_s if i == parts.first else 0.0)
        if seconds > layout.ROUND_OFF_S:
            strand.pending += 1
            work(S, rank.group, seconds, who, strand.number, layout.HOP)
    if strand.pending == 0:
        schedule(S, S.now_s, layout.GO, strand.number, 0)
    return layout.WAITS


@in_place
def update(S, strand, rank, r):
    """New parameters of the sum; rank 0's update ends a step."""
    if strand.phase == 0:
        if S.own and not may_update(S, rank, r):
            return layout.ENDS + layout.WRONG
        if S.counts_updates == 1:
            rank.step = rank.version
        step = int(rank.step)
        if lacks(S, S.update_width, step):
            return layout.ENDS + layout.DRAWS
        rank.version += 1.0
        line = state.line(S, layout.UPDATE)
        noise = state.update(S, r, column(S, S.update_width, step)).value
        further_s = cold_s(line, strand.clock_s - rank.warm_s)
        if S.layerwise:  # what each variable takes has been charged
            result = at_once(S, strand, line.base_s + further_s)
        elif S.in_parts:
            result = do_sides(S, strand, rank, r, S.most_minibatches, noise, further_s)
        else:
            result = at_once(S, strand, noise * seconds_of(line, rank.update_bytes) + further_s)
        if result != layout.NEXT:
            return result
    if strand.phase:
        rank.applied_s += strand.clock_s - strand.began_s
    if S.all_ranks:
        note_updated(S, rank, rank.samples, strand.clock_s)
    elif r == 0:
        note_step(S, strand.clock_s, rank.samples)
    rank.warm_s = strand.clock_s
    rank.samples, rank.minibatches = 0.0, 0.0
    return layout.NEXT


@compiled
def evaluate(S, strand, rank, r):
    """Loss and accuracy at the master, where they are due."""
    if strand.phase:
        rank.applied_s += strand.clock_s - strand.began_s
    if strand.phase or r != 0 or S.evaluate_every == 0 or (int(rank.step) + 1) % S.evaluate_every != 0:
        return layout.NEXT
    strand.began_s = strand.clock_s
    return spend(strand, S.evaluate_s, 1)
