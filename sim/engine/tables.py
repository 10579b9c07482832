"""Collectives as tables: rows of exchanges whose sizes follow from the bounds of a vector; a ring has the rows of one rank for all."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim import collectives
from sim.collectives.barrier import barrier
from sim.collectives.bounds import Bound, Bounds
from sim.collectives.tuned import NAMES as TUNED
from sim.collectives.tuned import RULES
from sim.engine.kernel import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sim.collectives.base import Exchange
    from sim.job.scenario import Scenario

SLOTS = 16  # calls whose bounds are known
NOBODY = -1
ROWS = "rows"  # which each rank adds up as they go round
ROTATING = ("ring", "barrier")
FIXED = ("nccl", "reduce-broadcast")  # whose number of exchanges depends on the size
OPERATIONS = {"add": 1, "sub": 2, "mul": 3, "floordiv": 4}  # of bounds, as sim.engine.kernel.calls has them
MOST_KEPT = 1024  # ranks of collectives whose rows are kept for further scenarios


class NotBuilt(Exception):
    """A scenario that needs what the engine does not have."""


class Listed:
    """The collectives of a scenario's workers, listed as they are asked for."""

    def __init__(self, scenario: Scenario):
        self._hosts = scenario.hosts[scenario.servers :]
        self._chosen = scenario.algorithm
        self._rows, self._count = [np.zeros(0, layout.ROW)], 0  # by table, and of all
        self._tables: list[tuple[int, int, int, int]] = []
        self._ranges: list[np.ndarray] = []  # where rows of each rank begin and end, by table, shape (ranks, 2)
        self._bounds: list[tuple[int, int, int]] = []
        self._choices: list[tuple[float, int]] = []
        self._numbers: dict[str | tuple, int] = {}

    def choice(self, name: str | tuple, below_bytes: float = math.inf) -> int:
        """One line of choices by size, of a collective by name; the first line of several is an operand of CALL."""
        self._choices.append((below_bytes, self._number(name)))
        return len(self._choices) - 1

    def algorithm(self, name: str, piece: slice | None = None) -> int:
        """The first line of the choices of an algorithm; for one piece alone, where the number of exchanges depends on its size.

        Raises:
            NotBuilt: the number of exchanges depends on a size that differs.
        """
        ranks, name = len(self._hosts), self._chosen(name)
        if name == "hierarchical" and len(set(self._hosts)) == ranks:
            name = "ring"
        if name in FIXED:
            if piece is None:
                raise NotBuilt(f"{name} of any size")
            return self.choice((name, piece.start, piece.stop))
        if name != "auto":
            return self.choice(name)
        rules = next(found for below, found in RULES if ranks < below)
        lines = [self.choice(TUNED[number], below) for below, number in rules]
        return lines[0]

    def _number(self, name: str | tuple) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._tables)
            if isinstance(name, tuple):
                self._list_fixed(*name)
            elif name in ROTATING:
                self._list_rotating(name)
            else:
                self._list_of_any_size(name)
        return self._numbers[name]

    def barrier_of(self, servers: int) -> int:
        """A barrier of servers."""
        if (name := f"{servers} servers") not in self._numbers:
            self._numbers[name] = len(self._tables)
            self._list_rotating("barrier", servers)
        return self.choice(name)

    def _list_rotating(self, name: str, among: int = 0) -> None:
        ranks = among or len(self._hosts)
        rows: list[tuple]
        if name == "ring":
            found = collectives.FLAT["ring"](0, range(ranks), slice(0, ranks))
            rows = [(one.to, one.source, one.sent.start, 0, one.taken.start, 0, one.adds, one.ahead) for one in found]
        else:
            rows = [(one.to, one.source, 0, 0, 0, 0, 0, 0) for one in barrier(0, range(ranks))]
        self._tables.append((1, ranks, 0, 0))
        self._place(np.array(rows, layout.ROW), np.tile([0, len(rows)], (ranks, 1)))

    def _list_fixed(self, algorithm: str, start: int, stop: int) -> None:
        """Numbers for one piece: the bounds are constants."""
        known: dict[int, int] = {}

        def number(bound: int) -> int:
            return known.setdefault(bound, len(known) + 2)

        each = _exchanges(algorithm, tuple(self._hosts), slice(start, stop), number)
        self._add(_Rows.of(each, [(0, 0, 0), (0, 0, 0), *((0, bound, 0) for bound in known)]))

    def _list_of_any_size(self, name: str) -> None:
        hosts = tuple(self._hosts)
        self._add(_of_any_size(name, hosts) if len(hosts) <= MOST_KEPT else _of_any_size.__wrapped__(name, hosts))

    def _add(self, found: _Rows) -> None:
        """A table of the rows of each rank."""
        self._tables.append((0, len(self._hosts), len(self._bounds), len(found.bounds)))
        self._bounds += found.bounds
        self._place(found.rows, found.ranges)

    def _place(self, rows: np.ndarray, ranges: np.ndarray) -> None:
        self._ranges.append(self._count + ranges)
        self._rows.append(rows)
        self._count += len(rows)

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of sim.engine.kernel.state: rows, tables, choices, formulas of bounds, and room for bounds of calls."""
        ranks = max([1, len(self._hosts), *(len(several) for several in self._ranges)])
        most = max([2, *(table[1] + 1 if table[0] else table[3] for table in self._tables)])
        ranges = np.zeros((max(1, len(self._ranges)), ranks, 2), np.int64)
        for number, several in enumerate(self._ranges):
            ranges[number, : len(several)] = several
        return {
            "row": np.concatenate(self._rows) if self._count else np.zeros(1, layout.ROW),
            "table": np.array(self._tables or [(0,) * 4], layout.TABLE),
            "rows": np.ascontiguousarray(ranges).view(layout.ROWS)[..., 0],
            "choice": np.array(self._choices or [(0.0, 0)], layout.CHOICE),
            "bound": np.array(self._bounds or [(0, 0, 0)], layout.BOUND),
            "value": np.zeros((SLOTS, most), np.int64),
            "called": np.full(3 * SLOTS, NOBODY, np.int64).view(layout.CALLED),
        }


class _Rows(NamedTuple):
    """The rows of all ranks, where those of each begin and end, shape (ranks, 2), and the formulas of the bounds in them."""

    rows: np.ndarray
    ranges: np.ndarray
    bounds: list[tuple[int, int, int]]

    @classmethod
    def of(cls, each: list[list[tuple]], bounds: list[tuple[int, int, int]]) -> _Rows:
        """Of the rows of each rank."""
        ends = np.cumsum([0, *map(len, each)])
        return cls(np.array(list(chain.from_iterable(each)), layout.ROW), np.stack([ends[:-1], ends[1:]], 1), bounds)


@lru_cache(maxsize=16)
def _of_any_size(name: str, hosts: tuple[int, ...]) -> _Rows:
    """Bounds that follow from those of the whole: the same on all links, and for all models."""
    bounds = Bounds()

    def number(bound: int | Bound) -> int:
        return bound if isinstance(bound, int) else bound.number

    rows = _exchanges(name, hosts, bounds.whole, number)
    return _Rows.of(rows, [_formula(key) for key in bounds.formulas])


def _exchanges(name: str, hosts: tuple[int, ...], whole: slice, number: Callable) -> list[list[tuple]]:
    """The rows of each rank; `number` says that of a bound."""
    ranks, rows = range(len(hosts)), []
    for rank in ranks:
        found: Iterable[Exchange] = (
            collectives.gather_rows(rank, ranks, whole)
            if name == ROWS
            else collectives.allreduce(name, rank, hosts, whole)
        )
        own = []
        for one in found:
            to, source = (NOBODY if peer is None else peer for peer in (one.to, one.source))
            ends = [number(end) for end in (one.sent.start, one.sent.stop, one.taken.start, one.taken.stop)]
            own.append((to, source, *ends, one.adds, one.ahead))
        rows.append(own)
    return rows


def _formula(key: tuple) -> tuple[int, int, int]:
    """How a bound follows from others, or is a number; the first two are those of the whole."""
    if len(key) == 3:
        operation, left, right = key
        return OPERATIONS[operation.__name__], left, right
    (value,) = key
    return 0, value if isinstance(value, int) else 0, 0
