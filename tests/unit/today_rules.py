"""sim.event with the rules in which the language differs from it on purpose: RULES has them by name. It goes when sim.event goes."""

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from sim.event.machines.cores import ROUND_OFF_S
from sim.event.machines.mechanics import Mechanics
from sim.event.machines.streams import Ports, Streams
from sim.event.ranks.summing import Summing
from sim.event.world import EventWorld

from sim import collectives
from sim.protocols import hybrid


def reached_whole(ports: Ports, message) -> None:
    """A message from another host is there when its last byte is: a rank takes what is whole first, and sees nothing before."""
    link, port, env = ports._link, ports._mechanics.machine.ingress, ports._env
    occupancy_s, credit_s = link.occupancy_s(message.size_bytes), link.credit_s(message.size_bytes)
    message.begin_s, end_s = port.take(env.now, occupancy_s, credit_s)
    message.end_s = end_s + message.held_s
    env.after(message.end_s - env.now, ports._mechanics.inbox.put, message)


def departs_at_once(mechanics: Mechanics, to: Mechanics, message, depart=Mechanics.depart):
    """A message within a host has left when it is posted, as into a buffer of the library, and not when its receiver has copied it."""
    waits_until_taken = message.departure is not None
    left = depart(mechanics, to, message)
    if to.machine is mechanics.machine and not waits_until_taken:
        message.departure = None
        return mechanics.env.timeout(0)
    return left


def pieces_of_some(world: EventWorld, fused: bool) -> list[slice]:
    """A model whose layers all are sparse has no dense layers to sum: no call is made for the number of samples alone."""
    return collectives.pieces(world.scenario.summed, fused) if world.scenario.summed else []


def asks_behind_what_was_asked_for(streams: Streams, mine, message) -> bool:
    """A rank asks for a message once its own one to that rank is there, if it was asked for that before: in a library's call, too."""
    return mine.asked_s <= streams._mechanics.waits.polled_s + ROUND_OFF_S


def updates_whole_layers(summing: Summing, variables):
    """Of ps-layers each layer takes its part of the base of an update, and what cold caches take, before it leaves."""
    rank, update = summing.rank, summing.rank.costs.update
    for number in variables:
        size_bytes = rank.amounts.variable_bytes[number]
        seconds = update.base_s / len(rank.held) + update.slope_s * size_bytes + rank.computing.cold_s(update)
        yield from rank.work("reduce", seconds, 0, size_bytes)
        rank.computing.warm()


def updates_no_more(mechanics: Mechanics, parts_s, activity: str, *about, work_on=Mechanics.work_on):
    """And nothing is left to do when all layers are updated."""
    layerwise = mechanics.rank.layerwise and activity == "update"
    return work_on(mechanics, [0.0] if layerwise else parts_s, activity, *about)


def senders_in_order(me, workers, count: int, take_first=hybrid.take_first):
    """Workers of the hybrid are let go in the order of their numbers, and not of their gradients."""
    return sorted((yield from take_first(me, workers, count)))


RULES: dict[str, list[tuple[Any, str, Callable]]] = {  # by name: where sim.event has it, and what takes its place there
    "whole messages": [(Ports, "reached", reached_whole)],
    "buffered within a host": [(Mechanics, "depart", departs_at_once)],
    "asking in a library": [(Streams, "_goes_first", asks_behind_what_was_asked_for)],
    "updates layer by layer": [
        (Summing, "_update_some", updates_whole_layers),
        (Mechanics, "work_on", updates_no_more),
    ],
    "let go in order": [(hybrid, "take_first", senders_in_order)],
    "no sum of nothing": [(EventWorld, "pieces", pieces_of_some)],
}


@contextmanager
def rules(*names: str):
    """sim.event keeps some of these rules."""
    with ExitStack() as stack:
        for owner, attribute, value in (one for name in names for one in RULES[name]):
            stack.enter_context(patch.object(owner, attribute, lambda *given, value=value: value(*given)))
        yield
