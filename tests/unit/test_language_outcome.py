"""Scenarios whose texts cannot be had are refused, and what an outcome is."""

import pytest
from common import common

from sim.base.errors import WrongSetting
from sim.language import event
from sim.runs.job import job_of
from sim.runs.outcome import outcome_of
from sim.texts import TEXTS


def run(scenario, text, replication=0):
    return outcome_of(scenario, event.run(job_of(scenario, text, replication), text))


def test_what_a_text_does_not_have_is_named():
    scenario = common(1, "fmb")
    for of, text, words in (
        (scenario, TEXTS["ddp"](), "--servers: given 1; allowed: 0 with ddp"),
        (scenario, TEXTS["ps-async"](2), "--servers: given 1; allowed: 2 with ps-async"),
        (common(1, "allreduce"), TEXTS["pipeline"](), "one for each layer that has activation_items"),
    ):
        with pytest.raises(WrongSetting, match=words):
            run(of, text)
