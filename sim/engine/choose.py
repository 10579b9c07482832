"""When the engine simulates: where it saves more than loading it, or compiling it, takes.

Compiling stands before a first answer only where the event world would refuse the job. The first steps of a user's own text are the event
world's, whose mistakes it names.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from sim.base.deadline import postponed
from sim.base.errors import WrongSetting
from sim.base.home import installed
from sim.base.threads import in_order
from sim.engine import install, kept

if TYPE_CHECKING:
    from sim.answers.outcome import Outcome
    from sim.engine.replications import Replications
    from sim.job.scenario import Scenario

LOADING_S, COMPILING_S = 1.0, 60.0  # of a core: until it runs, where it is kept and where it is not
LEAST_S = 0.05  # of the event world, which building arrays takes too
LEAST_OF_A_THREAD_S = 0.01  # of a replication: building its arrays needs Python's lock, for which threads wait


class Engine:
    """The engine of this process, and how much the event world did that it could have done."""

    def __init__(self) -> None:
        self._spent_s, self._is_loaded, self._fails, self._is_alone = 0.0, False, False, False
        self.refused = ""  # what the last scenario has that the engine does not have

    def suits(self, left_s: float, within_s: float) -> bool:
        """Whether it is to do what would take the event world so many seconds, if the answer may take some others.

        It is loaded, or compiled, if what is left takes longer, or what there has been: nobody knows how much else is to come.
        """
        if self._fails or left_s < LEAST_S:
            return False
        worth_s = max(left_s, self._spent_s)
        if not self._is_loaded and worth_s > LOADING_S:
            self._load(min(worth_s, within_s) > COMPILING_S)
        return self._is_loaded

    def spent(self, seconds: float) -> None:
        """So much was done by the event world that the engine could have done."""
        self._spent_s += seconds

    def _load(self, may_compile: bool) -> None:
        try:
            self._is_loaded = kept.is_kept() or (may_compile and install.keep())
            if self._is_loaded:
                with postponed():
                    install.compile_all()  # which loads it, so that no run's time has that in it
        except Exception:  # the event world does as well
            self._fails = True

    @property
    def is_at_hand(self) -> bool:
        """Whether it need only be loaded."""
        return not self._fails and (self._is_loaded or kept.is_kept())

    def demanded(self, scenario: Scenario) -> Replications:
        """Replications of a scenario that nothing else is to simulate.

        Raises:
            WrongSetting: it has something that the engine does not have, or nothing is compiled here.
        """
        if not kept.is_kept():
            raise WrongSetting(
                "--world", "engine", f"auto or event, until python -m {installed('sim.engine.install')} has compiled it"
            )
        if not self._is_loaded:
            self._load(may_compile=False)
        found = self.replications(scenario)
        if found is None:
            raise WrongSetting("--world", "engine", f"auto or event: {self.refused}")
        return found

    def replications(self, scenario: Scenario) -> Replications | None:
        """Replications of a scenario; None if it has something that the engine does not have."""
        from sim.engine.lowering.values import NotLowered
        from sim.engine.tables import NotBuilt

        self.refused = ""
        try:
            from sim.engine.replications import Replications

            return Replications(scenario)
        except (NotBuilt, NotLowered) as error:
            self.refused = str(error)
        except Exception as error:
            self._fails, self.refused = True, f"the engine fails: {type(error).__name__}"
        return None

    @contextmanager
    def by_one_thread(self) -> Iterator[None]:
        """Within it, replications are computed one after another, as where other processes have the other cores."""
        before, self._is_alone = self._is_alone, True
        try:
            yield
        finally:
            self._is_alone = before

    def outcomes(self, replications: Replications, numbers: Sequence[int]) -> Iterator[Outcome | None]:
        """Replications in order, each as of `outcome`; on as many threads as there are cores, and memory for their arrays."""
        start_s = time.monotonic()
        yield self.outcome(replications, numbers[0])
        took_s = time.monotonic() - start_s
        threads = 1 if self._is_alone or self._fails or took_s < LEAST_OF_A_THREAD_S else _threads(replications)
        yield from in_order(partial(self.outcome, replications), numbers[1:], threads)

    def outcome(self, replications: Replications, number: int, within_s: float = math.inf) -> Outcome | None:
        """The outcome of a replication; None if it is the event world's to say what is wrong."""
        try:
            return replications.outcome(number, within_s)
        except Exception:
            self._fails = True
            return None


def _threads(replications: Replications) -> int:
    """As many as cores, and as there is memory for."""
    from sim import needs

    return max(1, min(needs.cores(), int(needs.most_bytes() / replications.bytes)))


engine = Engine()
