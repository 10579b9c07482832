"""The text of a protocol over MPI, as a runtime."""

from __future__ import annotations

from real.engines import ENGINES
from real.runtime import Joined, Runtime


class OwnText(Runtime):
    """Ranks of MPI that follow the protocol's text."""

    world, about, engines = "mpi", "our text over MPI", tuple(ENGINES)

    def has(self, protocol):
        return True

    def check(self, scenario):
        scenario.check_evaluation()

    def joined(self, comm, jobs, timeline=None):
        return JoinedRanks(comm)


class JoinedRanks(Joined):
    """This rank; sessions share nothing but the communicator."""

    def __init__(self, comm):
        self._comm = comm

    def runner(self, training, progress=True):
        from real.language.session import Session

        return Session(self._comm, training, progress)
