"""Variables that travel one by one, which other threads send and receive: sim.event.ranks.layerwise and shelf, on arrays."""

from __future__ import annotations

from sim.engine.kernel import layout, ops, state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.heap import schedule
from sim.engine.kernel.layout import COMPUTES, DEPART, GO, NEXT, ROUND_OFF_S, SHELVED, WAITS
from sim.engine.kernel.memory import read
from sim.engine.kernel.post import NONE, free_message, has_room, new_message
from sim.engine.kernel.receiving import ask_for, local_s
from sim.engine.kernel.records import note_wait
from sim.engine.kernel.sending import hand_over, leave_as_flow, leave_by_port
from sim.engine.kernel.threads import carry
from sim.engine.kernel.work import cold_s, factor, input_s, spend

BEGUN, COMPUTED = 1, 2  # phases of a layer
ON_SHELF = -3  # who waits for an announced message: other threads


@compiled
def use_variables(S, strand, rank, s, r, line):
    """An instruction about one variable, or one layer."""
    if line.op == ops.LAYER:
        return compute_layer(S, strand, rank, s, r, line)
    v = int(read(S, s, r, line.a))
    if line.op == ops.AWAITV:
        return await_parameters(S, strand, rank, r, v)
    if line.op == ops.SENDV:
        send_variable(S, strand, rank, r, v)
        return NEXT
    if strand.phase:
        return NEXT
    size_bytes = state.variable_bytes(S, v).value
    seconds = state.line(S, layout.UPDATE).slope_s * size_bytes
    return spend(strand, seconds, 1)


@compiled
def await_parameters(S, strand, rank, r, v):
    """Wait until the parameters of a variable have come for this step."""
    if strand.phase == 0 and state.at_hand(S, r, v).value <= int(rank.step):
        if rank.layers_s >= 0.0:
            rank.warm_s = strand.clock_s
        rank.awaits, strand.phase, strand.began_s = v, 1, strand.clock_s
        return WAITS
    if strand.phase:
        note_wait(S, r, strand.began_s, strand.clock_s)
    return NEXT


@compiled
def compute_layer(S, strand, rank, s, r, line):
    """The pass through one variable; the first of a gradient begins it."""
    if strand.phase == 0 and rank.layers_s < 0.0 and rank.fetched == 0:
        strand.phase, strand.spend_s = BEGUN, input_s(S, rank, r, int(rank.step))
        if strand.spend_s > ROUND_OFF_S:
            return layout.SPENDS
    if strand.phase != COMPUTED:
        if rank.layers_s < 0.0:
            begin_layers(S, strand, rank, r)
        strand.phase, strand.spend_s = COMPUTED, rank.layers_s * read(S, s, r, line.a)
        if strand.spend_s > ROUND_OFF_S:
            return COMPUTES
    if read(S, s, r, line.b) != 0.0:
        rank.warm_s, rank.layers_s = strand.clock_s, -1.0
    return NEXT


@compiled
def begin_layers(S, strand, rank, r):
    """How long all layers take."""
    rank.fetched, rank.samples, rank.minibatches = 0, S.batch, 1.0
    cold = cold_s(state.line(S, layout.COMPUTE), strand.clock_s - rank.warm_s)
    rank.layers_s = factor(S, r, int(rank.step)) * S.compute_s + cold + S.to_device_s + S.to_host_s


@compiled
def send_variable(S, strand, rank, r, v):
    """A server's parameters of a variable leave for all that send to it; a worker's gradient is added to those of its host, and leaves."""
    if r >= S.first:
        if rank.leader == r:
            add_gradient(S, r, v)
        else:
            copy(S, rank, v, layout.GRADIENT_COPIED, rank.leader)
        return
    version = state.at_hand(S, r, v).value
    state.at_hand(S, r, v).value = version + 1
    if version < S.rounds:
        for to in range(S.first, S.ranks):
            if state.rank(S, to).leader == to:
                ship(S, strand, rank, r, to, v, version, 0)


@compiled
def copy(S, rank, v, kind, to):
    """A variable is copied within the host, after others."""
    port = state.port(S, rank.host)
    seconds = S.local_gap_s + state.variable_bytes(S, v).value / S.local_bandwidth
    port.memory_s = max(S.now_s, port.memory_s) + seconds
    schedule(S, S.now_s + (port.memory_s - S.now_s + S.local_latency_s), kind, to, v)


@compiled
def add_gradient(S, r, v):
    """One more gradient of a variable of this host; all of them leave together."""
    rank, counted = state.rank(S, r), state.added(S, r, v)
    counted.value += 1
    if counted.value % rank.together == 0:
        to, samples = state.server_of(S, v).value, int(S.batch) * rank.together
        ship(S, state.strand(S, r), rank, r, to, v, counted.value // rank.together - 1, samples)


@compiled
def ship(S, strand, rank, r, to, v, version, samples):
    """Other threads send one variable; nobody waits for it to leave."""
    if not has_room(S):
        S.short = 1
        return
    here = state.rank(S, to).host == rank.host
    m = new_message(S, r, to, here, 1, state.variable_bytes(S, v).value)
    message = state.message(S, m)
    message.version, message.samples, message.minibatches, message.variable = version, samples, 1, v
    strand.to, strand.bytes, strand.departure = to, message.bytes, NONE
    if S.threaded:
        carry(S, rank, state.rank(S, to), S.local_background_s if here else S.link_background_s)
    if here:
        hand_over(S, rank, m)
    elif not S.fair:
        leave_by_port(S, strand, rank, r, m)
    else:
        leave_as_flow(S, rank, r, m)


@compiled
def shelve(S, m, r):
    """Other threads of a worker begin to receive a message."""
    message = state.message(S, m)
    if message.asks == 1:
        message.waiter = ON_SHELF
        ask_for(S, m, state.rank(S, r), r)
        return
    if message.local == 1:
        message.begin_s, message.end_s = S.now_s, S.now_s + local_s(S, message)
        if message.departure >= 0:
            schedule(S, S.now_s, DEPART, message.departure, 0)
    schedule(S, S.now_s + (message.end_s - S.now_s), SHELVED, m, 0)


@compiled
def put_down(S, m):
    """Parameters have come, and are copied for others of the host."""
    message = state.message(S, m)
    r, v = message.receiver, message.variable
    other = state.rank(S, r).neighbour
    while other >= 0:
        copy(S, state.rank(S, r), v, layout.PARAMETERS_COPIED, other)
        other = state.rank(S, other).neighbour
    free_message(S, m)
    have(S, r, v)


@compiled
def have(S, r, v):
    """One more version of a variable's parameters is at hand; a rank that waits for it goes on."""
    rank, here = state.rank(S, r), state.at_hand(S, r, v)
    here.value += 1
    if rank.awaits == v and here.value > int(rank.step):
        rank.awaits = NONE
        schedule(S, S.now_s, GO, r, 0)


@compiled
def layer_event(S, kind, a, b):
    """What happens to one variable."""
    if kind == SHELVED:
        put_down(S, a)
    elif kind == layout.GRADIENT_COPIED:
        add_gradient(S, a, b)
    else:
        have(S, a, b)
