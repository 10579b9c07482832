"""Replications of a scenario whose ranks follow a text of named vectors, by the language's engine."""

from __future__ import annotations

import math

from sim.answers.outcome import Outcome
from sim.base.errors import RunFailed
from sim.event.language import job_of, outcome_of
from sim.job.scenario import Scenario
from sim.language.engine import job as engine
from sim.language.engine.primitives import Lowering
from sim.language.engine.running import NOT_COMPILED
from sim.language.engine.values import NotLowered
from sim.protocols.in_language import InLanguage


class TextReplications:
    """As sim.engine.replications.Replications.

    Raises:
        NotLowered: the engine does not understand the text, or is not compiled.
        WrongSetting: the job has what texts in the language do not have.
    """

    bytes = 1

    def __init__(self, scenario: Scenario):
        assert isinstance(scenario.protocol, InLanguage)
        if engine._kernel is None:
            raise NotLowered(NOT_COMPILED)
        self._scenario, self._text = scenario, scenario.protocol.text(scenario.servers)
        Lowering(job_of(scenario, self._text), self._text).program()

    def outcome(self, number: int, within_s: float = math.inf) -> Outcome | None:
        """The outcome of a replication, always whole; None if the text goes wrong."""
        try:
            found = engine.run(job_of(self._scenario, self._text, number), self._text)
        except RunFailed:
            return None
        return outcome_of(self._scenario, found)
