"""Stragglers from a fitted law and from the variation by rank and step."""

from __future__ import annotations

from calibration.laws.ranks import Varies
from sim.laws import Independent, Law, Persistent, SlowRanks, Stragglers, Together


def stragglers(law: Law, found: Varies | None, unit: str, median: float) -> Stragglers:
    """A law of sleeps, or of factors on computing, with the values' persistence; with the slow ranks, if it is of factors.

    Slow ranks are no part of sleeps, because what they have more is in proportion to their computing.

    Args:
        law: of the values, in seconds.
        found: how they vary; None if it is not known whose they are.
        unit: seconds or factor.
        median: of the values, seconds; a factor of 1.
    """
    drawn = {"seconds": law} if unit == "seconds" else {"factor": law.scaled(1 / median)}
    if found and found.persists:
        main: Stragglers = Persistent(persistence=round(found.persistence, 4), **drawn)
    else:
        main = law if unit == "seconds" else Independent(**drawn)
    slow = found.slow if found and unit == "factor" else {}
    parts = [SlowRanks(rank=(rank,), factor=round(ratio, 4)) for rank, ratio in slow.items()]
    return Together(of=(main, *parts)) if parts else main
