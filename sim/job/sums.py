"""The sums that workers make in a step, counted: their calls, and the cycles in which a background thread agrees on them."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.language.moves import moves, named
from sim.model.nominal import FORWARD_SHARE
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.job.scenario import Scenario
    from sim.model.workload import Variable

MOST_MOVES = 10**6  # of a rank in a call; those beyond are not counted
ASKED = 8  # ranks whose moves are counted
BY_SIZE = "nccl"  # how many moves it has depends on the size of the vector
SOME_ITEMS = 2**20


class Call(NamedTuple):
    """A kind of call.

    Args:
        algorithm: by its name (not auto).
        turns: the messages of the rank that posts most.
        messages: of all ranks, roughly.
    """

    algorithm: str
    turns: int
    messages: int


class Sums(NamedTuple):
    """The sums of a step.

    Args:
        calls: the number of each kind.
        cycles: in which ranks agree on what to sum next; 0 where they sum when all is computed.
    """

    calls: Counter[Call]
    cycles: int = 0


def of(scenario: Scenario) -> Sums:
    """The sums of one step of ranks that are alike; cycles are those of a rank that nothing holds up."""
    protocol: Any = scenario.protocol
    if not scenario.summed or scenario.workers < 2 or not hasattr(protocol, "algorithm"):
        return Sums(Counter())
    if hasattr(protocol, "bucket_mb"):
        size_bytes = ITEM_BYTES * scenario.summed_items
        calls = min(len(scenario.summed), max(1, math.ceil(size_bytes / max(1.0, 2**20 * protocol.bucket_mb))))
        return Sums(Counter({_calling(scenario, slice(0, scenario.summed_items // calls)): calls}))
    if hasattr(protocol, "cycle_s"):
        return _in_cycles(scenario)
    each = pieces(scenario.summed, getattr(protocol, "fused", True))
    return Sums(Counter(_calling(scenario, piece) for piece in each))


def pieces(variables: Sequence[Variable], fused: bool) -> list[slice]:
    """The pieces that calls sum: the items of all variables, or of each if there are any; the last ends with the number of samples."""
    bounds = [0, *accumulate(variable.size for variable in variables)]
    bounds[-1] += 1
    return [slice(*ends) for ends in pairwise([0, bounds[-1]] if fused or not variables else bounds)]


def _calling(scenario: Scenario, piece: slice) -> Call:
    """The call that sums a piece."""
    protocol: Any = scenario.protocol
    hosts, items = tuple(scenario.hosts[scenario.servers :]), piece.stop - piece.start
    run = named(scenario.algorithm(protocol.algorithm), hosts, items)
    return _call(run, hosts, 1 << items.bit_length() if run == BY_SIZE else SOME_ITEMS)


@lru_cache(maxsize=256)  # many jobs have the same ranks
def _call(algorithm: str, hosts: tuple[int, ...], items: int) -> Call:
    """By some ranks, far from one another, and at different places of their hosts."""
    ranks = len(hosts)
    some = range(ranks - 1, -1, -(ranks // ASKED | 1))
    each = [
        sum(move.to is not None for move in islice(moves(algorithm, rank, hosts, items), MOST_MOVES)) for rank in some
    ]
    return Call(algorithm, max(each), ranks * sum(each) // len(each))


def _in_cycles(scenario: Scenario) -> Sums:
    """As many cycles as begin while gradients are computed; in each what is ready by then is summed, in pieces that fit into a buffer."""
    protocol: Any = scenario.protocol
    costs, link, cycle_s = scenario.costs, scenario.network, protocol.cycle_s
    size_bytes, pieces = ITEM_BYTES * scenario.summed_items, len(scenario.summed)
    least = min(pieces, max(1, math.ceil(size_bytes / max(1, protocol.fusion_bytes))))
    hop_s = link.latency_s + 2 * link.overhead_s
    kind = _calling(scenario, slice(0, scenario.summed_items // least))
    agree_s = costs.negotiate_s + 2 * (scenario.workers - 1).bit_length() * hop_s
    each_s = agree_s + kind.turns * hop_s + costs.call(size_bytes / least)
    left_s = (1 - FORWARD_SHARE) * costs.compute(scenario.batch) - 2 * link.occupancy_s(size_bytes)
    cycles = min(pieces, max(1, int(left_s / max(cycle_s, each_s)) if cycle_s or each_s else pieces))
    return Sums(Counter({kind: max(least, cycles)}), cycles)
