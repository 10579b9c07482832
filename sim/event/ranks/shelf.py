"""A worker's parameters, variable by variable: kept as they come, and taken as they are needed."""

from __future__ import annotations

import simpy

from sim.event.ranks.message import Message
from sim.recording.traces import Activity


class Shelf:
    """Replaces a worker's inbox where variables travel one by one; other threads receive them.

    Args:
        mechanics: sim.event.machines.mechanics.Mechanics, of the worker.
    """

    def __init__(self, mechanics):
        self._mechanics, self._rank = mechanics, mechanics.rank
        self._here: set[tuple[int, int]] = set()
        self._awaited: dict[tuple[int, int], simpy.Event] = {}

    def end(self, _leave) -> None:
        """Nothing: other threads receive what comes."""

    def put(self, message: Message) -> None:
        """Begin to receive a message, which is kept when its last byte has come."""
        mechanics = self._mechanics
        if message.asked is not None:
            message.landed.callbacks.append(lambda _: self._put_down(message))
            mechanics.ports.ask(message)
            return
        if message.end_s is None:
            message.begin_s = mechanics.env.now
            message.end_s = mechanics.env.now + mechanics.local.occupancy_s(message.size_bytes)
            message.departure.succeed()
        mechanics.env.after(message.end_s - mechanics.env.now, self._put_down, message)

    def _put_down(self, message: Message) -> None:
        rank = self._rank
        if rank.rows:
            about = (message.size_bytes, message.sender, message.version)
            times_s = (message.begin_s, self._mechanics.env.now)
            rank.recorder.rows.append(Activity(*times_s, rank.rank, message.version, "receive", 0, *about))
        for neighbour in rank.neighbours:  # ranks for which this one receives too
            shelf, key = self._mechanics.everyone[neighbour].inbox, (message.version, message.variable)
            self._mechanics.through_memory(message.variable, lambda _, shelf=shelf, key=key: shelf.add(key))
        self.add((message.version, message.variable))

    def add(self, key: tuple[int, int]) -> None:
        """The parameters of (step, variable) are at hand."""
        self._here.add(key)
        if key in self._awaited:
            self._awaited.pop(key).succeed()

    def parameters(self, number: int):
        """Wait until the parameters of a variable are at hand for this step."""
        rank, key = self._rank, (self._rank.step, number)
        if key not in self._here:
            rank.computing.layers.pause()
            start_s = rank.clock_s
            self._awaited[key] = missing = self._mechanics.env.event()
            yield missing
            rank.waited(start_s, rank.clock_s, rank.amounts.server_of[number])
            rank.computing.layers.resume()
        self._here.remove(key)
