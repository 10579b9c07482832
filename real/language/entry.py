"""The text of a protocol over MPI, as a runtime."""

from __future__ import annotations

from functools import partial

from real.engines import ENGINES
from real.runtime import Joined, Runtime


class OwnText(Runtime):
    """Ranks of MPI that follow the protocol's text."""

    world, about, engines = "mpi", "our text over MPI", tuple(ENGINES)

    def has(self, protocol):
        return True

    def check(self, scenario):
        scenario.check_evaluation()

    def joined(self, comm, jobs):
        from real.language.session import Session

        return Joined(partial(Session, comm))
