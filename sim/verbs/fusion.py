"""Horovod's ranks agree on the gradients to sum next, and copy them into one buffer."""

from __future__ import annotations

from collections.abc import Sequence

from sim import collectives
from sim.collectives.base import CONTROL
from sim.collectives.tree import tree
from sim.model.sizes import ITEM_BYTES
from sim.verbs.collectives import reduce
from sim.verbs.me import FORWARD_SHARE, Layer, Me
from sim.verbs.verb import verb

REQUEST = slice(0, 64)  # message of a negotiation, and its answer: bits of a cache, in items of 4 bytes
REQUEST_BYTES = ITEM_BYTES * REQUEST.stop


@verb
def compute_by_layer(me: Me, order: str):
    """Compute the gradient of the minibatch; those of the variables are ready one by one, the last variable's first.

    Args:
        order: after the forward pass each takes time in proportion to its number of `parameters`, or `uniform`; or all are ready
            at the `end`.
    """
    shares = layer_shares([variable.size for variable in me.scenario.workload.variables], order)
    yield from me.compute(Layer(None, 1 - sum(shares), backward=False))
    for number in reversed(range(len(shares))):
        yield from me.compute(Layer(number, shares[number], last=number == 0))


@verb
def negotiate(me: Me, by_name: bool = False):
    """Agree on the variables that are ready at all ranks and not yet reduced; their numbers, in the order in which they became ready.

    In simulation all know them some time after the last rank has asked (`agreement_s`). For real, messages go along a binomial tree.

    Args:
        by_name: in simulation each rank sends rank 0 one message for each variable, and gets one back.
    """
    least = me.ready
    for exchange in tree(me.rank, range(len(me.workers)), REQUEST):
        letter = yield from me.exchange(exchange._replace(adds=False, kind=CONTROL), least)
        if letter is not None:
            least = min(least, letter.ready) if exchange.adds else letter.ready
    variables, agreed = len(me.scenario.workload.variables), range(me.book.reduced, least)
    me.book.reduced = least
    return [variables - 1 - count % variables for count in agreed]


@verb
def reduce_fused(me: Me, algorithm: str, ready: list[int], fusion_bytes: int):
    """Sum the gradients of `ready` variables, buffer by buffer; one alone is not copied."""
    pieces = collectives.pieces(me.scenario.summed, fused=False)
    for buffer in fuse([pieces[variable] for variable in ready], fusion_bytes):
        piece = slice(buffer[-1].start, buffer[0].stop)  # they lie side by side, the last of them first
        if len(buffer) > 1:
            yield from me.copy(piece)
        yield from reduce(me, algorithm, piece)
        if len(buffer) > 1:
            yield from me.copy(piece)


@verb
def reduce_in_cycles(me: Me, algorithm: str, fusion_bytes: int, cycle_s: float, by_name: bool = False):
    """The background thread, for one step: in each cycle, sum what is ready everywhere, until all variables are summed.

    Args:
        cycle_s: least time from the beginning of one cycle to that of the next.
    """
    left = len(me.scenario.summed)
    while left:
        yield from me.cycle(cycle_s)
        ready = yield from negotiate(me, by_name)
        yield from reduce_fused(me, algorithm, ready, fusion_bytes)
        left -= len(ready)


def fuse(pieces: list[slice], fusion_bytes: int) -> list[list[slice]]:
    """Pieces in order, together as long as they fit in a buffer of `fusion_bytes`."""
    buffers: list[list[slice]] = []
    room = 0
    for piece in pieces:
        size_bytes = ITEM_BYTES * (piece.stop - piece.start)
        if not buffers or size_bytes > room:
            buffers.append([])
            room = fusion_bytes
        buffers[-1].append(piece)
        room -= size_bytes
    return buffers


def layer_shares(sizes: list[int], order: str) -> list[float]:
    """Each variable's share of a gradient's time, shape (variables,); the forward pass before all of them has the rest."""
    if order == "end":
        return [0.0] * len(sizes)
    weights = sizes if order == "parameters" else [1] * len(sizes)
    whole = sum(weights)  # once: a model may have 10^5 variables
    return [(1 - FORWARD_SHARE) * weight / whole for weight in weights]


def agreement_s(scenario, by_name: bool) -> tuple[float, float]:
    """Seconds from the last rank's request until all know on what they agree, and so many more for each variable.

    Along a binomial tree, and back, all hops of one length take as long as the longest. By name, rank 0 takes a message of each rank for
    each variable, and one that ends them, one after another; then it sends two to each.
    """
    hosts, network, local = scenario.hosts[scenario.servers :], scenario.network, scenario.local
    if by_name:
        each = [network if host != hosts[0] else local for host in hosts[1:]]
        seconds = [max(link.overhead_s, link.occupancy_s(REQUEST_BYTES)) for link in each]
        named_s = max(seconds, default=0.0) + sum(seconds)  # ranks send theirs at once
        return 3 * named_s + 2 * max((link.latency_s for link in each), default=0.0), named_s
    up_s = 0.0
    for away in hops(hosts):
        link = network if away else local
        up_s += link.latency_s + (1 + away) * link.overhead_s + link.occupancy_s(REQUEST_BYTES)
    return 2 * up_s, 0.0


def hops(hosts: Sequence[int]) -> list[bool]:
    """Of each hop of a binomial tree among ranks on these hosts, from the shortest on, whether any message of it is between hosts."""
    found, distance = [], 1
    while distance < len(hosts):
        found.append(any(hosts[to] != hosts[to - distance] for to in range(distance, len(hosts), 2 * distance)))
        distance *= 2
    return found
