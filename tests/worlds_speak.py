"""Whether each world's `me` is one of the language: mypy checks it (`make lint`), and nothing here runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from real.worlds.mpi import Rank as RealRank
    from sim.event.rank import Rank
    from sim.vector.together import Together
    from sim.verbs.me import Me

    def of_events(me: Rank) -> Me:
        """A rank of the event world."""
        return me

    def of_arrays(me: Together) -> Me:
        """All workers of the vector world at once."""
        return me

    class WithThreads(RealRank):
        """With what the MPI world lacks: texts that communicate while they compute."""

        variables: range
        held: list[int]
        beside: Any
        copy: Any
        cycle: Any

    def of_mpi(me: WithThreads) -> Me:
        """A rank for real."""
        return me
