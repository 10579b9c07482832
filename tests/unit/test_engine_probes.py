"""Small texts (engine_probes.py) of which the engine gives the event world's digits, or refuses them with their line."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from textwrap import indent

import pytest
from engine_probes import FAILS, HEAD, IN_TABLE, MASTERS, OUT_OF_TABLE, PROBES, REFUSED, SAME, TAIL
from engines import assert_alike

from sim import event, stragglers
from sim.base.errors import RunFailed
from sim.job.scenario import Scenario
from sim.model import workload
from sim.protocols.base import Protocol

WORKER = """

@dataclass(frozen=True)
class Own(Protocol):
    share: int = 1
    rounds: int = 1

    def worker(self, me):
        for step in me.steps():
"""
MASTER = """

@dataclass(frozen=True)
class Own(Protocol):
    updates: int = -1

    def worker(self, me):
        for _ in me.steps():
            yield from me.sleep()
            yield from me.compute()
            yield from me.send(GRADIENT, me.master)
            if me.rank == self.updates:
                yield from me.update()

    def late(self, letter, gives):
        if gives:
            return letter

    def master(self, me):
        for step in me.steps():
"""


@pytest.fixture
def compare(compiled, module):
    """Compares both worlds, or none, by the source of a module: what is refused is not compared, and what fails has no answer."""

    def both(source: str, verdict: str) -> None:
        compared(compiled.Replications, importlib.import_module(module(source)).Own(), verdict)

    return both


def compared(replications, protocol: Protocol, verdict: str) -> None:
    law = stragglers.read("lognormal(mean=20ms, cv=1.5)")
    scenario = Scenario(protocol, workload.read("mlp"), 2, steps=3, warmup=0, stragglers=law, batch=64)
    refusal = sys.modules["sim.engine.lowering.values"].NotLowered
    fails = verdict.startswith(FAILS) and "here" not in verdict
    if fails:
        with pytest.raises(RunFailed):
            event.run(scenario, want_trace=False)
    if REFUSED in verdict:
        with pytest.raises(refusal, match=r"mine\d+\.py:\d+: "):
            replications(scenario)
    elif verdict == SAME:
        assert_alike(replications, scenario)
    else:
        assert replications(scenario).outcome(0) is None


@pytest.mark.parametrize("said", PROBES)
def test_a_workers_text_is_as_in_the_event_world_or_refused(compare, said):
    source = HEAD + WORKER + indent(said, " " * 12) + TAIL
    compare(source, PROBES[said])


@pytest.mark.parametrize("said", MASTERS)
def test_a_masters_text_is_as_in_the_event_world_or_refused(compare, said):
    source = HEAD + MASTER + indent(said, " " * 12) + "\n            yield from me.update()\n"
    compare(source, MASTERS[said])


PAGE = (Path(__file__).parents[2] / "docs/protocol.md").read_text().split("| | in the subset |")[1]
TABLE, OUTSIDE = PAGE.split("All else is outside")
OUTSIDE = OUTSIDE.split("Such a text")[0]


def said_in(text: str) -> set[str]:
    return {one.replace("\\|", "|") for one in re.findall(r"`([^`]+)`", text)}


def test_the_page_says_what_is_tried():
    assert (said_in(TABLE), said_in(OUTSIDE)) == (set(IN_TABLE), set(OUT_OF_TABLE))


@pytest.mark.parametrize("said", IN_TABLE)
def test_what_the_page_says_is_in_the_subset(compare, said):
    source = HEAD + WORKER + indent(IN_TABLE[said], " " * 12) + TAIL
    compare(source, SAME)


@pytest.mark.parametrize("said", OUT_OF_TABLE)
def test_what_the_page_says_is_outside(compare, said):
    source = HEAD + WORKER + indent(OUT_OF_TABLE[said], " " * 12) + TAIL
    compare(source, REFUSED)


def test_a_worker_of_a_master_updates_nothing(compare):
    source = (
        HEAD
        + MASTER.replace("= -1", "= 1")
        + "            yield from gather(me, me.workers)\n            yield from me.update()\n"
    )
    compare(source, FAILS)


def test_a_rank_that_goes_through_its_steps_twice_has_no_answer(compare):
    """What further rounds would count is the event world's to say."""
    source = WORKER.replace(
        "        for step", "        for _ in me.steps():\n            yield from me.sleep()\n        for step"
    )
    source += "            yield from me.compute()\n            yield from me.update()\n"
    compare(HEAD + source, FAILS + " here")
