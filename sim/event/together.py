"""Ring calls that all ranks make together: they are played at once when the last rank has entered."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from sim.event.ring import Call, Ring
from sim.event.shortcut import ShortCutFailed
from sim.verbs.book import TIE_S

MOST_KEPT = 1000  # plans


class Together:
    """The calls of one world, whose ranks have a host each.

    A rank that enters waits until all have; then each goes on at the moment at which it has ended the call. Messages of other calls
    that pass its port meanwhile are served between those of this one.

    Args:
        world: sim.event.world.EventWorld.
    """

    def __init__(self, world):
        self._world, self._env, self._mechanics = world, world.env, [rank.mechanics for rank in world.ranks]
        self._speeds = [one.speed for one in self._mechanics]
        self._plan = lru_cache(MOST_KEPT)(self._planned)
        self._begin()

    def _begin(self) -> None:
        """Begin anew: no rank has entered the next call."""
        ranks = len(self._mechanics)
        self._entered, self._samples = 0, 0
        self._piece: Any = None  # where it starts and stops, once the first has entered
        self._now_s, self._idle_from_s = [0.0] * ranks, [0.0] * ranks
        self._goes: list[Any] = [None] * ranks

    def enter(self, rank, piece: slice, samples: int):
        """Enter a call on a piece of the vector; the sum of all ranks' samples, when it has ended.

        Raises:
            ShortCutFailed: another rank has entered a call on another piece.
        """
        number, entering = rank.rank, (piece.start, piece.stop)
        if self._piece not in (None, entering):
            raise ShortCutFailed
        self._piece = entering
        self._now_s[number], self._idle_from_s[number] = rank.clock_s, rank.idle_from_s
        self._goes[number] = rank.thread.go
        self._entered += 1
        self._samples += samples
        if self._entered == len(self._goes):
            self._play()
        return (yield)

    def _planned(self, start: int, stop: int) -> Ring:
        world = self._world
        return Ring(slice(start, stop), world.link, world.costs.reduce, self._speeds)

    def _play(self) -> None:
        """Play the call: all ranks have entered."""
        ports = [(one.port, one.ingress) for one in self._mechanics]
        out_free_s, in_free_s = (np.array([port.free_s for port in side]) for side in zip(*ports, strict=True))
        call = Call(self._plan(*self._piece), np.array(self._now_s), out_free_s, in_free_s)
        if (call.reach_s[0] < [ingress.reached_s for _, ingress in ports]).any():
            raise ShortCutFailed
        idle_from_s = np.array(self._idle_from_s)
        if idle_from_s.min() < np.inf:
            self._world.recorder.waited(call.waits(idle_from_s))
        course = Course(call, self._goes, self._samples, self._idle_from_s, self._world.recorder.waits)
        reached_s = call.reach_s[-1].tolist()
        for number, (egress, ingress) in enumerate(ports):
            egress.free_s, ingress.free_s, ingress.reached_s = (
                course.left_s[number],
                course.end_s[number],
                reached_s[number],
            )
            self._mechanics[number].course = course
        self._begin()
        for number, ended_s in enumerate(course.ended_s):
            self._env.call(max(ended_s, self._env.now), self._go_on, (number, course))

    def _go_on(self, who: tuple[int, Course]) -> None:
        """A rank has ended a call, unless a message has held it up."""
        number, course = who
        if course.ended_s[number] > self._env.now:
            self._env.call(course.ended_s[number], self._go_on, who)
        else:
            self._mechanics[number].course = None
            course.end(number)


class Course:
    """A call on its way: the ranks that go on when it has ended, and messages of other calls that pass between its own.

    Args:
        samples: the sum.
        waits: rank, from and to of each rank's last wait are added to it.
    """

    def __init__(self, call: Call, goes: list, samples: int, idle_from_s: list[float], waits: list[float]):
        self._call, self._goes, self._samples, self._idle_from_s, self._waits = call, goes, samples, idle_from_s, waits
        # Of each rank: when it has ended, when its last message has left, and when the last one for it begins and ends to pass its port.
        self.ended_s, self.left_s = call.ended_s.tolist(), call.out_free_s.tolist()
        self._begin_s, self.end_s = call.begin_s[-1].tolist(), call.end_s[-1].tolist()
        self._others_s = [0.0] * len(goes)  # when the last message of another call has passed it

    def passing(self, mechanics, reach_s: float, message) -> tuple[float, float]:
        """When a message of another call begins and ends to pass the port of one rank, which is in this call.

        If it comes together with a message of the call, they pass in the order of their senders (sim.event.machines.in_turn).

        Raises:
            ShortCutFailed: it holds up a message after which the rank sends others.
        """
        number, call, turns = mechanics.rank.rank, self._call, len(self._call.reach_s)
        left, sender, occupancy_s = (number or len(self._goes)) - 1, message.sender, message.occupancy_s
        before_s = reach_s + TIE_S * (
            (left < sender) - (left > sender)
        )  # messages of the call that come until then are before it
        after = int(np.searchsorted(call.reach_s[:, number], before_s, side="left" if left > sender else "right"))
        free_s = call.end_s[after - 1, number] if after else call.in_free_s[number]
        begin_s = max(reach_s, self.end_s[number] if after == turns else float(free_s), self._others_s[number])
        end_s = self._others_s[number] = begin_s + occupancy_s
        if after < turns - 1 and end_s > call.begin_s[after, number]:
            raise ShortCutFailed
        if after == turns - 1 and end_s > self._begin_s[number]:
            self._hold_up(number, end_s)
        ingress = mechanics.ingress
        ingress.free_s, ingress.reached_s = max(end_s, self.end_s[number]), max(reach_s, ingress.reached_s)
        return begin_s, end_s

    def _hold_up(self, number: int, until_s: float) -> None:
        """Delay the last message for a rank: it cannot pass the rank's port before a time."""
        call = self._call
        self.end_s[number] += until_s - self._begin_s[number]
        self._begin_s[number] = until_s
        here_s = max(float(call.from_s[-1, number]), self.end_s[number]) + float(call.overhead_s[number])
        self.ended_s[number] = max(here_s, self.left_s[number])

    def end(self, number: int) -> None:
        """A rank goes on."""
        from_s, to_s = max(float(self._call.from_s[-1, number]), self._idle_from_s[number]), self._begin_s[number]
        if to_s > from_s:
            self._waits += (number, from_s, to_s)
        self._goes[number]((self.ended_s[number], self._samples))
