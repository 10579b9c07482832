"""The calls after all ranks know which gradients to sum: equal for equal gradients, counted from the moment when rank 0 knew it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from sim import collectives
from sim.collectives.schedule import Schedule, schedule
from sim.model.sizes import ITEM_BYTES
from sim.vector.calls import KNOWN, Calls
from sim.vector.cycles.answers import met_answer
from sim.vector.cycles.decided_waits import InTurn, Waits
from sim.vector.cycles.tails import Tail
from sim.vector.exchanges import Ports, Unsettled
from sim.vector.shared.calls import Last
from sim.verbs.fusion import fuse

AHEAD = 16  # single gradients that are worked out together: after one comes the next
MOST_KEPT_BYTES = 2**26  # of tables of other jobs
MOST_TAILS = 64  # that are kept
MOST_NUMBERS = 4_000_000  # of messages, in calls that are worked out together; and of waits that are kept


BY_SIZE = ("ring", "tree", "recursive-doubling")  # where a piece begins matters to how others halve it
CLOCKS = "ends", "in_free", "last_reach", "waits", "waits_from", "waits_to", "told", "out_free"


_kept: OrderedDict[tuple, Decided] = OrderedDict()


def decided(scenario, negotiation, speeds: np.ndarray, settings: tuple) -> Decided:
    """The tables of a job; those of an equal one, whatever its minibatch, its stragglers and its seed, if they are kept.

    Args:
        scenario, negotiation, speeds: see Decided.
        settings: of the verb; algorithm and fusion_bytes come first.
    """
    costs, sizes = scenario.costs, tuple(variable.size for variable in scenario.summed)
    of_costs = costs.pack, costs.reduce, costs.call, costs.negotiate_s
    key = (
        scenario.network,
        scenario.local,
        of_costs,
        tuple(scenario.hosts),
        sizes,
        speeds.shape,
        speeds.tobytes(),
        settings,
    )
    found = _kept.pop(key, None) or Decided(scenario, negotiation, speeds, *settings[:2])
    while _kept and sum(one.size_bytes for one in _kept.values()) > MOST_KEPT_BYTES:
        _kept.popitem(last=False)
    _kept[key] = found
    return found


class Decision(NamedTuple):
    """Gradients to sum.

    Args:
        kind: of replication, by the speeds of its ranks.
        first, last: from and to which gradient, counted as they become ready.
    """

    kind: int
    first: int
    last: int


class Decided:
    """Tables of what decisions come to, a row each, in seconds after rank 0 has all requests.

    Args:
        scenario: of the job.
        negotiation: sim.vector.cycles.by_tree.ByTree, by_name.ByName, or shared.asking.Asking.
        speeds: of each rank's core, shape (kinds, ranks).
        algorithm, fusion_bytes: as the protocol's.

    Attributes:
        ends_s, in_free_s, last_reach_s: clocks of ranks and ports after it, shape (decisions, ranks).
        idle_s: from when until when each port was idle before the last messages reached it, shape (2, times, decisions, ranks).
        waits_s: that each rank waits, once it has been told.
        waits_from_s, waits_to_s: the first begins and the last ends.
        told_s: when the answer begins to come to each rank.
        out_free_s: when the port by which its messages leave is free.
        last_s: when all ranks and ports are done with it, shape (decisions,).
    """

    def __init__(self, scenario, negotiation, speeds: np.ndarray, algorithm: str, fusion_bytes: int):
        self._scenario = scenario
        self._costs, self._speeds, self._algorithm, self._fusion_bytes = scenario.costs, speeds, algorithm, fusion_bytes
        pieces = collectives.pieces(scenario.summed, fused=False)
        self._pieces, self._ranks = pieces[::-1], speeds.shape[1]
        self._shared = not scenario.apart
        self._calls = negotiation.calls if self._shared else Calls(scenario, scenario.hosts)
        told = negotiation.tell(scenario.network.overhead_s / speeds, speeds)
        self._agreed_s = (self._ranks > 1) * self._costs.negotiate_s / speeds
        self._begun = told.ports._replace(now_s=told.ports.now_s + self._agreed_s)
        self._pass_s, self._told_idle_s = told.pass_s, told.idle_s
        self._negotiation = negotiation
        self._known: dict[Decision, int] = {}
        self._dense: np.ndarray | None = None
        self._in_dense = 0  # how many of those that are known
        self._rows: dict[tuple, int] = {}
        self._kept: dict[int, InTurn] = {}
        self._tails: dict[int, Tail] = {}
        self._decisions: list[Decision | None] = [None]  # the first row is what was before all of them
        never_s = -self._never_idle(1)
        first = np.concatenate([np.zeros((len(CLOCKS), 1, self._ranks)), *never_s]).swapaxes(0, 1)
        self._table = np.ascontiguousarray(first)
        self._show()

    @cached_property
    def _answer_plan(self) -> Schedule | None:
        """The answer, if that is some exchanges."""
        answers = self._negotiation.answers()
        return None if answers is None else schedule(answers)

    @property
    def size_bytes(self) -> int:
        """Of the table."""
        return self._table.nbytes

    def numbers(self, kinds: np.ndarray, firsts: np.ndarray, lasts: np.ndarray) -> list[int]:
        """The rows of decisions, which are worked out if they have not been."""
        known = self._known
        wanted = [*map(Decision, kinds.tolist(), firsts.tolist(), lasts.tolist())]
        try:
            return [known[one] for one in wanted]
        except KeyError:
            self._work_out(self._and_next({one for one in wanted if one not in known}))
        return [known[one] for one in wanted]

    def _and_next(self, decisions: set[Decision]) -> list[Decision]:
        """And single gradients after single ones."""
        found = set(decisions)
        for kind, first, last in decisions:
            if last == first + 1:
                ahead = range(last, min(first + AHEAD, len(self._pieces)))
                found |= {Decision(kind, one, one + 1) for one in ahead} - self._known.keys()
        return sorted(found)

    def _work_out(self, decisions: list[Decision]) -> None:
        alike = defaultdict(list)
        for one in decisions:
            alike[self._sums(one)].append(one)
        new, together = [sums for sums in alike if sums not in self._rows], max(1, MOST_NUMBERS // self._messages())
        for start in range(0, len(new), together):
            some = [alike[sums][0] for sums in new[start : start + together]]
            waits = Waits(len(some), self._ranks)
            ports, idle_s, told_s = self._play(some, waits.add)
            clocks = ports.now_s, ports.in_free_s, ports.last_reach_s, waits.waits_s, waits.from_s, waits.to_s
            columns = np.array([*clocks, told_s, ports.out_free_s])
            self._keep(some, np.concatenate([columns, *idle_s]).swapaxes(0, 1))
        for sums, own in alike.items():
            self._known.update(dict.fromkeys(own, self._rows[sums]))
        self._show()

    def _sums(self, decision: Decision) -> tuple:
        """What a decision comes to follows from this: its calls, and of most algorithms their sizes alone."""
        calls = []
        for buffer in fuse(self._pieces[decision.first : decision.last], self._fusion_bytes):
            piece = _whole(buffer)
            algorithm, items = self._calls.named(self._algorithm, piece), piece.stop - piece.start
            calls.append((algorithm, 0 if algorithm in BY_SIZE else piece.start, items, len(buffer) > 1))
        return (decision.kind, *calls)

    def _keep(self, decisions: list[Decision], rows: np.ndarray) -> None:
        """More rows of the table, of which there is room for twice as many whenever it is full."""
        first, after = len(self._decisions), len(self._decisions) + len(decisions)
        if after > len(self._table):
            room = np.empty((max(after, 2 * len(self._table)) - len(self._table), *self._table.shape[1:]))
            self._table = np.concatenate([self._table, room])
        self._table[first:after] = rows
        self._rows.update(zip(map(self._sums, decisions), range(first, after), strict=True))
        self._decisions += decisions

    def _show(self) -> None:
        """Name the columns of the table."""
        self.ends_s, self.in_free_s, self.last_reach_s, *of_waits = (
            self._table[:, clock] for clock in range(len(CLOCKS))
        )
        self.waits_s, self.waits_from_s, self.waits_to_s, self.told_s, self.out_free_s = of_waits
        idle_s = self._table[:, len(CLOCKS) :]
        self.idle_s = idle_s.reshape(len(idle_s), 2, -1, self._ranks).transpose(1, 2, 0, 3)
        self.last_s = self.ends_s.max(axis=1)

    def _never_idle(self, decisions: int) -> np.ndarray:
        known = max(1, min(KNOWN, 2 * (self._ranks - 1))) if self._calls.may_be_ring(self._algorithm) else 1
        return np.full((2, known, decisions, self._ranks), np.inf)

    def _messages(self) -> int:
        """Messages of all ranks in a call, roughly; those of a ring are not kept."""
        return 2 * self._ranks * self._ranks.bit_length()

    def tail(self, number: int) -> Tail:
        """The end of the last call of a decision.

        Raises:
            Unsettled: what comes to ports meanwhile cannot be told.
        """
        decision = self._decisions[number]
        if number not in self._tails:
            if decision is None:
                raise Unsettled
            while len(self._tails) >= MOST_TAILS:
                del self._tails[next(iter(self._tails))]
            self._tails[number] = self._last_call(decision)
        return self._tails[number]

    def _last_call(self, decision: Decision) -> Tail:
        speeds, (ports, idle_s), buffers = self._speeds[[decision.kind]], *self._before_last(decision)
        *earlier, algorithm = [self._calls.named(self._algorithm, _whole(buffer)) for buffer in buffers]
        ports, copy_s = self._entered(ports, [_whole(buffers[-1])], [len(buffers[-1]) > 1], speeds)
        after_ring = earlier[-1:] == ["ring"]
        return self._calls.tail(algorithm, _whole(buffers[-1]), ports, speeds, copy_s, after_ring, idle_s)

    def _before_last(self, decision: Decision) -> tuple[tuple[Ports, np.ndarray], list[list[slice]]]:
        """The clocks before the last call of a decision, and when ports were idle; and its buffers."""
        buffers = fuse(self._pieces[decision.first : decision.last], self._fusion_bytes)
        before = decision._replace(last=decision.last - len(buffers[-1]))
        return self._play([before], lambda *_: None)[:2], buffers

    def last(self, number: int) -> Last:
        """The last call of a decision of ranks that share hosts.

        Raises:
            Unsettled: nothing has been decided before.
        """
        decision = self._decisions[number]
        if decision is None:
            raise Unsettled
        speeds, ((ports, _), buffers) = self._speeds[[decision.kind]], self._before_last(decision)
        piece = _whole(buffers[-1])
        entered, copy_s = self._entered(ports, [piece], [len(buffers[-1]) > 1], speeds)
        work_s = self._work_s(np.array([decision.kind]), [piece], copy_s)
        algorithm = self._calls.named(self._algorithm, piece)
        return Last(algorithm, piece, None if len(buffers) == 1 else entered, speeds, work_s, copy_s)

    def _work_s(self, kinds: np.ndarray, pieces: list[slice], copy_s: np.ndarray) -> np.ndarray:
        """What each rank does between the answer and the first call."""
        size_bytes = np.array([[ITEM_BYTES * (piece.stop - piece.start)] for piece in pieces], float)
        return self._agreed_s[kinds] + copy_s + self._costs.call(size_bytes) / self._speeds[kinds]

    def _play(self, decisions: list[Decision], waited) -> tuple[Ports, np.ndarray, np.ndarray]:
        """The calls of several decisions at once, buffer by buffer; clocks, times when ports were idle, and when ranks are told."""
        kinds = np.array([decision.kind for decision in decisions])
        ports, before = Ports(*(clock[kinds] for clock in self._begun)), [""] * len(decisions)
        idle_s = self._never_idle(len(decisions))
        idle_s[:, 0], told_s = self._told_idle_s[:, kinds], self._pass_s[kinds]
        buffers = [fuse(self._pieces[decision.first : decision.last], self._fusion_bytes) for decision in decisions]
        for turn in range(max(map(len, buffers), default=0)):
            groups = defaultdict(list)
            for row, own in enumerate(buffers):
                if turn < len(own):
                    piece = _whole(own[turn])
                    algorithm = self._calls.named(self._algorithm, piece)
                    alike = () if self._calls.alike(algorithm) else (piece.start, piece.stop)
                    in_turn = before[row] == (algorithm if self._shared else "ring")
                    groups[algorithm, in_turn, alike].append((row, piece, len(own[turn]) > 1))
                    before[row] = algorithm
            for (algorithm, in_turn, _), calls in groups.items():
                if not turn and self._shared:
                    self._answer_and_call(algorithm, calls, (ports, idle_s, told_s), kinds, waited)
                    continue
                try:
                    self._call(algorithm, in_turn, calls, (ports, idle_s), kinds, waited)
                except Unsettled:
                    if turn:
                        raise
                    self._answer_and_call(algorithm, calls, (ports, idle_s, told_s), kinds, waited)
        return ports, idle_s, told_s

    def _answer_and_call(self, algorithm: str, calls, clocks, kinds: np.ndarray, waited) -> None:
        """The same of the first call, if its messages may come to a port before the answer."""
        if not self._shared:
            for row, piece, several in calls:
                self._answer_meets_call(algorithm, (row, piece, several), clocks, kinds[[row]], waited)
            return
        rows, pieces, several = (list(column) for column in zip(*calls, strict=True))
        (ports, _, told_s), speeds = clocks, self._speeds[kinds[rows]]
        _, copy_s = self._entered(Ports(*(clock[rows] for clock in ports)), pieces, several, speeds)
        work_s = self._work_s(kinds[rows], pieces, copy_s)
        assert not isinstance(self._calls, Calls)  # of ranks that share hosts
        after, told_s[rows] = self._calls.answer_and_play(algorithm, pieces, speeds, work_s, _in_rows(waited, rows))
        for whole, part in zip(ports, after._replace(now_s=after.now_s + copy_s), strict=True):
            whole[rows] = part

    def _answer_meets_call(
        self, algorithm: str, call: tuple[int, slice, bool], clocks, kind: np.ndarray, waited
    ) -> None:
        """The same of ranks with a host each, in one row: what each is told and what it is sent pass its port as they come."""
        if self._answer_plan is None or algorithm == "ring":
            raise Unsettled
        (row, piece, several), (ports, idle_s, told_s), speeds = call, clocks, self._speeds[kind]
        met = met_answer(
            self._answer_plan,
            lambda told: self._entered(
                told._replace(now_s=told.now_s + self._agreed_s[kind]), [piece], [several], speeds
            ),
            lambda begun, copy_s: self._calls.tail(algorithm, piece, begun, speeds, copy_s, False, None),
            self._scenario.network,
            speeds,
        )
        for whole, part in zip(ports, met.ended.ports, strict=True):
            whole[row] = part[0]
        told_s[row], idle_s[:, :, row], idle_s[:, 0, row] = met.told_s[0], np.inf, met.idle_s[:, 0]
        for from_s, to_s in met.ended.waits_s.swapaxes(0, 1):
            waited([row], from_s, to_s, slice(None))

    def _call(self, algorithm: str, after_ring: bool, calls, clocks, kinds: np.ndarray, waited) -> None:
        """Copy into the buffer, sum, and copy out of it; in some rows of the clocks."""
        rows, pieces, several = (list(column) for column in zip(*calls, strict=True))
        speeds, (ports, idle_s) = self._speeds[kinds[rows]], clocks
        some, copy_s = self._entered(Ports(*(clock[rows] for clock in ports)), pieces, several, speeds)
        waited_in = _in_rows(waited, rows)
        after, known_s = self._calls.play(algorithm, pieces, some, speeds, waited_in, after_ring, idle_s[:, :, rows])
        idle_s[:, :, rows] = np.inf
        idle_s[:, : known_s.shape[1], rows] = known_s
        after = after._replace(now_s=after.now_s + copy_s)
        for whole, part in zip(ports, after, strict=True):
            whole[rows] = part

    def _entered(
        self, ports: Ports, pieces: list[slice], several: list[bool], speeds: np.ndarray
    ) -> tuple[Ports, np.ndarray]:
        """The clocks when ranks have copied into the buffer and begin to sum, and seconds of copying."""
        size_bytes = np.array([[ITEM_BYTES * (piece.stop - piece.start)] for piece in pieces], float)
        copy_s = np.array(several)[:, None] * self._costs.pack(size_bytes) / speeds
        return ports._replace(now_s=ports.now_s + copy_s + self._costs.call(size_bytes) / speeds), copy_s

    @property
    def can_be_dense(self) -> bool:
        """Whether `dense` takes little memory."""
        return len(self._speeds) * len(self._pieces) ** 2 <= MOST_NUMBERS

    def dense(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All that is known, as arrays.

        All columns, shape (decisions, columns, ranks); the rows of decisions by kind, first and last, or -1, shape (kinds, gradients,
        gradients + 1); and `last_s`.
        """
        if self._dense is None:
            gradients = len(self._pieces)
            self._dense = np.full((len(self._speeds), gradients, gradients + 1), -1)
        for one, number in islice(self._known.items(), self._in_dense, None):
            self._dense[one] = number
        self._in_dense = len(self._known)
        return self._table, self._dense, self.last_s

    def waits_after(self, number: int, from_s: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """Seconds that ranks wait, once told, after a moment; one for each of `ranks`."""
        if self._ranks**2 > MOST_NUMBERS:  # too many to be kept, if it is a ring
            return self._waits_again(number, from_s, ranks)
        return self._waits_of(number).after(from_s, ranks)

    def _made(self, number: int) -> Decision:
        decision = self._decisions[number]
        assert decision is not None  # before the first nobody waits
        return decision

    def _waits_again(self, number: int, from_s: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        found_s = np.zeros(len(ranks))

        def add(_, begin_s, end_s, who):
            if isinstance(who, slice):
                first_s, last_s = begin_s[0, ranks], end_s[0, ranks]
            else:
                of_all_s = np.zeros((2, self._ranks))
                of_all_s[:, who] = begin_s[0], end_s[0]
                first_s, last_s = of_all_s[:, ranks]
            found_s[:] += np.maximum(last_s - np.maximum(first_s, from_s), 0)

        self._play([self._made(number)], add)
        return found_s

    def _waits_of(self, number: int) -> InTurn:
        """Of every rank."""
        if number not in self._kept:
            listed: list[list[np.ndarray]] = [[], []]

            def keep(_, from_s, to_s, ranks):
                for times_s, given_s in zip(listed, (from_s, to_s), strict=True):
                    times_s.append(np.zeros(self._ranks))
                    times_s[-1][ranks] = given_s[0]

            self._play([self._made(number)], keep)
            if sum(waits.size for waits in self._kept.values()) > MOST_NUMBERS:
                self._kept.clear()
            self._kept[number] = InTurn(*(np.array(times_s).reshape(-1, self._ranks).T for times_s in listed))
        return self._kept[number]


def _whole(buffer: list[slice]) -> slice:
    """The piece that a buffer is; its variables lie side by side, the last of them first."""
    return slice(buffer[-1].start, buffer[0].stop)


def _in_rows(waited, rows: list[int]):
    return lambda from_s, to_s, ranks: waited(rows, from_s, to_s, ranks)
