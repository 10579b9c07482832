"""Exchanges of rank 0 with all others without events: it sends to each, and receives from all before it does anything else.

Each rank has a port of its own, at which messages of one sender come in order, or, at rank 0's, equal ones in order of arrival. When a
job is such a hub is said by sim.engine.arrays.hub.
"""

from __future__ import annotations

from sim.engine.kernel import layout, ops, state
from sim.engine.kernel.compiling import compiled, in_place
from sim.engine.kernel.layout import ENDS, NEXT, STAYS, WAITS, WRONG
from sim.engine.kernel.ports import pass_in, pass_out
from sim.engine.kernel.post import go_on_later
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.sorting import sort
from sim.engine.kernel.work import seconds_of

HUB = 0  # the rank with which all others exchange messages


@in_place
def exchange(S, strand, rank, r, line):
    """A message to the hub, from it, or from it to each of the others."""
    if r == HUB:
        return send_to_all(S, strand, rank)
    if line.op == ops.SEND:
        return send_to_hub(S, strand, rank, r)
    S.listening += 1
    return WAITS


@compiled
def send_to_all(S, strand, rank):
    """Send to each of the others, who wait for it and go on one after another."""
    others = S.ranks - 1
    if S.listening < others:
        return ENDS + WRONG
    size, port = state.size(S, ops.PARAMETERS, HUB), state.port(S, rank.host)
    handing_s = size.count * S.overhead_s / rank.speed
    for q in range(1, S.ranks):
        strand.clock_s += handing_s
        begin_s, _end_s = pass_out(S, port, size.bytes, strand.clock_s)
        state.reach(S, q).value = begin_s + S.latency_s
    strand.clock_s, strand.version = max(strand.clock_s, port.out_s), int(rank.version)
    S.messages += others
    S.listening, S.reached = 0, 1
    return NEXT


@compiled
def reach_next(S):
    """The hub's message reaches the next rank, which has waited for it, and goes on."""
    q = S.reached
    strand, rank, size = state.strand(S, q), state.rank(S, q), state.size(S, ops.PARAMETERS, HUB)
    S.reached = q + 1 if q + 1 < S.ranks else 0
    begin_s, end_s = pass_in(S, state.port(S, rank.host), size.bytes, state.reach(S, q).value)
    S.now_s = max(S.now_s, begin_s)
    note_wait(S, q, strand.clock_s, begin_s)
    strand.clock_s = max(strand.clock_s, end_s) + size.count * S.overhead_s / rank.speed
    rank.received += 1
    letter = state.instruction(S, strand.pc).a
    for field in range(layout.LETTER):
        state.register(S, q, letter + field).value = 0.0
    state.register(S, q, letter + layout.L_SENDER).value = HUB
    state.register(S, q, letter + layout.L_VERSION).value = state.strand(S, HUB).version
    state.register(S, q, letter + layout.L_MESSAGES).value = size.count
    state.register(S, q, letter + layout.L_NUMBER).value = rank.received
    state.register(S, q, letter + layout.L_BYTES).value = size.bytes
    strand.pc += 1
    return q


@in_place
def send_to_hub(S, strand, rank, r):
    """Send the gradient to the hub, which goes on once all have; ranks do so in order, once each."""
    if S.come != r - 1:
        return ENDS + WRONG
    size = state.size(S, ops.GRADIENT, HUB)
    strand.clock_s += size.count * S.overhead_s / rank.speed
    begin_s, end_s = pass_out(S, state.port(S, rank.host), size.bytes, strand.clock_s)
    strand.clock_s = end_s
    state.reach(S, S.come).value = begin_s + S.latency_s
    S.come_samples += rank.samples
    S.come_minibatches += rank.minibatches
    S.messages += 1
    S.come = r
    if S.collects == 1 and r == S.ranks - 1:
        go_on_later(S, HUB)
    return NEXT


@compiled
def collect(S, strand, rank, line):
    """The hub receives the gradients of all in order of arrival and adds them up; a job that is none does so one by one."""
    if S.hub == 0:
        return NEXT
    if S.come < S.ranks - 1:
        S.collects = 1
        return WAITS
    sort(S, S.come)
    add_all(S, strand, rank)
    rank.samples += S.come_samples
    rank.minibatches += S.come_minibatches
    rank.received += S.come
    S.collects, S.come, S.come_samples, S.come_minibatches = 0, 0, 0.0, 0.0
    strand.pc = line.a
    return STAYS


@compiled
def add_all(S, strand, rank):
    """Messages pass the port in order, and each is added before the next one is taken."""
    size, port = state.size(S, ops.GRADIENT, HUB), state.port(S, rank.host)
    taking_s = size.count * S.overhead_s / rank.speed
    adding_s = seconds_of(state.line(S, layout.REDUCE), size.bytes) / rank.speed
    for i in range(S.come):
        begin_s, end_s = pass_in(S, port, size.bytes, state.reach(S, i).value)
        note_wait(S, HUB, strand.clock_s, begin_s)
        strand.clock_s = max(strand.clock_s, end_s) + taking_s + adding_s
    rank.applied_s += S.come * adding_s * rank.speed
