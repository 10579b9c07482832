"""The background threads of all ranks, in every replication: cycle after cycle, each deciding what to sum next."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np

from sim.vector import compiled
from sim.vector.cycles.by_name import ByName
from sim.vector.cycles.by_tree import ByTree
from sim.vector.cycles.decided import decided
from sim.vector.cycles.late_waits import Cycle, LateWaits, Moved
from sim.vector.cycles.negotiation import Asked, Begun, joined
from sim.vector.cycles.tails import Meeting
from sim.vector.exchanges import MOST_ROUNDS, Unsettled, nearness
from sim.vector.shared.asking import Asking

NEAR_S = 2e-13  # moments that differ by less may come in either order, as rounding has it


class _Step(NamedTuple):
    """A step of all ranks.

    Args:
        ready_s: when each gradient is ready, shape (gradients, replications, ranks).
        everywhere_s: when it is so at all ranks, shape (gradients, replications).
        computed_s: when each rank has computed, shape (replications, ranks).
    """

    ready_s: np.ndarray
    everywhere_s: np.ndarray
    computed_s: np.ndarray


class _Agreed(NamedTuple):
    """A cycle until all ranks have asked, in some replications.

    Args:
        now_s: when ranks have ended the cycle before, shape (replications, ranks).
        begin_s: when they begin this one, likewise.
        last: how many gradients are summed after it, shape (replications,).
        asked: their requests.
    """

    now_s: np.ndarray
    begin_s: np.ndarray
    last: np.ndarray
    asked: Asked

    @classmethod
    def joined(cls, parts: list[tuple[np.ndarray, _Agreed]], count: int) -> _Agreed:
        """Of so many replications, in each of which is one of the parts, at some of their numbers."""
        if len(parts) == 1:
            return parts[0][1]
        rows, several = [some for some, _ in parts], [part for _, part in parts]
        order = np.argsort(np.concatenate(rows))
        now_s = np.concatenate([part.now_s for part in several])[order]
        begin_s = np.concatenate([part.begin_s for part in several])[order]
        last = np.concatenate([part.last for part in several])[order]
        return cls(now_s, begin_s, last, joined(rows, [part.asked for part in several], count))


class Background:
    """The background threads of all ranks, in every replication.

    Args:
        group: sim.vector.group.Group, of the ranks.
        algorithm, fusion_bytes, cycle_s, by_name: settings of the verb.
    """

    def __init__(self, group, algorithm: str, fusion_bytes: int, cycle_s: float, by_name: bool):
        scenario, replications = group.world.scenario, len(group.now_s)
        self.settings, self._group, self._cycle_s = (algorithm, fusion_bytes, cycle_s, by_name), group, cycle_s
        speeds, self._kinds = np.unique(group.speeds, axis=0, return_inverse=True)
        link = scenario.network
        self._negotiation = self._agreeing(scenario, by_name)
        self.table = decided(scenario, self._negotiation, speeds, self.settings)
        self._speeds = speeds
        self._overhead_s = link.overhead_s / speeds
        self._from_s = np.full(group.now_s.shape, -np.inf)  # when the last cycle of each rank began
        self._fresh = True  # nobody has begun a cycle
        # The decision that each replication has behind it, and when all requests for it had come.
        self._after, self._after_s = np.zeros(replications, int), np.full((replications, 1), -np.inf)

    def _agreeing(self, scenario, by_name: bool) -> ByName | ByTree | Asking:
        """How ranks negotiate."""
        if not scenario.apart:
            return Asking(scenario, by_name)
        return ByName(scenario.network) if by_name else ByTree(scenario.ranks, scenario.network)

    def carried(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """What it carries from one step to the next: moments, and other numbers; each of shape (replications, some)."""
        from_s = np.maximum(self._from_s, self._group.now_s - self._cycle_s)  # none earlier makes a difference
        return [from_s, self._after_s], [self._after[:, None]]

    def resumed(self, group, rows: np.ndarray, moments: list[np.ndarray], numbers: list[np.ndarray]) -> Background:
        """The threads of another group of the same ranks, that begin where a step of these ends.

        Args:
            rows: which of these replications each of the group's is.
            moments, numbers: as `carried` has them.
        """
        found = copy(self)
        found._group, found._kinds, found._fresh = group, self._kinds[rows], False
        (found._from_s, found._after_s), found._after = moments, numbers[0][:, 0].astype(int)
        return found

    def step(self, now_s: np.ndarray, ready_s: np.ndarray, computed_s: np.ndarray, late: LateWaits) -> np.ndarray:
        """All cycles of a step; when each rank's thread is at its end, shape (replications, ranks).

        Args:
            now_s: when it begins, likewise.
            ready_s: when each gradient is ready, shape (gradients, replications, ranks).
            computed_s: when each rank has computed.
            late: is told of cycles after that.
        """
        if compiled.in_use() and late.sums and self.can_be_compiled:
            with suppress(Unsettled):  # arrays say then whether it is so
                return self._step_compiled(now_s, ready_s, computed_s, late.sums)
        step = _Step(ready_s, ready_s.max(axis=2), computed_s)
        first_s, table = computed_s.min(axis=1), self.table
        rows, count = np.arange(len(now_s)), np.zeros(len(now_s), int)
        ended_s = np.empty_like(now_s)
        while rows.size:
            cycle = self._agree(step, rows, count, now_s, late)
            self._from_s[rows], self._fresh = cycle.begin_s, False
            kinds, asked = self._kinds[rows], cycle.asked
            numbers = np.array(table.numbers(kinds, count, cycle.last))
            root_s = asked.root_s
            is_late = root_s[:, 0] + table.last_s[numbers] > first_s[rows]
            if is_late.any():
                waits = [(slice(None), cycle.now_s, cycle.begin_s), *asked.waits]
                late.add(Cycle(rows, computed_s[rows], waits, asked.left_s, root_s, numbers, kinds).of(is_late))
            now_s, count = root_s + table.ends_s[numbers], cycle.last
            self._after[rows], self._after_s[rows] = numbers, root_s
            over = count == len(ready_s)
            if over.any():
                ended_s[rows[over]] = now_s[over]
                rows, count, now_s = rows[~over], count[~over], now_s[~over]
        return ended_s

    def _agree(self, step: _Step, rows: np.ndarray, count: np.ndarray, now_s: np.ndarray, late: LateWaits) -> _Agreed:
        """Ranks ask, and rank 0 knows.

        Args:
            rows: replications.
            count: gradients that each has summed, shape (rows,).
            now_s: when ranks have ended the last cycle, or begun the step, if nothing has held them up; shape (rows, ranks).
            late: is told of waits that last longer where something has.
        """
        try:
            return self._ask(step, rows, count, now_s)
        except Unsettled:
            numbers = self._after[rows]
            found = [
                self._meet(step, number, (rows, count, now_s), numbers == number, late) for number in np.unique(numbers)
            ]
            return _Agreed.joined(found, len(rows))

    def _meet(self, step: _Step, number: int, whole, some: np.ndarray, late: LateWaits) -> tuple[np.ndarray, _Agreed]:
        """The same of those replications that have a decision behind them, whose last messages requests may meet."""
        rows, count, now_s = (one[some] for one in whole)
        with suppress(Unsettled):
            return np.flatnonzero(some), self._ask(step, rows, count, now_s)
        if isinstance(self._negotiation, Asking):
            return np.flatnonzero(some), self._meet_on_hosts(
                self._negotiation, step, number, (rows, count, now_s), late
            )
        tail, root_s = self.table.tail(number), self._after_s[rows]
        first = ended = tail.play(None, len(rows))
        before_s = np.full(first.come_s.shape, -np.inf)
        for _ in range(MOST_ROUNDS):
            meeting = Meeting(ended, root_s)
            agreed = self._ask(step, rows, count, root_s + ended.ports.now_s, meeting)
            if meeting.is_near(before_s):
                late.add(Moved.of(rows, step.computed_s[rows], root_s, first.waits_s, ended.waits_s))
                return np.flatnonzero(some), agreed
            before_s = meeting.floors_s
            ended = tail.play(before_s, len(rows))
        raise Unsettled

    def _meet_on_hosts(self, asking: Asking, step: _Step, number: int, of, late: LateWaits) -> _Agreed:
        """The same of ranks that share hosts: the last call and requests are played as one."""
        rows, count, now_s = of
        everywhere_s, root_s, before_s = step.everywhere_s[count, rows], self._after_s[rows], self._from_s[rows]
        step_s = np.where(count[:, None] == 0, now_s, -np.inf)  # from when a rank may ask, if none has in this step

        def begin(ranks, ended_s: np.ndarray) -> np.ndarray:
            at_s = np.maximum(root_s + ended_s, step_s[:, ranks])
            return self._cycle(at_s, before_s[:, ranks], everywhere_s[:, None]) - root_s

        def more(begin_s: np.ndarray) -> np.ndarray:
            return self._more(step, rows, root_s + begin_s)

        found = asking.ask_after(self.table.last(number), now_s - root_s, begin, more)
        for moved in found.moved(rows, step.computed_s[rows], root_s):
            late.add(moved)
        begin_s = root_s + found.begin_s
        last = self._agreed(begin_s, step.ready_s, step.everywhere_s, rows, count)
        return _Agreed(np.maximum(root_s + found.ended_s, step_s), begin_s, last, found.asked.after(root_s))

    def _more(self, step: _Step, rows: np.ndarray, begin_s: np.ndarray) -> np.ndarray:
        """Gradients that have become ready at each rank since it asked before, until it asks then."""
        there = step.ready_s[:, rows]
        return np.count_nonzero((self._from_s[rows] < there) & (there <= begin_s), axis=0)

    def _ask(self, step: _Step, rows, count, now_s: np.ndarray, meeting: Meeting | None = None) -> _Agreed:
        """The same, of ranks that end the last cycle, or begin the step, then."""
        ready_s, everywhere_s, before_s = step.ready_s, step.everywhere_s, self._from_s[rows]
        begin_s = self._cycle(now_s, before_s, everywhere_s[count, rows][:, None])
        last = self._agreed(begin_s, ready_s, everywhere_s, rows, count)
        in_turn = self._in_turn(now_s, begin_s, everywhere_s[count, rows])
        overhead_s = self._overhead_s if len(self._overhead_s) == 1 else self._overhead_s[self._kinds[rows]]
        numbers, root_s, table = self._after[rows], self._after_s[rows], self.table
        if meeting is None:
            ports = root_s + table.in_free_s[numbers], root_s + table.last_reach_s[numbers]
        else:
            ports = meeting.in_free_s, meeting.last_reach_s

        idle = partial(_later, table.idle_s, numbers, root_s)
        more = partial(self._more, step, rows, begin_s)
        begun = Begun(begin_s, overhead_s, *ports, idle, in_turn, more, meeting)
        if isinstance(self._negotiation, Asking):
            out_free_s, speeds = root_s + table.out_free_s[numbers], self._speeds[self._kinds[rows]]
            return _Agreed(now_s, begin_s, last, self._negotiation.ask(begun, out_free_s, speeds))
        return _Agreed(now_s, begin_s, last, self._negotiation.ask(begun))

    @property
    def can_be_compiled(self) -> bool:
        """The loops know requests up a tree, of ranks with a host each."""
        return isinstance(self._negotiation, ByTree) and self.table.can_be_dense

    @property
    def for_loops(self) -> tuple:
        """Tree, link, cycle_s, near_s and apart_s, as sim.vector.compiled.background.play has them."""
        negotiation = self._negotiation
        assert isinstance(negotiation, ByTree)  # can_be_compiled
        return negotiation.layout, negotiation.link, self._cycle_s, NEAR_S, nearness(negotiation.link[0])

    @property
    def by_rank(self) -> tuple[np.ndarray, np.ndarray]:
        """Overhead of a message, shape (kinds, ranks), and the kind of each replication."""
        return self._overhead_s, self._kinds

    def _step_compiled(
        self, now_s: np.ndarray, ready_s: np.ndarray, computed_s: np.ndarray, sums: tuple[np.ndarray, np.ndarray]
    ) -> np.ndarray:
        """The same, compiled; where a decision has not been worked out the replication begins again when it has.

        Raises:
            Unsettled: in some replication; then nothing has changed but that more decisions are worked out.
        """
        from sim.vector.compiled import background as loops

        moments_s, idle_s = sums[0], sums[1].copy()
        now_s, computed_s = (np.require(one, float, ["C", "W"]) for one in (now_s, computed_s))
        from_s, after, after_s = np.array(self._from_s, order="C"), self._after.copy(), self._after_s[:, 0].copy()
        steps = now_s, ready_s, ready_s.max(axis=2), (self._overhead_s, self._kinds)
        state = from_s, computed_s, after, after_s, self._fresh
        ended_s, ends, among = np.empty_like(now_s), np.empty((len(now_s), 3), int), np.empty((2 * now_s.size, 4), int)
        found = ended_s, idle_s, ends, among, np.empty(len(among))
        rows = np.arange(len(now_s))
        while rows.size:
            decided = self.table.dense()
            count = loops.play_steps(rows, self.for_loops, *steps, decided, moments_s, state, found)
            ended = ends[rows, 0]
            if count < 0 or not np.isin(ended, (loops.DONE, loops.UNDECIDED)).all():
                raise Unsettled
            self.add_among(among[:count], found[-1][:count], idle_s)
            rows = rows[ended == loops.UNDECIDED]
            self.table.numbers(self._kinds[rows], ends[rows, 1], ends[rows, 2])
        self._from_s, self._after, self._after_s, self._fresh = from_s, after, after_s[:, None], False
        sums[1][:] = idle_s
        return ended_s

    def add_among(self, among: np.ndarray, from_s: np.ndarray, idle_s: np.ndarray) -> None:
        """Add seconds that ranks wait after moments that are among the waits of decisions.

        Args:
            among: row of `idle_s`, rank, number of the decision, and sign; shape (moments, 4).
            from_s: the moments, from when rank 0 knew the decision, shape (moments,).
            idle_s: shape (rows, ranks).
        """
        order = np.argsort(among[:, 2], kind="stable")
        numbers, firsts = np.unique(among[order, 2], return_index=True)
        for number, own in zip(numbers.tolist(), np.split(order, firsts)[1:], strict=True):
            rows, ranks, _, signs = among[own].T
            np.add.at(idle_s, (rows, ranks), signs * self.table.waits_after(number, from_s[own], ranks))

    def _cycle(self, now_s: np.ndarray, from_s: np.ndarray, everywhere_s: np.ndarray) -> np.ndarray:
        """When each rank's next cycle begins: the first that finds a gradient ready everywhere, as the event world's `cycle`."""
        begin_s, ready_s = np.maximum(now_s, from_s + self._cycle_s), np.maximum(now_s, everywhere_s)
        if not self._cycle_s:
            return np.maximum(ready_s, begin_s)
        cycles = (ready_s - begin_s) / self._cycle_s
        whole = np.ceil(cycles)
        odd_s = np.abs(cycles - np.rint(cycles)) * self._cycle_s
        awaited = everywhere_s > now_s - NEAR_S  # or else it is ready, and rounding decides nothing
        if (awaited & (odd_s < NEAR_S) & (cycles > -0.5) & (cycles != 0)).any():
            raise self._group.world.refuse("a gradient becomes ready as a cycle begins")
        return np.maximum(ready_s, begin_s + np.maximum(whole, 0) * self._cycle_s)

    def _in_turn(self, now_s: np.ndarray, begin_s: np.ndarray, everywhere_s: np.ndarray) -> np.ndarray:
        """Whether ranks begin in the order of their numbers, if at one instant: they have waited for the same and go on in that order."""
        alike = (begin_s == everywhere_s[:, None]).all(axis=1)
        return alike | (now_s == now_s[:, :1]).all(axis=1) if self._fresh else alike

    def _agreed(self, begin_s, ready_s, everywhere_s, rows, count) -> np.ndarray:
        """How many gradients are ready at all ranks when each begins, shape (rows,); one more than were before, at least."""
        certain_s, first_s, last_s = everywhere_s[count, rows], begin_s.min(axis=1), begin_s.max(axis=1)
        last = np.maximum(count + 1, (everywhere_s[:, rows] <= first_s - NEAR_S).sum(axis=0))
        asks = np.flatnonzero(last < len(ready_s))
        asks = asks[everywhere_s[last[asks], rows[asks]] <= last_s[asks] + NEAR_S]
        while asks.size:
            number, row = last[asks], rows[asks]
            behind_s = (ready_s[number, row] - begin_s[asks]).max(axis=1)
            if ((np.abs(behind_s) < NEAR_S) & (everywhere_s[number, row] > certain_s[asks])).any():
                raise self._group.world.refuse("a gradient becomes ready as a cycle begins")
            asks = asks[behind_s <= 0]
            last[asks] += 1
            asks = asks[last[asks] < len(ready_s)]
        return last


def _later(idle_s: np.ndarray, numbers: np.ndarray, root_s: np.ndarray) -> np.ndarray:
    return root_s + idle_s[:, :, numbers]
