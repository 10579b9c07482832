"""One rank of a real run, which follows the text of its scenario's protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from real.language.asked import asked_of, job_of
from real.language.messages import Alone
from real.language.rows import RowsTrained, places_of
from real.language.trained import Trained
from real.language.world import MpiWorld
from real.launching.clock import Clock
from real.recording.parameters import Piece
from real.recording.recorder import Recorder
from real.training.trainee import Trainee
from sim.job.scenario import Scenario
from sim.protocols.base import text_of

NOTHING = np.empty(0, np.float32)


class TextRank:
    """A rank that follows a text.

    Args:
        comm: the ranks of the run; None for one process alone.
        hosts: the name of each rank's host.
    """

    def __init__(
        self,
        comm,
        scenario: Scenario,
        replication: int,
        trainee: Trainee,
        clock: Clock,
        recorder: Recorder,
        hosts: Sequence[str] = ("",),
    ):
        self.rank, self.scenario, self.recorder, self._clock = comm.rank if comm else 0, scenario, recorder, clock
        text, self._asked = text_of(scenario), asked_of(scenario)
        job = job_of(scenario, replication, [hosts.index(host) for host in hosts])
        if job.sparse:
            self._values: Trained = RowsTrained(job, trainee, text, self._asked, places_of(scenario))
        else:
            self._values = Trained(job, trainee, text, self._asked)
        here = [host == hosts[self.rank] for host in hosts]
        self._say: Callable[[TextRank, int], None] = lambda me, step: None
        self._world = MpiWorld(
            comm or Alone(), job, text, self._values, clock, recorder, here, lambda step: self._say(self, step)
        )

    def follow(self, said: Callable[[TextRank, int], None] | None = None) -> None:
        """Follow the text to its end.

        Args:
            said: called when a round of `me.steps()` begins.
        """
        self._say = said or self._say
        self._world.run()

    @property
    def now_s(self) -> float:
        """Seconds since the run's common start."""
        return self._clock()

    @property
    def ran_out(self) -> int:
        """How often there was time left and no data."""
        return self._world.measured.ran_out

    @property
    def evaluations(self) -> list[tuple[int, float, float]]:
        """Step, loss and accuracy of each."""
        return self._values.evaluations

    @property
    def parameters(self) -> np.ndarray:
        """The weights of a rank that updates all of them; of others nothing, because what they hold are copies that may be lost."""
        size, updates = self.scenario.workload.parameters, self._asked.updates.get(self.rank, {})
        return self._values.whole(self._world.me) if sum(stop - start for start, stop in updates) == size else NOTHING

    def pieces(self) -> list[Piece]:
        """Those of the weights that are this rank's to give: what it updates and none before it does."""
        return [self._values.piece(self._world.me, start, stop) for start, stop in self._asked.of(self.rank)]


def every(seconds: float, say: Callable[[TextRank, int], None]) -> Callable[[TextRank, int], None]:
    """Say something when so much time has passed."""
    said_s = time.perf_counter()

    def saying(me: TextRank, step: int) -> None:
        nonlocal said_s
        if time.perf_counter() - said_s > seconds:
            said_s = time.perf_counter()
            say(me, step)

    return saying
