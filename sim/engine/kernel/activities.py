"""What ranks do, a row an activity, where a trace or a timeline is asked for: what sim.event.recorder keeps, on arrays.

Rows are in a block. When it is full the run stops, the block is emptied, and the run goes on (sim.engine.recording).
"""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled
from sim.engine.kernel.layout import FULL
from sim.engine.kernel.post import free_departure

NOBODY = -1
# Kinds of rows: sim.recording.activity.ACTIVITIES in order, and, for a timeline, what sim.recording.horovod_timeline collects.
NOTHING, SLEEP, INPUT, TO_DEVICE, COMPUTE, PACK, TO_HOST, SEND, RECEIVE, WAIT, REDUCE, UPDATE, EVALUATE = range(13)
READY, CYCLE, AGREED, COPIED, MOVED = range(13, 18)
UNRECORDED, RECORDED, UNAWAITED = range(3)  # departures: without a row, with one, and with one that no strand waits for


@compiled
def record(S, kind, r, step, start_s, end_s, samples, size_bytes, peer, version):
    """Add a row."""
    row = state.activity(S, S.activities)
    row.kind, row.rank, row.step, row.start_s, row.end_s = kind, r, step, start_s, end_s
    row.samples, row.bytes, row.peer, row.version = samples, size_bytes, peer, version
    S.activities += 1
    if S.activities >= S.activity_room and S.short == 0:
        S.short = FULL


@compiled
def record_activity(S, rank, r, kind, start_s, end_s, samples):
    """Add a row of what a rank has just done."""
    record(S, kind, r, rank.step, start_s, end_s, samples, 0.0, NOBODY, rank.version)


@compiled
def record_wait(S, rank, r, start_s, end_s, peer):
    """Add a row of a wait that is over."""
    record(S, WAIT, r, rank.step, start_s, end_s, 0.0, 0.0, peer, rank.version)


@compiled
def begin_activity(S, strand, rank, kind, samples, size_bytes):
    """A strand begins to work; the row is added when it goes on."""
    begin_for(S, strand, kind, samples, size_bytes, NOBODY, rank.version)


@compiled
def begin_for(S, strand, kind, samples, size_bytes, peer, version):
    """The same, with something of another rank."""
    doing = state.doing(S, strand.number)
    doing.kind, doing.since_s, doing.peer = kind, strand.clock_s, peer
    doing.samples, doing.bytes, doing.version = samples, size_bytes, version


@compiled
def end_activity(S, strand):
    """A strand goes on: what it has done until now, if it was anything, is a row."""
    doing, r = state.doing(S, strand.number), strand.rank
    kind, doing.kind = doing.kind, NOTHING
    if kind != NOTHING:
        about = doing.samples, doing.bytes, doing.peer, doing.version
        record(S, kind, r, state.rank(S, r).step, doing.since_s, strand.clock_s, *about)


@compiled
def describe(S, d, r, step, since_s, message, row):
    """What the row of a message says that has not left yet."""
    leaving = state.leaving(S, d)
    leaving.rank, leaving.step, leaving.since_s, leaving.row = r, step, since_s, row
    leaving.bytes, leaving.peer, leaving.version = message.bytes, message.receiver, message.version


@compiled
def record_sent(S, strand, d):
    """Add the row of a message whose sender has waited until it left, after those that it has sent before."""
    doing, leaving = state.doing(S, strand.number), state.leaving(S, d)
    about = leaving.bytes, leaving.peer, float(leaving.version)
    record(S, SEND, leaving.rank, leaving.step, doing.since_s, strand.clock_s, 0.0, *about)
    doing.since_s = strand.clock_s


@compiled
def record_left(S, d, at_s):
    """Add the row of a message that has left, if it has one; what no strand waits for is free then."""
    leaving = state.leaving(S, d)
    row, leaving.row = leaving.row, UNRECORDED
    if row != UNRECORDED:
        about = leaving.bytes, leaving.peer, float(leaving.version)
        record(S, SEND, leaving.rank, leaving.step, leaving.since_s, at_s, 0.0, *about)
    if row == UNAWAITED:
        free_departure(S, d)


@compiled
def record_ready(S, r, number, at_s):
    """For a timeline: a rank has its gradient of this number since the start, counted from 1."""
    record(S, READY, r, float(number), at_s, at_s, 0.0, 0.0, NOBODY, 0.0)


@compiled
def record_piece(S, kind, start_s, end_s, start, stop):
    """For a timeline: rank 0 has agreed on gradients, or copied or summed items, from one to another."""
    record(S, kind, 0, 0.0, start_s, end_s, start, stop, NOBODY, 0.0)


@compiled
def record_call(S, strand):
    """The same of a call that is over."""
    called_s = state.doing(S, strand.number).called_s
    record_piece(S, MOVED, called_s, strand.clock_s, float(strand.start), float(strand.stop))
