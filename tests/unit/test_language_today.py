"""Protocols in the language take as long as those of sim.protocols on jobs of the common kind: a port and a core each, induced sleeps."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from today import common

from sim import event
from sim.base.errors import WrongSetting
from sim.event.language import job_of
from sim.event.language import run as outcome_of
from sim.job.scenario import Scenario
from sim.language.collectives import allreduce
from sim.language.event import run
from sim.language.event.valueless import Valueless
from sim.language.job import Job
from sim.language.text import Text
from sim.language.verbs import compute
from sim.texts import TEXTS

EXACT_S = 1e-9


def in_language(scenario: Scenario, text, header_items: int = 0) -> Job:
    """The same job.

    Args:
        header_items: that travel with the gradient as an item more.
    """
    job = job_of(scenario, text)
    last = replace(job.layers[-1], items=job.layers[-1].items + header_items)
    of_header_s = {"update_base_s": job.update_base_s - job.update_s * header_items}
    return replace(job, layers=(*job.layers[:-1], last), **of_header_s)


@dataclass(frozen=True)
class Summed(Text):
    """An allreduce after computing."""

    name = "summed"

    def __call__(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from compute(me)
            yield from allreduce(me, me.gradient, me.workers)
            yield from me.update()


class Updates(Valueless):
    """When rank 0 has made its updates: a step of sim.protocols is over when it has, and not when the last rank has."""

    def __init__(self):
        self.ends_s = []

    def update(self, me, command):
        if me.rank == 0:
            self.ends_s.append(me.now())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "text", "header_items"),
    [
        ("fmb", TEXTS["fmb"](), 0),
        ("amb time_limit_s=0.03", TEXTS["amb"](0.03), 0),
        ("allreduce algorithm=ring", Summed(), 1),
    ],
)
def test_steps_and_samples_are_those_of_sim_protocols(said, text, header_items):
    worst = 0.0
    for number in range(50):
        scenario = common(number, said)
        expected, _ = event.run(scenario, want_trace=False)
        updates = Updates()
        found = run(in_language(scenario, text, header_items), text, updates)
        step_s = np.diff(updates.ends_s, prepend=0.0)[scenario.warmup :]
        off_s = np.abs(step_s - expected.step_s[0]).max()
        if (
            text.name == "summed" and scenario.costs.reduce.slope_s
        ):  # a rank adds what has come while its own piece is leaving
            assert off_s < 0.01 * step_s.mean()
        else:
            worst = max(worst, off_s)
        assert found.samples[scenario.warmup :] == pytest.approx(expected.samples[0])
    assert worst < EXACT_S


def test_what_a_text_does_not_have_is_named():
    scenario = common(1, "fmb")
    for of, text, words in (
        (scenario, TEXTS["ddp"](), "--servers: given 1; allowed: 0 with ddp"),
        (scenario, TEXTS["ps-async"](2), "--servers: given 1; allowed: 2 with ps-async"),
        (common(1, "allreduce"), TEXTS["pipeline"](), "one for each layer that has activation_items"),
    ):
        with pytest.raises(WrongSetting, match=words):
            outcome_of(of, text)


def test_an_outcome_is_without_the_warm_up():
    scenario = replace(common(1, "allreduce"), warmup=3, steps=5)
    found = outcome_of(scenario, TEXTS["fsdp"]())
    assert found.step_s.shape == found.samples.shape == (1, 5)
    assert found.warmup == 3
    assert found.idle_fraction.shape == (1, scenario.workers)
    assert (found.idle_fraction > 0).all()
    assert (found.idle_fraction < 1).all()
    assert found.samples[0] == pytest.approx([32 * scenario.workers] * 5)
    other = outcome_of(scenario, TEXTS["fsdp"](), replication=1)
    assert (other.step_s != found.step_s).all()
