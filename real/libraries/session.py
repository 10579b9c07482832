"""Runs in which a library sums gradients: MPI joins the ranks, the library moves the gradients."""

from __future__ import annotations

from pathlib import Path

from real.language.session import Session
from real.libraries.summed import Library, SummedGradients, SummedRank, waits_apart
from real.training.tensorflow_setup import failures_told
from real.training.trainee import Trainee, Training
from sim.job.scenario import Scenario
from sim.recording.traces import Activity, Trace


class LibrarySession(Session):
    """The ranks of one launch and a library.

    Args:
        summing: the library.
        comm, training, progress: as for any session.
    """

    rank_class = SummedRank

    def __init__(self, summing: Library, comm, training: Training, progress: bool = True):
        super().__init__(comm, training, progress)
        self.library, self.world = summing, summing.name

    def run(
        self, scenario: Scenario, replication: int = 0, parts: Path | None = None, parameters: str | None = None
    ) -> Trace | None:
        """Run as any session does; an unfinished trace counts waiting for others as receiving.

        Raises:
            RunFailed: the library gave up.
        """
        with failures_told(self.library.name):
            trace = super().run(scenario, replication, parts, parameters)
        if self.comm is None or self.rank < scenario.ranks:
            self.library.end()
        return trace

    def _trainee(self, comm, scenario: Scenario, replication: int) -> Trainee:
        self.library.begin(comm, scenario, self.training)
        return self.workshop.trainee(scenario, replication, SummedGradients(self.library, scenario, self.training))

    def _details(self, trainee: Trainee) -> dict:
        details = super()._details(trainee)
        return details | {"versions": details["versions"] | self.library.versions}

    def _rows(self, activities: list[Activity]) -> list[Activity]:
        return waits_apart(activities)
