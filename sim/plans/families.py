"""Configurations that differ by their batch alone are a family. The largest batch passes the most samples a second.

Parts of a step take the same whatever the batch is, or grow with it in proportion at most; they follow one another, or the longest of
some counts. So a step of twice the batch takes at most twice as long. A large batch that misses a target says that smaller ones do.
This does not hold where time cuts computing short (`me.compute_until`, `me.compute_renewing`), and is not known of a user's own text.
Caches that go cold while a rank waits longer (`Line.cold_s`), and Horovod's whole cycles, are exceptions of a percent or so: ALIKE.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING

from sim.plans.configurations import Configuration
from sim.protocols import is_ours

if TYPE_CHECKING:
    from sim.plans.candidates import Candidate
    from sim.protocols.base import Protocol

ALIKE = 1.02  # times as fast: a batch that would miss the target even so is no tie with smaller ones
but_batch: Callable[[Configuration], tuple] = attrgetter(
    *(one.name for one in fields(Configuration) if one.name != "batch")
)


def of(protocol: Protocol, one: Configuration) -> Hashable:
    """The family of a configuration; empty if nothing is known of its batches."""
    return but_batch(one) if is_ours(protocol) and not protocol.limits_computing else ()


def largest_first(
    candidates: Sequence[Candidate], effort: int, fewest: int, wanted: int, proven: set[Hashable]
) -> list[Candidate]:
    """Those that are to be simulated next: of each family the largest batch, which may beat the others; more to make `fewest`.

    Args:
        candidates: in the order in which they are promising, which is that of their batches within a family.
        effort: those that had this effort; those of less are still to come to it.
        wanted: so many of a family at once that is `proven`.
        proven: families of which several are wanted.
    """
    found: list[Candidate] = []
    for most in range(1, fewest + 1):
        begun: Counter[Hashable] = Counter()
        found = []
        for one in candidates:
            begun[one.family] += 1
            at_once = max(most, wanted) if one.family in proven else most
            if one.effort == effort and (not one.family or begun[one.family] <= at_once):
                found.append(one)
        if len(found) >= fewest:
            break
    return found


def learn(simulated: Iterable[Candidate], others: Iterable[Candidate], lost: Callable[[Candidate], bool]) -> None:
    """Tell smaller batches what larger ones came to: they are no faster, and beaten where one is lost.

    Args:
        lost: whether a batch is so far from the target that smaller ones are, too.
    """
    told = defaultdict(list)
    for one in simulated:
        if one.family and one.figures:
            told[one.family].append((one.configuration.batch, one.hoped, lost(one)))
    for one in others if told else ():
        for batch, speed, is_lost in told.get(one.family, ()):
            if one.configuration.batch < batch:
                one.no_faster, one.beaten = min(one.no_faster, speed), one.beaten or is_lost


def best_of_each(candidates: Iterable[Candidate]) -> list[Candidate]:
    """All that were simulated, and of each family the largest batch of the others if no larger one was."""
    largest: dict[Hashable, int] = {}
    several = list(candidates)
    for one in several:
        largest[one.family] = max(largest.get(one.family, 0), one.configuration.batch)
    return [one for one in several if one.figures or not one.family or one.configuration.batch == largest[one.family]]
