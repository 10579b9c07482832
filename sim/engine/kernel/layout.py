"""Records of the arrays that the kernel works on, kinds of events, and statuses of a run."""

from __future__ import annotations

import numpy as np


def record(floats: str, integers: str) -> np.dtype:
    """A record of 8-byte fields, which are read by name in compiled functions and in Python."""
    fields = [(name, np.float64) for name in floats.split()] + [(name, np.int64) for name in integers.split()]
    return np.dtype((np.record, fields))


# ---- numbers of a rank that its program reads as registers -1 - field: the first fields of RANK
STEP, VERSION, SAMPLES, MINIBATCHES, UPDATES, OVER, TOKEN, ROUNDS, NUMBER, RAN_OUT = range(10)
NUMBERS = "step version samples minibatches updates over token rounds number ran_out"
REGISTERS = 32, 64, 128, 256  # of a strand: the first number that suffices
# ---- a letter in registers
L_SENDER, L_VERSION, L_SAMPLES, L_MINIBATCHES, L_MESSAGES, L_NOTE, L_LAST, L_NUMBER, L_BYTES, L_VARIABLE = range(10)
LETTER = 10

# What does not change during a run, and counters.
CONSTANTS = (
    "latency_s overhead_s gap_s bandwidth credit local_latency_s local_overhead_s local_gap_s local_bandwidth oversleep_s "
    "evaluate_s background_s link_background_s local_background_s "
    "model_bytes sample_bytes "
    "resume_s batch input_s to_device_s compute_s pack_s to_host_s loop_s agree_s negotiate_s poll_s forward "
    "fusion_bytes buffer_bytes ramp_bytes eager_bytes window_bytes most_window_bytes trip_s",
    "polls cores_suffice in_library counts_updates variables ranks first local_wakes stores fair rings "
    "nothing tcp evaluate_every threaded own all_ranks in_parts most_minibatches layerwise rounds warm_ends least_ends meters "
    "layered",
)
COUNTERS = (
    "now_s flows_s decided_s",
    "scheduled sequence due due_first number todo alive free_messages free_departures used_messages used_departures ends messages events "
    "waits short entered slots flows timer free_flows backgrounds_left calls callbacks pause "
    "drawn_from decisions noting known_waits",
)
# Records of the arrays.
EVENT = record("time_s", "number what")
KINDS_BITS, A_BITS, B_BITS = 5, 31, 28  # of what happens: the kind of an event, and two numbers
TIMERS = 2**B_BITS - 1
INSTRUCTION = record("", "op a b c d e f g")
STRAND = record(
    "clock_s cycle_s bytes t0_s t1_s began_s spend_s",
    "pc phase rank turn to count what message departure polls woken version deadline previous first_departure last_departure meets "
    "ahead number on_gpu table row row_end adds least pending waits_for set_at list_at start stop left notes passes",
)
RANK = record(
    f"{NUMBERS} speed slept_s warm_s idle_s polled_s computed_s waited_s early_s taken since_s applied_s update_bytes begun_s "
    "updated_s layers_s computed_before_s applied_before_s",
    "host ended gpu fetched oldest slept calls hand received begun group cores shared_gpu reduced ready ready_before watch shares "
    "flowed added leader together neighbour awaits held",
)
MESSAGE = record(
    "bytes begin_s end_s held_s asked_s",
    "sender receiver version samples minibatches count note last departure next local asks waiter call variable",
)
INBOX = record("", "head tail waiter kind first stop")
DEPARTURE = record("at_s", "over waiter next number")
PORT = record("out_s in_s out_credit_s in_credit_s memory_s out_busy_s in_busy_s busy_before_s", "")
WINDOW = record("bytes free_s", "")
GROUP = record("polls speed contention turn_s", "cores busy first")
CORE = record("since_s updated_s", "tasks timer group")
TASK = record("left_s", "rank strand kind")
TURN = record("done_s since_s", "core")
RANK_SET = record("", "at first stop")
NUMBER_LIST = record("", "at room")
LINE = record("base_s slope_s cold_s floor_s", "")
SIZE = record("bytes", "count")
ROW = record("", "to source sent_from sent_to taken_from taken_to adds ahead")
TABLE = record("", "rotates ranks first bounds")
ROWS = record("", "first stop")
CHOICE = record("below_bytes", "table")
BOUND = record("", "operation a b")
CALLED = record("", "table start stop")
GRADIENT = record("at_s", "ranks waiting")
# Numbers of all ranks in a call of all, one after another; and of all parts that go round in it.
LANES = 11
CLOCK, OUT, IN, WAITED, IDLE, OVERHEAD, PACE, LEFT, BEGIN, TAKES, ADDS = range(LANES)
DECISION, ENDING = (
    record("", "first count is_known"),
    record("end_s waited_s", "last"),
)  # what follows an agreement, and where a rank is then
KNOWN_WAIT = record("from_s to_s", "before")
STEP_END = record("at_s samples", "")
ROUND = record("at_s applied computed", "ended unmade")  # of all ranks, the last of which ends a step
WAIT = record("from_s to_s", "rank")
GPU = record("progress_s updated_s speed switching", "works timer")
GPU_WORK = record("end_s", "strand")
BACKGROUND = record("begun_s span_s", "rank piece first")  # the work of a step
FLOW = record(
    "left kept weight ramp rate age_s share", "out into message handed departure asked calls last_call source to open"
)
BUCKET = record("rate depth queue through level updated_s largest free", "limits")
CALLBACK = record("", "kind message next")
FLOAT, INTEGER = record("value", ""), record("", "value")

# ---- kinds of lines of costs
COMPUTE, PARTITION, TAKE_UP, REDUCE, UPDATE, PACK, CALL, REDUCE_ROWS, TO_DEVICE = range(9)
# ---- kinds of events. HANDED and later ones: messages that share ports as flows.
(
    GO, HOP, ARRIVE, LOCAL, TIMER, BALANCE, LANDED, DEPART, POLL, STAGE, GRADIENT_READY, AGREED, GIVE_UP, HANDED, FLOW_DONE, LOOK,
    FLOW_BEGINS, LANDS, HAS_LANDED, ASKS, HAS_ASKED, NOTICED, STREAM, GPU_TIMER, PIECE, PIECE_DONE, SHELVED, GRADIENT_COPIED,
    PARAMETERS_COPIED,
) = range(29)  # fmt: skip
# ---- statuses of a run. WRONG: the text makes a mistake, or does what the kernel cannot. PAUSE: so many events have happened. After
# PAUSE and DRAWS it goes on, with more draws; after SPACE it is begun anew with more room.
FINISHED, DEADLOCK, DRAWS, SPACE, WRONG, PAUSE = range(6)
# ---- what a strand does after an instruction. Seconds of a core: SPENDS, COMPUTES (on a GPU where there is one), TOGETHER (parts at
# once). AWAITS: it waits for others, and polls where ranks poll. From ENDS on the run ends, with the status that is so much more.
NEXT, STAYS, WAITS, AWAITS, SPENDS, COMPUTES, TOGETHER = range(100, 107)
ENDS = 200

ROUND_OFF_S, CLOCK_S, NEVER_S = 1e-12, 1e-9, 1e300
TIE_S = 1e-12  # sim.verbs.book
PIECES = 8  # of a step's background work
