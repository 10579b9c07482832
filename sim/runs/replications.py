"""Replications of a scenario.

The engine runs them where it is compiled and understands the text. The event world, which says the same, runs them elsewhere,
and records what ranks do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from sim import needs
from sim.answers.outcome import staleness_of
from sim.base import own
from sim.base.errors import RunFailed, WrongSetting
from sim.language import event, mistakes
from sim.language.engine import job as engine
from sim.language.engine.programs import in_the_way, program_of
from sim.language.engine.values import NotLowered
from sim.language.event.observed import ObservedWorld
from sim.protocols import is_ours
from sim.protocols.base import text_of
from sim.runs.job import job_of
from sim.runs.outcome import least_warmup, outcome_of, trace_of

if TYPE_CHECKING:
    import numpy as np

    from sim.answers.outcome import Outcome
    from sim.job.scenario import Scenario
    from sim.language.engine.primitives import Program
    from sim.language.job import Job
    from sim.language.text import Text
    from sim.recording.traces import Trace

# Messages of a run that is observed for a note, messages of a gradient, and workers of such a run at most.
LOOKED_AT, MESSAGES, MOST_LOOKED_AT = 600, 5, 400
ROWS_AND_TABLE = 3  # times the memory of rows that become a trace
ONCE_S, RANK_S, EVENT_S = 1e-3, 3e-6, 0.15e-6  # of a core by the engine: of a run, of each rank, of each event
SLOWER = 100  # times as long takes the event world
EVENTS = 10  # of a rank in a step, besides those of a ring, where none are counted
_counted: dict[tuple, float] = {}  # events of a step, by text, size and world


class Replications:
    """The runs of a scenario.

    Args:
        world: auto, event or engine.

    Attributes:
        slow: why the event world runs them, where the engine was to do it.

    Raises:
        WrongSetting: the job has what texts in the language do not have, or the engine is asked for and cannot, or the first of several
            servers is to evaluate.
        WrongText: a user's text makes a mistake that is seen in its source.
    """

    threads: ClassVar[int | None] = None  # on which they run; None: one for each core

    def __init__(self, scenario: Scenario, world: str = "auto"):
        needs.check_rows(scenario)
        scenario.check_evaluation()
        self.scenario, self.text = scenario, text_of(scenario)
        if not is_ours(scenario.protocol):
            mistakes.check(self.text)
        self._job, self._asked, self.slow, self._program = job_of(scenario, self.text), world, "", None
        self.text.checked(self._job)
        if world != "event":
            try:
                self._program = lowered(self._job, self.text)
            except NotLowered as error:
                self._answers_by_events(error)

    def _answers_by_events(self, error: NotLowered) -> None:
        """The event world answers from now on.

        Raises:
            WrongSetting: the engine is asked for.
        """
        self.slow, self._program = str(error), None
        if self._asked == "engine":
            raise WrongSetting("--world", "engine", f"auto or event: {self.slow}")

    @property
    def world(self) -> str:
        """The one that runs them: engine or event."""
        return "engine" if self._program else "event"

    def _replication(self, number: int) -> Job:
        return replace(self._job, replication=number)

    def outcome(self, number: int, within_s: float = math.inf) -> Outcome:
        """The outcome of a replication.

        Args:
            within_s: seconds after which it ends with the steps that are complete: at least the first after the least warm-up.

        Raises:
            RunFailed: all texts wait for ever, or do what no world can run.
            WrongSetting: the job takes more memory than there is, naming the option.
        """
        job, is_over = self._replication(number), self._is_over(within_s)
        by_message, found = "", None
        if program := self._program:
            try:
                found = engine.Run(job, self.text, program, most_bytes=needs.most_bytes()).result(is_over)
                by_message = in_the_way(job, program)
            except NotLowered as error:  # that a number is beyond what it holds exactly shows as ranks run
                self._answers_by_events(error)
        if found is None:
            found = event.run(job, self.text, is_over=is_over, most_bytes=needs.most_bytes())
        return replace(outcome_of(self.scenario, found), slow=self.slow, by_message=by_message)

    def outcomes(self, numbers: Sequence[int]) -> Iterator[Outcome]:
        """Replications in order, on as many threads as there are cores: the engine's kernel runs beside Python."""
        threads = min(self.threads or needs.cores(), len(numbers)) if self._program else 1
        if threads <= 1:
            yield from map(self.outcome, numbers)
            return
        with ThreadPoolExecutor(threads) as pool:  # which begins no further one once they are not asked for
            yield from pool.map(self.outcome, numbers)

    def traced(self, number: int, within_s: float = math.inf) -> tuple[Outcome, Trace]:
        """The same by the event world, and all that ranks did."""
        most_bytes = needs.most_bytes() / ROWS_AND_TABLE
        world = ObservedWorld(self._replication(number), self.text, most_bytes=most_bytes)
        found = outcome_of(self.scenario, world.run(self._is_over(within_s)))
        return found, trace_of(self.scenario, world, found)

    def staleness(self, number: int) -> np.ndarray | None:
        """How stale gradients are in some steps of the event world, where each gradient is an update, shape (gradients,)."""
        if not self.text.each or self.scenario.workers > MOST_LOOKED_AT:
            return None
        steps = max(2, min(self.scenario.rounds, LOOKED_AT // (MESSAGES * self.scenario.workers)))
        few = replace(self.scenario, warmup=steps // 2, steps=steps - steps // 2)
        return staleness_of(Replications(few, "event").traced(number)[1])

    def _is_over(self, within_s: float) -> Callable[[int], bool] | None:
        if within_s == math.inf:
            return None
        least, until_s = least_warmup(self.scenario) + 1, time.monotonic() + within_s
        return lambda complete: complete >= least and time.monotonic() > until_s


def lowered(job: Job, text: Text) -> Program:
    """The text as a program of the engine.

    Raises:
        NotLowered: the engine is not compiled, or does not understand it.
    """
    if engine._kernel is None:
        raise NotLowered(engine.NOT_COMPILED)
    try:
        return program_of(job, text)
    except (NotLowered, RunFailed, WrongSetting):
        raise
    except Exception as error:  # of what a text computes while it is lowered, or of a gap in the lowering
        raise NotLowered(f"the engine fails at it: {own.complaint(error)}") from error


@contextmanager
def by_one_thread() -> Iterator[None]:
    """Within it, replications run one after another, as where other processes have the other cores."""
    before, Replications.threads = Replications.threads, 1
    try:
        yield
    finally:
        Replications.threads = before


def once_and_step_s(scenario: Scenario, world: str = "auto") -> tuple[float, float]:
    """Seconds of a run before any step, and of each one: by counts of events, so that they do not depend on how busy the machine is."""
    text = text_of(scenario)
    key = text, scenario.ranks, len(scenario.workload.variables), world
    if key not in _counted:
        _counted[key] = _events_of_a_step(scenario, text, rings=world == "auto")
    slower = 1 if world == "auto" and engine._kernel else SLOWER
    return ONCE_S + RANK_S * scenario.ranks, _counted[key] * EVENT_S * slower


def _events_of_a_step(scenario: Scenario, text: Text, rings: bool) -> float:
    """Counted in one step by the engine; of a user's text, which only the processes that simulate run, and without an engine a guess."""
    if is_ours(scenario.protocol):
        job = job_of(replace(scenario, steps=1, warmup=0), text)
        with suppress(NotLowered, RunFailed):
            run = engine.Run(job, text, lowered(job, text), rings=rings)
            run.result()
            return float(run.state.happened)
    ring = 2 * scenario.workers if scenario.summed else 0
    return scenario.ranks * (EVENTS + ring) * gradients_each(scenario)


def gradients_each(scenario: Scenario) -> float:
    """The number of gradients of each worker in an update, at least one."""
    return max(1.0, scenario.protocol.gradients_per_update(scenario.workers) / max(1, scenario.workers))
