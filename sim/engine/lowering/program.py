"""Programs under construction: an assembler with labels."""

from __future__ import annotations

import numpy as np

from sim.engine.kernel import ops

NAMES = {value: name for name, value in vars(ops).items() if name.isupper() and isinstance(value, int)}


class Code:
    """The programs of all ranks; registers from the top are constants.

    Args:
        ranks: the number of them.
        width: registers of a strand.
    """

    def __init__(self, ranks: int, width: int):
        self.ranks = ranks
        self.lines: list[list[int]] = []
        self.labels: dict[str, int] = {}
        self.fixes: list[tuple[int, int, str]] = []
        self.starts = np.zeros(ranks, np.int64)
        self.sets: list[tuple[int, int, int]] = []
        self.lists: list[tuple[int, int]] = []
        self.set_room, self.list_room = np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)
        self.uses: set[str] = set()
        self.width = self.top = width
        self._of_ranks: dict[int, dict[int, float]] = {}  # numbers in registers, by rank
        self.constants: dict[float, int] = {}

    def emit(self, op: int, *operands: int | str) -> None:
        """Add an instruction; a string operand is a label."""
        self.uses.add(NAMES[op])
        line = [op, *(0 for _ in range(ops.WIDTH - 1))]
        for at, value in enumerate(operands, 1):
            if isinstance(value, str):
                self.fixes.append((len(self.lines), at, value))
            else:
                line[at] = value
        self.lines.append(line)

    def label(self, name: str) -> None:
        """Where a branch may lead."""
        self.labels[name] = len(self.lines)

    def constant(self, value: float) -> int:
        """A register with a number."""
        value = float(value)
        if value not in self.constants:
            self.top -= 1
            self.constants[value] = self.top
        return self.constants[value]

    def by_rank(self, values: dict[int, float]) -> int:
        """A register with another number at each of some ranks."""
        self.top -= 1
        self._of_ranks[self.top] = values
        return self.top

    def registers(self, strands: int) -> np.ndarray:
        """What is in the registers of strands at first."""
        first = np.zeros(self.width)
        first[list(self.constants.values())] = list(self.constants)
        found = np.tile(first, (strands, 1))
        for register, values in self._of_ranks.items():
            for begin in range(0, strands, self.ranks):
                found[begin + np.array(list(values)), register] = list(values.values())
        return found

    def set_of(self, first: int, stop: int, ranks: list[int]) -> int:
        """A set of ranks between two, at each of `ranks`."""
        at = int(self.set_room[ranks[0]])
        self.sets.append((at, first, stop))
        self.set_room[ranks] = at + stop - first
        return len(self.sets) - 1

    def list_of(self, room: int, ranks: list[int]) -> int:
        """A list, or a dict of small integers, at each of `ranks`."""
        at = int(self.list_room[ranks[0]])
        self.lists.append((at, room))
        self.list_room[ranks] = at + room
        return len(self.lists) - 1

    @property
    def set_starts(self) -> np.ndarray:
        """Where the sets of each rank begin."""
        return np.cumsum(self.set_room) - self.set_room

    @property
    def list_starts(self) -> np.ndarray:
        """Where the lists of each rank begin."""
        return np.cumsum(self.list_room) - self.list_room

    def program(self) -> np.ndarray:
        """All instructions."""
        for at, operand, name in self.fixes:
            self.lines[at][operand] = self.labels[name]
        return np.array(self.lines, np.int64)


def y(field: int) -> int:
    """A rank's number as a register."""
    return -1 - field
