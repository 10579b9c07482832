"""Random numbers by (seed, replication, rank, purpose, index): worlds, protocols, cluster sizes and real runs share them.

Ranks are drawn in groups and indices in blocks, each group and block by a generator of its own. A rank's numbers therefore depend on
no other rank, and many ranks are drawn at once. Making a generator takes as long as drawing about 700 numbers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sim.base.ranges import MOST_RANKS
from sim.laws.base import Law, Steps
from sim.laws.checked import drawn

BLOCK = 128  # indices that a generator draws for a group
GROUP, FIRST_GROUP = 32, 8  # ranks; small jobs draw for few that they do not have
MOST_KEPT = 2048  # blocks, of at most 32 KiB
PURPOSES = (
    "sleep",
    "noise",
    "run",
    "data",
    "model",
    "update",
    "delay",
    "share",
    "error",
    "input",
    "background",
    "pause",
    "gradient",
)
_kept: OrderedDict[tuple, tuple[Law, np.ndarray]] = OrderedDict()


def generator(seed: int, replication: int, rank: int, purpose: str, *further: int) -> np.random.Generator:
    """The generator of one rank or group of ranks; equal arguments give equal draws in every world."""
    key = (replication, rank, PURPOSES.index(purpose), *further)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


class Ranks(NamedTuple):
    """A group of ranks that are drawn together.

    Args:
        number: of the group, from 0.
        first: rank.
        stop: the first rank of the next group.
    """

    number: int
    first: int
    stop: int


def group_of(rank: int) -> Ranks:
    """The group of a rank: the first 8 ranks, the others up to 32, and then 32 each."""
    if rank < FIRST_GROUP:
        return Ranks(0, 0, FIRST_GROUP)
    number, first = 1 + rank // GROUP, rank // GROUP * GROUP
    return Ranks(number, max(FIRST_GROUP, first), first + GROUP)


class Draws(NamedTuple):
    """The draws of one law for all ranks, for one purpose.

    Args:
        law: of each number.
        seed, replication, purpose: see `generator`.
        call: of several draws for one purpose, rank and index; 0 is the first.
    """

    law: Law
    seed: int
    replication: int
    purpose: str
    call: int = 0

    def fill(self, out: np.ndarray, ranks: range, block: int) -> None:
        """Write the first draws of a block.

        Args:
            out: shape (indices, ranks), at most BLOCK indices.
            ranks: next to one another.
        """
        rank = ranks.start
        while rank < ranks.stop:
            group = group_of(rank)
            stop = min(group.stop, ranks.stop)
            numbers = self.of_group(group, block, len(out))
            out[:, rank - ranks.start : stop - ranks.start] = numbers[:, rank - group.first : stop - group.first]
            rank = stop

    def of_group(self, group: Ranks, block: int, count: int = BLOCK) -> np.ndarray:
        """The first `count` draws of a block, shape (count, ranks of the group); kept for the next caller."""
        further = (block, self.call) if self.call else (block,)
        known = (id(self.law), self.seed, self.replication, self.purpose, group.number, *further)
        found = _kept.get(known)  # a law that is kept is still there, so no other one has its id
        if found is None or len(found[1]) < count:
            rng = generator(self.seed, self.replication, group.number, self.purpose, *further)
            found = self.law, drawn(self.law, rng, (count, group.stop - group.first))
            found[1].flags.writeable = False
            _kept[known] = found
            if len(_kept) > MOST_KEPT:
                _kept.popitem(last=False)
        return found[1][:count]


class Stream(Steps):
    """The draws of one law for one rank and purpose, by index.

    Args:
        law, seed, replication, purpose, call: see `Draws`.
    """

    def __init__(self, law: Law, seed: int, replication: int, rank: int, purpose: str, call: int = 0):
        draws, group = Draws(law, seed, replication, purpose, call), group_of(rank)
        self.draws = draws

        def values(count: int) -> np.ndarray:  # which does not refer to the stream: it goes with its last user
            blocks = [draws.of_group(group, block) for block in range(-(-count // BLOCK))]
            return np.concatenate([block[:, rank - group.first] for block in blocks])

        super().__init__(values, law.sole)


# Streams that are none of a worker's own draws.
STATES, HOSTS, PART = MOST_RANKS + 1, 2 * (MOST_RANKS + 1), 20 * MOST_RANKS


@dataclass(frozen=True)
class RandomStreams:
    """Streams of draws, by number; equal ones in every world.

    Args:
        seed: of the scenario.
        replication: of the run.
        part: of several stragglers that act together, each with random numbers of its own.
        call: of several sleeps of a rank in a step, each with draws of its own; 0 is the first.
    """

    seed: int
    replication: int
    part: int = 0
    call: int = 0

    def draws(self, law: Law, number: int) -> Stream:
        """Draws of a law: of a worker by its number, or of a host by `of_host`."""
        return Stream(law, self.seed, self.replication, self.part * PART + number, "sleep", self.call)

    def uniform(self, number: int) -> Callable[[int], np.ndarray]:
        """A function of a count: so many numbers from 0 to 1, shape (count,), on which no draws depend."""
        key = (self.seed, self.replication, self.part * PART + STATES + number, "sleep")
        return lambda count: generator(*key).random(count)

    def of_host(self, host: int) -> int:
        """The number of a host, by its index: its ranks share what is drawn for it."""
        return HOSTS + host

    def of_part(self, part: int) -> RandomStreams:
        """The streams of one of several stragglers."""
        return replace(self, part=part)
