"""Gradients that are summed while others are computed: the buffers they are copied into, and the cycles in which ranks agree on them."""

from __future__ import annotations

from sim.language.collectives import SETTINGS, summed
from sim.language.rank import Rank
from sim.language.verbs import CLOCK_S, agreed, agreed_by_name, buckets, pause, until_woken
from sim.model.sizes import ITEM_BYTES

NAMES = {"algorithm": SETTINGS, "order": ("parameters", "uniform", "end")}  # that settings may be
AT_ONCE = 1 / 256  # of a backward pass: gradients that are ready within it count as ready together


def on_time(me: Rank, begin_s: float, cycle_s: float) -> float:
    """When the first cycle begins that is not over, of those that follow one another from `begin_s` on and find nothing to do."""
    if cycle_s == 0:
        return max(begin_s, me.now())
    late_s = me.now() - CLOCK_S - begin_s
    return begin_s + cycle_s * (1 + int(late_s / cycle_s)) if late_s > 0 else begin_s


def ready_together(me: Rank, text) -> list[tuple[int, int]]:
    """The layers in stretches (first, stop) whose gradients count as ready together, the last layers first.

    Those of a stretch are ready within AT_ONCE of a backward pass that takes its time by parameters. Else, and where ranks name each
    gradient, a stretch is a layer.
    """
    fine = text.by_name or text.order != "parameters"
    return buckets(me, 0.0 if fine else AT_ONCE * me.weights.items * me.item_bytes)


def reduce_in_cycles(me: Rank, text, begin_s: float, ready: list, idle: list):
    """Sum the gradients of a step, in each cycle those that are ready at all ranks; when the next cycle may begin.

    Args:
        text: whose settings are algorithm, fusion_bytes, cycle_s, order and by_name.
        ready: one for each of the stretches that are ready together.
    """
    done, begins = 0, [len(me.layers), *(first for first, _ in ready_together(me, text))]
    while done < len(begins) - 1:
        begin_s = text.cycle_s + (yield from cycle(me, begin_s, text.cycle_s, ready, idle))
        most = yield from negotiated(me, ready, done, len(begins) - 1, text.by_name)
        yield from reduce_ready(me, begins[most], begins[done], text.fusion_bytes, text.algorithm)
        done = most
    return begin_s


def cycle(me: Rank, begin_s: float, cycle_s: float, ready: list, asleep: list):
    """Wait for the first cycle, at `begin_s` or now if that is over, that finds another gradient ready here; when it begins."""
    begin_s = max(begin_s, me.now())
    yield from pause(me, begin_s)
    if not ready:
        yield from until_woken(me, asleep)
        begin_s = on_time(me, begin_s, cycle_s)
        yield from pause(me, begin_s)
    return begin_s


def negotiated(me: Rank, ready: list, done: int, all_of: int, by_name: bool):
    """How many gradients all ranks have ready, `done` of which are summed by now; those are no longer among this rank's others."""
    most = done + len(ready)
    if me.n > 1:
        if by_name:
            most = yield from agreed_by_name(me, most, done, all_of, me.workers)
        else:
            most = yield from agreed(me, most, all_of, me.workers)
        yield from me.work(seconds=me.library.negotiate_s)
    for _ in range(most - done):
        ready.pop()
    return most


def reduce_ready(me: Rank, first: int, stop: int, size_bytes: int, algorithm: str):
    """Sum the gradients of layers first to stop - 1, the last first, as many in a call as fit in a buffer, and at least one."""
    firsts = fitting(me, size_bytes)
    while stop > first:
        begin = max(firsts[stop], first)
        yield from reduced(me, begin, stop, algorithm)
        stop = begin


def fitting(me: Rank, size_bytes: int) -> list[int]:
    """For each layer, the first one whose gradient fits in a buffer with all up to the one before it; that one alone always does."""
    firsts, first = [0], 0
    for stop in range(1, len(me.layers) + 1):
        while first < stop - 1 and ITEM_BYTES * me.of(me.gradient, first, stop).items > size_bytes:
            first += 1
        firsts.append(first)
    return firsts


def reduced(me: Rank, first: int, stop: int, algorithm: str):
    """Sum the gradients of layers first to stop - 1 in one call; several are copied into a buffer, and out of it."""
    piece = me.of(me.gradient, first, stop)
    if stop - first > 1:
        yield from me.work(seconds=me.library.copy.seconds(piece.items))
    yield from summed(me, piece, algorithm)
    if stop - first > 1:
        yield from me.work(seconds=me.library.copy.seconds(piece.items))
