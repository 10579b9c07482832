"""What the kernel's words mean: op-codes, kinds of events, what a run ends with, and the state's fields.

Everything is a number in a flat array, so that one source is plain Python (lists), and C (by Cython). `building.py` writes the
numbers of this file as a C enum and the fields as a class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.language import hosts
from sim.platform import polling, slow_start

NONE = -1  # no text, no message, no rank

# Op-codes. A row of the code is one of these and up to eight operands, named in the kernel where they are obeyed. An operand
# of 0 or above is a register of the text, below 0 a constant: number -1 - operand. Those before JUMP reckon, those from BEGIN_STEP on
# count, those from WORK on take time, and those from POST on are of messages and texts.
(
    MOVE, ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE, MODULO, EXCLUSIVE_OR, LESS, LESS_OR_EQUAL, EQUAL, UNEQUAL, LEAST, MOST,
    WHOLE, JUMP, JUMP_IF_NOT, REPEAT, PART, SLICE, NEW_LIST, APPEND, GET, SET, REMOVE, LENGTH, STEP, NOW,
    BEGIN_STEP, END_STEP, IN_STEP, COMPUTED, ADDED, ANEW, UPDATED, SAME_SIZE, IS_WARM, WORK, OVERHEAD, COMPUTE, FETCH, SLEEP,
    POST, TAKE, LAND, START, BESIDE, WAIT, WAIT_ALL, STOP, RING, END, TOOK,
) = range(53)  # fmt: skip
MOST_POLLS, MOST_TURNS, ROUND_OFF, ROUND_OFF_S = hosts.MOST_POLLS, hosts.MOST_TURNS, hosts.ROUND_OFF, hosts.ROUND_OFF_S
TICK_S, STAGES = hosts.TICK_S, len(polling.STAGES)
SHORTEST_S, LONGEST_S, SHARE = polling.SHORTEST_S, polling.LONGEST_S, polling.SHARE
FIRST = 2  # the register of a text's first argument
OPERANDS = 9  # numbers of a row: the op-code and its operands

# Kinds of events: a text goes on; a message reaches the next port of its path, begins to pass the last one, is there, or announced, or was
# taken; a rank's polls are fewer from now on; a core has been idle for a tick. Of messages that share ports: rates change; the bytes of one
# begin to pass, behind queues; one that was announced is asked for, leaves as its sender sees that, is all there, or is taken by nobody.
GOES_ON, REACHES, MOVES, ARRIVES, TAKEN, POLLS, BALANCES, LOOKS, BEGINS, ASKED, LEAVES, LANDS, LOST = range(13)
KINDS = 16

# What a text waits in.
(
    NOTHING, SLEEPING, COMPUTING, QUEUED, SHARING, TURNING, TAKING, LANDING, WAITING, NOTICING, RINGING, IN_LINE,
) = range(12)  # fmt: skip

# What a run, or an op-code, ends with. After one that says what is short, the run goes on with more of it.
(
    DONE, SHORT_OF_EVENTS, SHORT_OF_MESSAGES, SHORT_OF_TEXTS, SHORT_OF_ITEMS, SHORT_OF_SLEEPS, SHORT_OF_NOISE,
    SHORT_OF_WINDOWS, WRONG, PAUSED, ENDLESS, WAITS, INEXACT,
) = range(13)  # fmt: skip

THREADS, PIECES = 2**20, 8  # numbers of the texts of background work; pieces of a round's
MOST_AT_ONCE = 1_000_000  # events of each text without any time passing
EXACT = 2.0**53  # numbers are not whole beyond it
MOST_JUMPS = 2**27  # of a text's loops within one event
# Flags of a TAKE; LASTS: as long as something may come, or without waiting.
NEWEST, UNTIL, SIZED, LASTS, AT_ONCE = 1, 2, 4, 8, 16
NOT_YET = -2  # in place of a sender: nothing has come, but may; NONE: nothing comes
# Kinds of drawn numbers: two by rounds; then those that a rank has by itself, with what counts them, and how many one event takes besides.
PASSES, INPUT, UPDATES, DELAYS, SHARES, PAUSES, MOMENTS = range(7)
FACTORS = ("noise", "input", "update", "delay", "share", "pause", "moment")
BY_RANK = {
    UPDATES: ("rank_updates", 0),
    DELAYS: ("rank_came", 0),
    SHARES: ("rank_flows", 0),
    PAUSES: ("rank_pauses", 64),
    MOMENTS: ("rank_moments", PIECES),
}
HELD_BACK = -1  # in place of a hop, of a message that has been held back where it has come
GENERATION = 2**26  # handle of a text: -1 - slot - GENERATION x how many texts had the slot before it
# Handle of a message: when it has left; or GENERATION^2 + slot + GENERATION x its serial number, if it is done when that is taken.
MESSAGES = 2**25  # handle of a message that shares ports: likewise, with this more than its slot

# Of links: sim.language.hosts, sim.language.event.flows.
TIMEOUT_S = slow_start.LEAST_TIMEOUT_S
LEAST_BYTES, OF_DOUBLING, FULL, RESOLUTION, DOUBLINGS = 1e-3, 1e-6, 1 - 1e-9, 2.0**-52, 4


def fields(names: str, of: Any) -> dict[str, Any]:
    """Several fields of one kind."""
    return dict.fromkeys(names.split(), of)


# Arrays of a run: the name, and of what there is one place for each.
DOUBLES = {
    **fields("heap_time", "event"),
    **fields("registers", "register"),
    **fields("constants", "constant"),
    **fields("message_items message_bytes message_samples flow_weight", "message"),
    **fields("window_bytes window_free", "window"),
    **fields("device_turn device_contention device_switching", "device"),
    **fields("step_end step_replicated step_served", "step"),
    **fields("rank_speed", "rank"),
    "items": "item",  # of lists
    "text_due": "text",  # when it goes on; below 0: by no event
    "text_work": "text",  # seconds that it computes, or are left; of a shared device: which of the device's seconds is its last
    "text_since": "text",  # when it has begun to wait for what its rank polls for; below 0: for nothing such
    **fields("rank_idle rank_idle_after", "rank"),  # seconds since `measured_from`, until `measured_to` and after that
    "rank_since": "rank",  # until when it is counted, or bytes move
    "rank_counted": "rank",  # when that was counted last
    "rank_waits_since": "rank",  # when it has begun to poll
    "rank_stage_due": "rank",  # when its polls become fewer
    "rank_slept": "rank",  # seconds, since its background work began
    "rank_beside_at": "rank",  # when that was
    "text_worked_until": "text",  # when it has left its last core
    "text_worked_since": "text",  # when its turn there began
    "sleep": "sleep",  # seconds, by call within a round, round, rank
    "factors": "factor",  # and delays, of all kinds
    "factor_sole": "kind",  # what all numbers of the kind are; below 0: they are drawn
    "rank_warm": "rank",  # when its last pass or update ended
    "message_share": "message",  # of the piece's items that travel
    "message_passed": "message",  # when its last byte has passed the ports so far
    "message_held": "message",  # seconds by which a window delays its last byte
    **fields("port_free port_earned", "port"),  # when it is, and when it has earned the bytes that have reached it
    "port_level": "bucket",  # tokens, bytes
    "port_since": "bucket",  # until when tokens are counted
    "port_rest": "bucket",  # bytes/s that no flow has; below 0: by which its tokens become fewer
    "port_shares": "bucket",  # of flows that have no rate yet
    "flow_left": "message",  # bytes
    "flow_rate": "message",  # bytes/s; 0: it has none yet
    "flow_begun": "message",  # when its bytes have begun to pass
    "flow_share": "message",  # weight times window
    "flow_told": "message",  # when it was announced
    "flow_asked": "message",  # when its sender knows that it is asked for, if it was announced
    "flow_found": "message",  # when its receiver has found it then
    "local_free": "rank",  # port for messages within a host
    "bandwidth": "level",  # bytes/s
    **fields("poll_rate poll_lasts", "stage"),  # cores that polls of a waiting rank take, and for how many seconds
    "core_since": "core",  # the turn's beginning
    "core_updated": "core",  # until when the work of the one that has it is counted
    **fields(
        "device_done device_since", "device"
    ),  # seconds that each sharer has had since the beginning, and counted until when
    # Of the members of a ring: when they go on, when their part has left, when the one that they get begins to pass its last port, and
    # is there; until when they work or their bytes move; when one of these times began, and ended, in which their next parts may come,
    # and seconds before that in which they did not; bytes of parts, and seconds of adding them.
    **fields(
        "ring_at ring_left ring_begin ring_there ring_until ring_rest ring_rested ring_idle ring_bytes ring_sum", "rank"
    ),
    "step_computed": "step",  # samples x items of gradients; sim.language.samples says which updates count
    "rank_samples": "rank",  # samples x items within the gradient
}
INTEGERS = {
    **fields("code", "operand"),
    **fields("heap_key heap_what", "event"),
    **fields("list_begin list_length list_room", "list"),
    **fields("text_rank text_generation", "text"),
    **fields("rank_step rank_box_end rank_host", "rank"),
    **fields(
        "ring_text ring_rank ring_near", "rank"
    ),  # of the members of a ring, and whether the next one is on the same host
    **fields("message_from message_to message_step message_key flow_has_left", "message"),
    **fields("device_cores", "device"),
    **fields("core_device", "core"),
    "text_at": "text",  # its place in the code
    "text_number": "text",  # messages go to the peer's text of the same number
    "text_count": "text",  # requests so far
    "text_in": "text",  # what it waits in
    "text_of_rank": "text",  # 0 of a runtime's other threads
    "text_device": "text",  # that it computes on
    "text_core": "text",  # where it takes turns, or has last, if it is a rank's
    "text_lands": "text",  # the message for whose bytes it waits
    "text_takes": "text",  # the message that it takes, for which its sender may wait; else NONE
    "text_next": "text",  # in the chain that it waits in
    "rank_round": "rank",  # of its own; -1 before the first
    "rank_calls": "rank",  # sleeps in this round
    "rank_has_slept": "rank",  # since it fetched a minibatch
    "rank_fetched": "rank",  # the round whose whole minibatch is there
    **fields("rank_updates rank_came", "rank"),  # updates made, and messages that came
    **fields("factor_begin factor_room", "stream"),  # where a rank's numbers of a kind begin, and how many are drawn
    "factor_far": "kind",  # from one number of a rank to its next
    "rank_started": "rank",  # texts
    "rank_leads": "rank",  # whether it goes through the rounds itself, and does not follow
    "rank_main": "rank",  # whether its main text goes on
    "rank_followed": "rank",  # whether another rank follows it
    "rank_used": "rank",  # whether the gradient begins anew
    "rank_last": "rank",  # the last step in which it has computed
    "rank_busy": "rank",  # texts that sleep or compute
    "rank_box": "rank",  # the first message
    **fields("rank_takers rank_waiters", "rank"),  # the first text that waits for a message, and for another text
    **fields(
        "rank_overhead rank_line", "rank"
    ),  # the text whose message it sends or takes now, and the first that waits for that
    "rank_underway": "rank",  # messages to its main text that have not arrived
    **fields("rank_device rank_passes", "rank"),  # the device of its work, and of its passes
    "rank_beside": "rank",  # the round of its last background work
    "rank_moments": "rank",  # of its pieces of background work, so far
    "rank_asides": "rank",  # of how many messages
    "rank_polling": "rank",  # texts that wait for what it polls for
    "rank_stage": "rank",  # of that; NONE: it does not poll
    "rank_pauses": "rank",  # how many it has had
    "port_largest": "bucket",  # how often the largest window of its flows has doubled
    "place": "place",  # of a rank's port, by level
    "message_text": "message",  # the number
    "message_serial": "message",  # of one whose handle is done when it is taken; else 0
    "message_hop": "message",  # the port of its path that it reaches next
    "message_there": "message",  # 0: under way; 1: before one that was posted sooner; 2: behind it; 3: in the box
    "message_generation": "message",  # how many messages that share ports have left in its place
    "flow_announced": "message",  # whether it was announced, and is not there
    "flow_moves": "message",  # whether its bytes move
    "flow_taker": "message",  # the text that waits for it then
    "flow_first": "message",  # that goes on when this one is there
    "flow_next": "message",  # in the chain of those
    "flowing": "message",  # those that share ports
    "rank_flows": "rank",  # messages that it has posted that do
    "window_pair": "window",  # sender and receiver
    "message_next": "message",  # in the box, or of those that are free
    "device_core": "device",  # its first
    "device_polling": "device's stage",  # ranks
    "device_works": "device",  # texts that compute there in turns
    "device_busy": "device",  # texts that compute there; where they have turns: cores that do
    **fields("core_first core_works", "core"),  # the text that has it, before those that wait for it, and how many
    "device_first": "device",  # the first text that waits for a core, or the sharer that is done first
}
ARRAYS = {**DOUBLES, **INTEGERS}
# What arrays begin with where it is not 0.
BEGIN = {
    **fields("text_next text_takes text_core rank_round rank_last rank_fetched rank_box rank_box_end", NONE),
    **fields("rank_takers rank_waiters rank_overhead rank_line device_first core_first message_from window_pair", NONE),
    **fields("rank_main rank_used text_of_rank", 1),
    **fields("text_since step_end", -1.0),
    "rank_beside": -2,
    "rank_stage": NONE,
}
# Single numbers: those that are a job's, its `fair`'s or its `windows`', by the same names, and the engine's own.
OF_JOB = {
    **fields(
        "latency_s local_latency_s local_bandwidth gap_s sustained overhead_s local_overhead_s local_copy_s message_background_s "
        "local_background_s header_bytes item_bytes mix_base_s mix_s poll_s oversleep_s input_s resume_s",
        float,
    ),
    **fields("ranks steps warmup local_wakes whole_messages", int),
}
OF_FAIR = fields("ramp_bytes burst_bytes queue_bytes buffer_bytes eager_bytes receives_first", float)
OF_WINDOWS = fields("initial_bytes most_bytes", float)
NUMBERS = {
    **OF_JOB,
    **OF_FAIR,
    **OF_WINDOWS,
    **fields("now look_due round_trip_s cold_from_s cold_after_s", float),
    **fields("events texts windows flows levels", int),  # how many there are
    **fields("event_room message_room item_room window_room items_used free_message free_text", int),
    "last_row": int,  # of the code, where texts of nobody end
    **fields("shares_ports may_overtake spins fixed_lists text_bits count_bits posted happened", int),
    "hole": int,  # whether the first event has happened, and its place may be taken
    "flows_since": float,  # until when they have gone on
    "rings": int,  # whether they are gone around by one loop
    "ringing": int,  # the first text that is held in one
    "vector_items": float,  # of the weights
    **fields("measured_from measured_to", float),  # the end of the warm-up, and of the last step, so far
    "last_step": int,  # that has ended
    "left": int,  # main texts that go on
    "sole_sleep": float,  # seconds of every sleep; below 0: they are drawn
    **fields("sleeps sleep_calls", int),  # rounds for which they are drawn, and how many of each
    **fields("width own_lists", int),  # registers and lists of a text
    "running": int,  # the text that goes on where the run was broken off
    "at_once": int,  # events since time has passed
    "pause_at": int,  # how many events are looked at before it says so
}


class Numbers(list):
    """An array of the plain kernel: a place below 0 is outside, as in C."""

    def __getitem__(self, k):
        if k < 0:
            raise IndexError(k)
        return super().__getitem__(k)

    def __setitem__(self, k, value):
        if k < 0:
            raise IndexError(k)
        super().__setitem__(k, value)


class State:
    """The state of a run as plain Python's attributes; the compiled one has the same names."""

    def __init__(self) -> None:
        for name, kind in NUMBERS.items():
            setattr(self, name, kind(0))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...
