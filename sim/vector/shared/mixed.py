"""Servers of some variables and an allreduce of the others on hosts that ranks share: step by step, in every replication.

All messages of a host pass its ports: requests, answers, gradients and notes, and those of the collective call. A worker that is let go
begins the next step while others are in the call, but nobody is two steps ahead of another: servers wait for gradients of all. So the
step at hand is reckoned together with the next one, and with the messages of the step before, of which it is known when they passed.
First nothing is known to come but requests; then all is reckoned anew with when messages came, until that stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sim.vector.exchanges import Unsettled
from sim.vector.servers.barrier_round import Wait
from sim.vector.shared.barrier import Taken, take
from sim.vector.shared.call import Call, Clocks
from sim.vector.shared.parties import Kinds, Parties
from sim.vector.shared.wires import Passed, Wires, same, settle
from sim.vector.ties import check_apart

STEPS = BEFORE, NOW, NEXT = range(3)  # that are looked at together
# From when ranks begin something, and since when they cool, to when it is over; shape (replications, ranks)
Clock = Callable[[np.ndarray, np.ndarray], np.ndarray]
Waited = tuple[np.ndarray, np.ndarray, np.ndarray | slice]  # from, to, shape (replications, ranks); and which ranks


class Noted(NamedTuple):
    """What workers do in a step.

    Args:
        before_s: from the last note to the first request, seconds, shape (replications, workers).
        computed_s: a gradient.
        updated_s: an update of what they have summed.
    """

    before_s: np.ndarray
    computed_s: Clock
    updated_s: Clock


class Ranks(NamedTuple):
    """Where ranks are, and since when they cool, shape (replications, ranks)."""

    now_s: np.ndarray
    warm_s: np.ndarray


class Stepped(NamedTuple):
    """A step.

    Args:
        called_s, place: when its messages come to ports, and in which order a rank sends its own; shape (replications, messages).
        servers, workers: when it is over.
        added_s: when servers have added all gradients, shape (replications, servers).
        waits: of servers.
        of_workers: waits of workers.
    """

    called_s: np.ndarray
    place: np.ndarray
    servers: Ranks
    workers: Ranks
    added_s: np.ndarray
    waits: Wait
    of_workers: list[Waited]


class Mixed:
    """Servers and workers of one scenario.

    Args:
        scenario: the job.
        replications: how many there are.
        speeds: of the cores of servers, and of workers, shape (replications, ranks).

    Raises:
        TooMany: the collective call has too many messages to lay out.

    Attributes:
        noted: steps that workers have noted, and servers have not made.
    """

    first_leads = False  # all servers let workers go

    def __init__(self, scenario, replications: int, speeds: tuple[np.ndarray, np.ndarray]):
        self._speeds, self._parties = speeds, Parties(scenario)
        self._link, self._local = scenario.network, scenario.cluster.local
        hosts = np.array(scenario.hosts)
        senders, receivers, port_s = (np.tile(one, len(STEPS)) for one in self._parties.messages())
        self._wires = Wires(senders, receivers, hosts, port_s, self._link.latency_s, self._local.latency_s)
        shape = replications, len(STEPS), len(senders) // len(STEPS)
        self._called_s, self._place = np.full(shape, np.inf), np.zeros(shape)
        # When messages of the step before began to pass ports, out and in.
        self._begun_s = np.full((2, *shape), -np.inf)
        self._free_s = (np.zeros((replications, hosts.max() + 1)),) * 2
        self._idle = (np.full(self._free_s[0].shape, -np.inf),) * 2
        self._servers, self._workers = (Ranks(*(np.zeros((replications, one.shape[1])),) * 2) for one in speeds)
        self.noted: deque[Noted] = deque()

    @property
    def senders(self) -> int:
        """How many workers send gradients to servers."""
        return len(self._parties.leads)

    def is_ready(self, is_last: bool) -> bool:
        """Whether the next step can be settled: it is noted, and the one after it if there is one."""
        return len(self.noted) > 1 - is_last

    def settle(self, updated_s: Sequence[Clock]) -> Stepped:
        """The next step.

        Args:
            updated_s: updates of servers in it, and in the one after it, as far as workers have noted these steps.

        Raises:
            Unsettled: which of two messages comes first cannot be told.
        """
        begin, steps = (self._servers, self._workers), list(zip(self.noted, updated_s, strict=True))
        before: list = []  # how messages of this step passed ports the last time, and what that came to

        def go_on(passed: Passed, called_s: np.ndarray, place: np.ndarray):
            found_s, in_place = called_s.copy(), place.copy()
            own = called_s[:, NOW], *(one[:, NOW] for one in passed)
            if not before or any(map(_differ, before[0], own)):
                before[:] = own, self._step(Passed(*own[1:]), own[0], begin, *steps[0])
            made = [before[1]]
            if len(steps) > 1:
                over_s = np.max([np.where(one < np.inf, one, 0.0).max(axis=1) for one in own[1:]], axis=0)
                own = Passed(*(one[:, NEXT] for one in passed))
                between = made[0].servers, made[0].workers
                made.append(self._step(own, called_s[:, NEXT], between, *steps[1], over_s))
            for number, one in enumerate(made, NOW):
                found_s[:, number], in_place[:, number] = one.called_s, one.place + number * place.shape[2]
            return np.where(np.isnan(found_s), np.inf, found_s), in_place, made[0]

        known_s = np.full(self._called_s.shape, np.inf)
        known = self._called_s, self._place, self._free_s, known_s
        with np.errstate(invalid="ignore"):  # of what never comes
            called_s, place, passed, found = settle(self._wires, *known, go_on, self._begun_s)
        self._check(called_s, passed)
        self._called_s = np.concatenate([called_s[:, NOW:], known_s[:, :1]], axis=1)
        self._place = np.concatenate([place[:, NOW:], place[:, :1]], axis=1) - place.shape[2]
        begun_s = self._wires.begun_s(passed)[:, :, NOW]
        self._begun_s[:, :, BEFORE] = np.where(begun_s < np.inf, begun_s, -np.inf)
        self._servers, self._workers = found.servers, found.workers
        self.noted.popleft()
        return found

    def let_go(self, now_s: np.ndarray) -> np.ndarray:
        """Servers post notes: when they have, shape (replications, servers).

        Raises:
            Unsettled: they do so at another time than was reckoned with.
        """
        if not same(now_s, self._servers.warm_s):
            raise Unsettled
        return self._servers.now_s

    def _step(
        self,
        passed: Passed,
        called_s: np.ndarray,
        ranks: tuple[Ranks, Ranks],
        noted: Noted,
        then_s: Clock,
        over_s: np.ndarray | None = None,
    ) -> Stepped:
        """A step, where messages pass ports so.

        Args:
            called_s: when they came to them, shape (replications, messages).
            ranks: servers and workers as it begins.
            noted, then_s: what workers do, and servers' updates.
            over_s: when all messages of the step before have passed, shape (replications,). A call that begins after that is left out.
        """
        of, (servers, workers), speeds = self._parties, ranks, self._speeds[1]
        leave, reach, begin, here = map(of.kinds, passed)
        leads, others, count = of.leads, of.others, of.away.shape[1]
        requests_s = self._sent(workers.now_s + noted.before_s, slice(None))
        come_s = reach.answers, begin.answers, here.answers
        answers = _collect(come_s, requests_s[:, -1], of.answer_s / speeds[:, None])
        computed_s, waits = noted.computed_s(answers.over_s, workers.warm_s), _each(answers.waits, slice(None))
        joined_s, left_s = self._join(computed_s, reach.handed, waits)
        gradients_s = self._sent(joined_s[:, leads], leads)
        served = self._serve((reach, begin, here), servers.now_s)
        copied_s = served.begun_s[:, :, count:] + of.gradient_s / self._speeds[0][:, :, None]
        gone_s = np.where(of.away[:, leads], leave.gradients, copied_s).max(axis=1)
        left_s[:, leads] = np.maximum(gradients_s[:, -1], gone_s)
        updated_s = then_s(served.over_s, servers.warm_s)
        notes_s, turn = self._notes(updated_s, served.place[:, :, count:])
        if over_s is not None and (left_s.min(axis=1) > over_s).all():
            summed_s, warm_s, pieces_s = left_s, computed_s, np.full(of.kinds(called_s).pieces.shape, np.inf)
        else:
            summed_s, warm_s, pieces_s = self._sum(left_s, computed_s, called_s, passed, noted.updated_s, waits)
        come_s = reach.notes, begin.notes, here.notes
        notes = _collect(come_s, summed_s[:, leads], of.note_s / speeds[:, None, leads])
        ended_s = summed_s.copy()
        ended_s[:, leads] = notes.over_s
        ended_s[:, others] = np.maximum(summed_s[:, others], reach.freed) + of.freed_s / speeds[:, others]
        waits += [*_each(notes.waits, leads), (summed_s[:, others], reach.freed, others)]
        near_s = computed_s[:, others], ended_s[:, of.leads_of]
        called = Kinds(requests_s, served.done_s[:, :, :count], gradients_s, notes_s, *near_s, pieces_s)
        place = of.place._replace(answers=served.place[:, :, :count], notes=of.place.notes + turn)
        over = Ranks(notes_s.max(axis=2), updated_s), Ranks(ended_s, warm_s)
        return Stepped(called.flat(), place.flat(len(called_s)), *over, served.over_s, served.waits, waits)

    def _sent(self, now_s: np.ndarray, of: np.ndarray | slice) -> np.ndarray:
        """When some workers have called the port for a message to each server, shape (replications, servers, workers)."""
        return now_s[:, None] + np.cumsum(self._parties.overhead_s[:, of], axis=0) / self._speeds[1][:, None, of]

    def _join(self, computed_s: np.ndarray, reach_s: np.ndarray, waits: list[Waited]) -> tuple[np.ndarray, np.ndarray]:
        """When those that send for their host have added what others handed in, and when these go on; shape (replications, workers)."""
        of, speeds = self._parties, self._speeds[1]
        joined_s, left_s = computed_s.copy(), computed_s.copy()
        for leads, own in of.alike:
            come_s, speed = reach_s[:, own], speeds[:, leads, None]
            core_s = (of.handed_s + of.joined_s) / speed + np.zeros(own.shape)
            taken = take(np.arange(own.shape[1]), (come_s,) * 3, computed_s[:, leads], core_s)
            joined_s[:, leads] = taken.over_s
            left_s[:, of.others[own]] = taken.begun_s + of.handed_s / speed
            waits += _each(taken.waits, leads)
        return joined_s, left_s

    def _serve(self, times: tuple[Kinds, Kinds, Kinds], now_s: np.ndarray) -> Taken:
        """Servers take requests, which they answer at once, and gradients, which they add; requests are first."""
        of = self._parties
        core_s = np.concatenate([of.answered_s, of.gradient_s + of.added_s], axis=1) / self._speeds[0][:, :, None]
        come_s = [np.concatenate([one.requests, one.gradients], axis=2) for one in times]
        return take(of.up, come_s, now_s, core_s)

    def _notes(self, now_s: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """When servers have called the port for notes, in the order in which they added gradients, and the turn of each."""
        of, order = self._parties, np.argsort(place, axis=2)
        away = np.take_along_axis(np.broadcast_to(of.away[:, of.leads], order.shape), order, 2)
        in_turn_s = now_s[:, :, None] + self._link.overhead_s / self._speeds[0][:, :, None] * np.cumsum(away, axis=2)
        turn = np.argsort(order, axis=2)
        return np.take_along_axis(in_turn_s, turn, 2), turn

    def _sum(self, now_s, computed_s, called_s: np.ndarray, passed: Passed, updated_s: Clock, waits: list[Waited]):
        """When workers have summed and updated the other variables, since when they cool, and when pieces come to ports."""
        of, speeds = self._parties, self._speeds[1]
        if not of.sums:
            return now_s, computed_s, called_s[:, of.pieces]
        waits.append((now_s, now_s + of.agree_s, slice(None)))
        begun_s = now_s + of.agree_s + of.call_s / speeds
        call = Call(of.plan, of.seconds, speeds, Clocks(begun_s, *self._idle))
        floors_s = None
        if np.isfinite(called_s).all():
            floors_s = np.full(call.pass_s.shape, -np.inf)
            begun = passed.leave_s - of.port_s, passed.pass_s
            for floor_s, come_s, begin_s in zip(floors_s, (called_s, passed.reach_s), begun, strict=True):
                floor_s[:, :-1] = np.where(begin_s > come_s, begin_s, -np.inf)[:, of.pieces]
        over_s = updated_s(call.reckon(floors_s).now_s, computed_s)
        waits += [(from_s, to_s, ranks) for ranks, from_s, to_s in call.waits()]
        return over_s, over_s, call.come_s[0][:, :-1]

    def _check(self, called_s: np.ndarray, passed: Passed) -> None:
        """What comes to a port or a rank together is on its way before."""
        of = self._parties
        self._wires.check_apart(called_s, passed.reach_s, of.leads_s)
        reach = of.kinds(passed.reach_s[:, NOW])
        up_s, answers_s, notes_s, handed_s = of.leads_to_ranks_s
        check_apart(np.concatenate([reach.requests, reach.gradients], axis=2), of.up, up_s)
        for come_s, lead_s in ((reach.answers, answers_s), (reach.notes, notes_s)):
            check_apart(come_s.swapaxes(1, 2), np.arange(come_s.shape[1]), lead_s.T)
        for _leads, own in of.alike:
            check_apart(reach.handed[:, own], np.arange(own.shape[1]), handed_s)


def _collect(come_s: tuple[np.ndarray, np.ndarray, np.ndarray], now_s: np.ndarray, core_s: np.ndarray) -> Taken:
    """Each worker takes a message from each server; times have the shape (replications, servers, workers)."""
    of_workers = [one.swapaxes(1, 2) for one in come_s]
    return take(np.arange(come_s[0].shape[1]), of_workers, now_s, core_s.swapaxes(1, 2))


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
    return not np.array_equal(one, other)


def _each(waits: Wait, ranks: np.ndarray | slice) -> list[Waited]:
    return [(waits[0][:, :, turn], waits[1][:, :, turn], ranks) for turn in range(waits[0].shape[2])]
