"""What runs have noted of sums after decisions (sim/engine/kernel/decided.py), for later runs of this process.

It is the same for all jobs with equal networks, costs, gradients and settings, whatever their minibatch, stragglers and random seed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.engine.kernel import layout
from sim.engine.kernel.decided import ARRIVALS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from sim.engine.arrays.shape import Shape
    from sim.engine.kernel.state import State

MOST_JOBS = 16  # of which it is kept
MOST_NUMBERS, DECISIONS, KNOWN_WAITS = 2**22, 1024, 2**21  # arrivals of all ranks, and what is noted at most
HEARD_WAITS = 2**18  # of one decision that is played by events
COUNTS = "decisions", "known_waits"


class Noted(NamedTuple):
    """Arrays, and how much of them is in use."""

    arrays: dict[str, np.ndarray]
    counts: dict[str, int]


_kept: OrderedDict[Hashable, Noted] = OrderedDict()
_lock = threading.Lock()


def take(shape: Shape) -> Noted:
    """What has been noted for a job; nobody else has it until it is given back."""
    if not shape.decides:
        return _empty()
    with _lock:
        found = _kept.pop(key(shape), None)
    ranks = shape.scenario.ranks
    return found or _empty(
        shape.variables, min(DECISIONS, MOST_NUMBERS // (ARRIVALS * ranks) + 1), ranks, KNOWN_WAITS, HEARD_WAITS
    )


def give_back(shape: Shape, state: State) -> None:
    """A run has ended, or has been ended while it noted something, which is then forgotten."""
    if not shape.decides:
        return
    counts = {name: int(state.record[name][0]) for name in COUNTS}
    if state.record["noting"][0] > 0:
        counts["decisions"] -= 1
        last = state.arrays["decision"][counts["decisions"]]
        state.arrays["latest"]["value"][last["first"]] = last["before"] + 1
    with _lock:
        _kept[key(shape)] = Noted({name: state.arrays[name] for name in _empty().arrays}, counts)
        while len(_kept) > MOST_JOBS:
            _kept.popitem(last=False)


def _empty(variables: int = 1, decisions: int = 1, ranks: int = 1, waits: int = 1, heard: int = 1) -> Noted:
    arrays = {
        "decision": np.zeros(decisions, layout.DECISION),
        "ending": np.zeros((decisions, ranks), layout.ENDING),
        "known_arrival": np.zeros((decisions, ranks * ARRIVALS), layout.KNOWN_ARRIVAL),
        "known_wait": np.zeros(waits, layout.KNOWN_WAIT),
        "heard_wait": np.zeros(heard, layout.HEARD_WAIT),
        "latest": np.zeros(variables, layout.INTEGER),
    }
    return Noted(arrays, dict.fromkeys(COUNTS, 0))


def key(shape: Shape) -> Hashable:
    """What says what ranks do after a decision."""
    of = shape.scenario
    costs = of.costs.pack, of.costs.reduce, of.costs.call, of.costs.negotiate_s
    return of.network, costs, tuple(of.speeds), tuple(one.size for one in of.summed), of.protocol
