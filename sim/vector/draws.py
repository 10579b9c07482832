"""Random numbers of a group's ranks in every replication, one block of rounds at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.laws import Law
from sim.laws.steps import Steps
from sim.randomness import BLOCK, Draws, Stream, known


class Listed:
    """Values by round, replication and rank of sequences that were worked out before, such as those of stragglers with a memory.

    Args:
        steps: of each replication and rank, shape (replications, ranks).
        rounds: that there are.
        factor: on each value; a number, or shape (replications, ranks).
    """

    def __init__(self, steps: Sequence[Sequence[Stream | Steps]], rounds: int, factor: float | np.ndarray = 1.0):
        soles = {one.sole for row in steps for one in row}
        sole = soles.pop() if len(soles) == 1 else None
        self._sole: float | np.ndarray | None = None if sole is None else sole * factor
        if sole is None:
            each = np.array([[one.first(rounds) for one in row] for row in steps])
            self._values = np.moveaxis(each, 2, 0) * factor

    def __getitem__(self, step: int) -> float | np.ndarray:
        """The values of one round, shape (replications, ranks); one number if all are alike."""
        return self._values[step] if self._sole is None else self._sole

    def several(self, steps: range) -> float | np.ndarray:
        """The values of rounds next to one another, shape (rounds, replications, ranks); as of one round if all are alike."""
        return self._values[steps.start : steps.stop] if self._sole is None else self._sole


class Chosen:
    """The values of one round that stands for several, a row each.

    Args:
        values: shape (rows, ranks); one number if all are alike.
    """

    def __init__(self, values: float | np.ndarray):
        self._values = values

    def __getitem__(self, step: int) -> float | np.ndarray:
        return self._values


class Rounds:
    """What is drawn for each round, replication and rank.

    Args:
        law: of each number.
        seed, purpose: see `sim.randomness.generator`.
        replications: whose numbers these are.
        ranks: next to one another.
        rounds: that there are.
        factor: on each number; a number, or shape (replications, ranks).
        call: see `sim.randomness.Draws`.
    """

    def __init__(
        self,
        law: Law,
        seed: int,
        replications: Sequence[int],
        ranks: range,
        purpose: str,
        rounds: int,
        factor: float | np.ndarray = 1.0,
        call: int = 0,
    ):
        if law.sole is None:
            law = known(law)
        self._draws = [Draws(law, seed, replication, purpose, call) for replication in replications]
        self._ranks, self._rounds, self._factor = ranks, rounds, factor
        self._sole = None if law.sole is None else law.sole * factor
        self._number, self._block = -1, np.empty((0, len(replications), len(ranks)))

    def __getitem__(self, step: int) -> float | np.ndarray:
        """The numbers of one round, shape (replications, ranks); one number if all are alike."""
        if self._sole is not None:
            return self._sole
        number, row = divmod(step, BLOCK)
        if number != self._number:
            self._draw(number)
        return self._block[row]

    def several(self, steps: range) -> float | np.ndarray:
        """The numbers of rounds of one block, shape (rounds, replications, ranks); as of one round if all are alike."""
        if self._sole is not None:
            return self._sole
        first = steps.start // BLOCK * BLOCK
        self[steps.start]
        return self._block[steps.start - first : steps.stop - first]

    def _draw(self, number: int) -> None:
        count = min(BLOCK, self._rounds - number * BLOCK)
        if count != len(self._block):
            self._block = np.empty((count, *self._block.shape[1:]))
        for row, draws in enumerate(self._draws):
            draws.fill(self._block[:, row], self._ranks, number)
        if np.ndim(self._factor) or self._factor != 1.0:
            self._block *= self._factor
        self._number = number
