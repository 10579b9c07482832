"""Scenarios whose texts cannot be had are refused, and what an outcome is."""

from dataclasses import replace

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


def test_an_outcome_is_without_the_warm_up():
    scenario = replace(common(1, "allreduce"), warmup=3, steps=5)
    found = run(scenario, TEXTS["fsdp"](unit_parameters=0))
    assert found.step_s.shape == found.samples.shape == (1, 5)
    assert found.warmup == 3
    assert found.idle_fraction.shape == (1, scenario.workers)
    assert (found.idle_fraction > 0).all()
    assert (found.idle_fraction < 1).all()
    assert found.samples[0] == pytest.approx([32 * scenario.workers] * 5)
    other = run(scenario, TEXTS["fsdp"](), replication=1)
    assert (other.step_s != found.step_s).all()
