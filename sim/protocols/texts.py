"""The text of a job's protocol."""

from __future__ import annotations

from sim.language.text import Text


def text_of(scenario) -> Text:
    """What the ranks of a scenario (sim.job.scenario.Scenario) follow."""
    return scenario.protocol.text(scenario.servers, workers=scenario.workers, rows=scenario.traffic.sends_rows)
