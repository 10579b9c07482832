"""Whether each world's `me` is one of the language: mypy checks it (`make lint`), and nothing here runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.event.ranks.rank import Rank

    from real.worlds.mpi import Rank as RealRank
    from sim.verbs.me import Me

    from real.worlds.mpi import Rank as RealRank

    def of_events(me: Rank) -> Me:
        """A rank of the event world."""
        return me

    def of_mpi(me: RealRank) -> Me:
        """A rank for real."""
        return me
