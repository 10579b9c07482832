"""The kernel: events in order, and strands that run their programs until they wait."""

from __future__ import annotations

from sim.engine.kernel import layout, ops, phases, state
from sim.engine.kernel.at_hand import begin_sum
from sim.engine.kernel.background import cycle, fork, fuse, join
from sim.engine.kernel.calls import (
    begin_call,
    choose_exchange,
    depart,
    end_negotiation,
    leave_all,
    take_exchange,
    wait_for_all,
)
from sim.engine.kernel.compiling import compiled, in_place, outermost
from sim.engine.kernel.cores import compute_on, work
from sim.engine.kernel.happenings import NO_ROOM, NOBODY, happen
from sim.engine.kernel.heap import next_event, schedule
from sim.engine.kernel.layerwise import use_variables
from sim.engine.kernel.memory import move, use_list, use_set
from sim.engine.kernel.polling import NOTICES, POLLS, begin_polling, end_polls, go_on_with, late_s, sleeps_between
from sim.engine.kernel.post import NONE, go_on_later
from sim.engine.kernel.receiving import ask, end_inbox, get, receive, spend_on, take
from sim.engine.kernel.records import end_round
from sim.engine.kernel.sending import call_port, choose_receiver, end_sending, send
from sim.engine.kernel.work import add, agree, compute, copy, evaluate, sleep, take_up, update

MOST_JUMPS = 2**22  # after which a run pauses: some tens of milliseconds
SPARE = 64  # events that may be scheduled at once, besides one a rank


@outermost
def run(states):
    """Run until all programs have ended, draws or room are used up, or so many events have happened; the status.

    Args:
        states: one record of sim.engine.kernel.state.
    """
    S = states[0]
    while True:
        s = next_strand(S)
        if s < 0:
            return -1 - s
        code = go_on(S, s)
        if code >= layout.ENDS:
            go_on_later(S, s)
            return code - layout.ENDS
        if code >= layout.SPENDS:
            spend(S, s, code)


@in_place
def next_strand(S):
    """The next strand that goes on; -1 less a status if there is none."""
    if S.events >= S.pause:
        return -1 - layout.PAUSE
    while S.todo == 0:
        if S.scheduled + S.due == 0:
            return -1 - (layout.FINISHED if S.alive == 0 else layout.DEADLOCK)
        if S.scheduled + S.due + SPARE + S.ranks > S.event_count or S.short:
            return -1 - layout.SPACE
        if S.events >= S.pause:
            return -1 - layout.PAUSE
        S.events += 1
        kind, a, b = next_event(S)
        s = happen(S, kind, a, b)
        if s >= 0:
            s = wake(S, s)
        if s == NO_ROOM:
            return -1 - layout.SPACE
        if s != NOBODY:
            return s
    S.todo -= 1
    return state.todo(S, S.todo).value


@in_place
def rank_of(S, s):
    """The rank of a strand, which is not asked for it: both records are fetched at once."""
    return s - S.ranks if s >= S.ranks else s


@in_place
def wake(S, s):
    """What a strand waited for is there. A rank that sleeps between polls sees it at its next poll."""
    strand = state.strand(S, s)
    r = rank_of(S, s)
    rank = state.rank(S, r)
    if strand.polls == POLLS:
        end_polls(S, rank)
        waited_s, rank.polled_s = S.now_s - rank.since_s, S.now_s
        if sleeps_between(S, strand) and waited_s > 0.0:
            after_s = late_s(S, rank, r, waited_s)
            if after_s < 0.0:
                return NO_ROOM
            strand.polls = NOTICES
            schedule(S, S.now_s + after_s, layout.POLL, s, 0)
            return NOBODY
    go_on_with(S, strand, rank)
    return s


@in_place
def go_on(S, s):
    """Run a strand's program until it waits, works or ends; what it does then."""
    strand = state.strand(S, s)
    r = rank_of(S, s)
    rank = state.rank(S, r)
    jumps = 0
    while True:
        line = state.instruction(S, strand.pc)
        if line.op == ops.END:
            S.alive -= 1
            end_inbox(S, rank, r)
            return layout.WAITS
        code = obey(S, strand, rank, s, r, line)
        if code == layout.NEXT:
            strand.pc += 1
            strand.phase = 0
        elif code != layout.STAYS:
            return code
        elif S.own:
            jumps += 1
            if jumps > MOST_JUMPS:  # a user's text may never wait
                return layout.ENDS + layout.PAUSE


@in_place
def obey(S, strand, rank, s, r, line):
    """One instruction, or what is left of it."""
    op = line.op
    if op <= ops.MOVL:
        return move(S, strand, s, r, line)
    if op <= ops.SETLEN:
        return use_set(S, strand, s, r, line)
    if op <= ops.ACLEAR:
        return use_list(S, strand, s, r, line)
    if op == ops.SEND or op == ops.RECV or (ops.CALL <= op <= ops.MEET):
        return communicate(S, strand, rank, s, r, line)
    if op == ops.TAKEUP:
        return take_up(S, strand, rank, s, line)
    if op == ops.SLEEP:
        return sleep(S, strand, rank, r)
    if op == ops.ADD:
        return add(S, strand, rank, s, r, line)
    if op == ops.UPDATE:
        return update(S, strand, rank, r)
    if op <= ops.PART:
        return compute(S, strand, rank, s, r, line)
    return rest(S, strand, rank, s, r, line)


@compiled
def rest(S, strand, rank, s, r, line):
    """An instruction of collectives, of an evaluation, or of a thread beside the computation."""
    op = line.op
    if op == ops.EVALUATE:
        return evaluate(S, strand, rank, r)
    if op < ops.BEGINSUM and op > ops.EVALUATE:
        return use_variables(S, strand, rank, s, r, line)
    if op == ops.BEGINSUM:
        return begin_sum(S, rank)
    if op == ops.ROUND:
        end_round(S, strand, rank, r)
        return layout.NEXT
    if op == ops.COPYB:
        return copy(S, strand, rank, s, line)
    if op == ops.AGREE:
        return agree(S, strand, rank, r, line)
    if op == ops.CYCLE:
        return cycle(S, strand, rank, s, r, line)
    if op == ops.PASS:
        if strand.passes == 0:
            return layout.NEXT
        strand.passes, strand.pc = 0, line.a
        return layout.STAYS
    if op == ops.FUSE:
        return fuse(S, s, line)
    if op == ops.FORK:
        return fork(S, strand, rank, s, r, line)
    return join(S, strand, rank, s, line)


@in_place
def communicate(S, strand, rank, s, r, line):
    """Send, receive or call, phase by phase."""
    phase = strand.phase
    while phase < phases.OVER:
        phase = advance(S, strand, rank, s, r, line, phase)
    if phase == phases.OVER:
        return end_negotiation(S, strand, rank, s, line) if line.op == ops.NEGO else layout.NEXT
    strand.woken = phase == layout.AWAITS
    if phase == layout.AWAITS and S.polls:
        begin_polling(S, strand, rank, r)
    return layout.WAITS if phase == layout.AWAITS else phase


@in_place
def advance(S, strand, rank, s, r, line, phase):
    """One phase; the next one, or what the strand does until it goes on."""
    if phase == phases.BEGINS:
        return begin(S, strand, rank, s, r, line)
    if phase == phases.CHOOSES:
        if line.op == ops.SEND:
            return choose_receiver(S, strand, s, r, line)
        return choose_exchange(S, strand, r, line)
    if phase == phases.CALLS_PORT:
        return call_port(S, strand, rank, s, r, line)
    if phase == phases.SENDS:
        return send(S, strand, rank, r, line)
    if phase == phases.SENT:
        return end_sending(S, strand, rank, line)
    if phase == phases.RECEIVES:
        return receive(S, strand, rank, s, r, line)
    if phase == phases.GOT:
        return get(S, strand, rank, s, r, line)
    if phase == phases.LANDS:
        return spend_on(strand, state.message(S, strand.message).count * S.overhead_s, phases.TAKES)
    if phase == phases.ASKS:
        return ask(S, strand, rank, s, r)
    if phase == phases.TAKES:
        return end_taking(S, strand, s, r, line)
    if phase == phases.DEPARTS:
        return depart(S, strand, rank, s, line)
    if phase == phases.ADDED:
        if line.op == ops.SWAP:
            return phases.OVER
        strand.row += 1
        return phases.CHOOSES
    if phase == phases.ALL_AHEAD:
        return wait_for_all(S, strand, s)
    return leave_all(S, strand, s, line, phase)


@in_place
def begin(S, strand, rank, s, r, line):
    """The first phase of an instruction."""
    op = line.op
    strand.turn, strand.first_departure, strand.last_departure = 0, NONE, NONE
    strand.meets = op == ops.MEET
    if op == ops.SEND:
        strand.what = line.a
        return phases.CHOOSES
    return phases.RECEIVES if op == ops.RECV else begin_call(S, strand, rank, s, r, line)


@in_place
def end_taking(S, strand, s, r, line):
    """A message has been taken."""
    take(S, strand, s, line)
    return phases.OVER if line.op == ops.RECV else take_exchange(S, strand, r, line)


@in_place
def spend(S, s, code):
    """Some seconds of a core, which others may need; then the strand goes on."""
    strand = state.strand(S, s)
    r = rank_of(S, s)
    rank = state.rank(S, r)
    on_gpu = code == layout.COMPUTES and rank.gpu == 1
    if on_gpu and rank.shared_gpu >= 0:
        compute_on(S, rank.shared_gpu, strand.spend_s, s)
    elif code != layout.TOGETHER and (S.cores_suffice == 1 or on_gpu):
        schedule(S, S.now_s + strand.spend_s / rank.speed, layout.GO, s, 0)
    else:
        kind = layout.HOP if code == layout.TOGETHER else layout.GO
        who = S.ranks if code == layout.TOGETHER and S.threaded else r
        work(S, rank.group, strand.spend_s, who, s, kind)
