"""sim.event with the rules in which the language differs from it on purpose: RULES has them by name. It goes when sim.event goes."""

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from sim import collectives
from sim.event.machines.cores import ROUND_OFF_S
from sim.event.machines.mechanics import Mechanics
from sim.event.machines.streams import Ports, Streams
from sim.event.world import EventWorld


def reached_whole(ports: Ports, message) -> None:
    """A message from another host is there when its last byte is: a rank takes what is whole first, and sees nothing before."""
    link, port, env = ports._link, ports._mechanics.machine.ingress, ports._env
    occupancy_s, credit_s = link.occupancy_s(message.size_bytes), link.credit_s(message.size_bytes)
    message.begin_s, end_s = port.take(env.now, occupancy_s, credit_s)
    message.end_s = end_s + message.held_s
    env.after(message.end_s - env.now, ports._mechanics.inbox.put, message)


def departs_at_once(mechanics: Mechanics, to: Mechanics, message, depart=Mechanics.depart):
    """A message within a host has left when it is posted, as into a buffer of the library, and not when its receiver has copied it."""
    left = depart(mechanics, to, message)
    if to.machine is mechanics.machine and message.departure is left:
        message.departure = None
        return mechanics.env.timeout(0)
    return left


def pieces_of_some(world: EventWorld, fused: bool) -> list[slice]:
    """A model whose layers all are sparse has no dense layers to sum: no call is made for the number of samples alone."""
    return collectives.pieces(world.scenario.summed, fused) if world.scenario.summed else []


def asks_behind_what_was_asked_for(streams: Streams, mine, message) -> bool:
    """A rank asks for a message once its own one to that rank is there, if it was asked for that before: in a library's call, too."""
    return mine.asked_s <= streams._mechanics.waits.polled_s + ROUND_OFF_S


RULES: dict[str, tuple[type, str, Callable]] = {
    "whole messages": (Ports, "reached", reached_whole),
    "buffered within a host": (Mechanics, "depart", departs_at_once),
    "asking in a library": (Streams, "_goes_first", asks_behind_what_was_asked_for),
    "no sum of nothing": (EventWorld, "pieces", pieces_of_some),
}


@contextmanager
def rules(*names: str):
    """sim.event keeps some of these rules."""
    with ExitStack() as stack:
        for name in names:
            owner, attribute, value = RULES[name]
            stack.enter_context(patch.object(owner, attribute, lambda *given, value=value: value(*given)))
        yield
