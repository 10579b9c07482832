"""The engine gives what the event world gives: ends of steps, samples, idle seconds, for every text of sim/texts."""

from dataclasses import dataclass

import pytest
from language_drawn import drawn

from sim.language.engine import job as engine
from sim.language.event import run as event
from sim.language.job import Job, Laws, Layer
from sim.language.text import Text
from sim.laws import Exponential
from sim.texts import TEXTS

EXACT = 1e-9
COMPILED = pytest.mark.skipif(engine._kernel is None, reason="the kernel is not compiled: there was no C compiler")
KERNELS = pytest.mark.parametrize(
    "kernel", [None, pytest.param(engine._kernel, marks=COMPILED)], ids=["plain", "compiled"]
)
SETTINGS = {"hierarchical": {"group": 3}}
LAYERS = tuple(Layer(items, 1e-3, 2e-3, 1000) for items in (1000, 2_000_000, 7, 500_000, 1, 300_000))


@dataclass(frozen=True)
class Own(Text):
    """What texts of tests are made of."""

    name = "own"


def differ(of: Job, text, kernel) -> dict[str, float]:
    """By how much the two worlds differ, where they do; of rings test_language_ring.py has it."""
    want, got = event(of, text), engine.run(of, text, kernel, rings=False)
    found = {}
    for name in ("ends_s", "samples", "idle_s"):
        ours, theirs = getattr(got, name), getattr(want, name)
        assert len(ours) == len(theirs)
        off = max((abs(x - y) for x, y in zip(ours, theirs, strict=True)), default=0.0)
        if off > EXACT * max(1.0, *(abs(one) for one in theirs)):
            found[name] = off
    return found


@KERNELS
@pytest.mark.parametrize("laws", [Laws(), Laws(sleep=Exponential(mean=0.01))], ids=["ties", "sleeps"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_takes_as_long_as_in_the_event_world(name, laws, kernel):
    of = Job(6, LAYERS, 2, batch=16, laws=laws)
    assert differ(of, TEXTS[name](**SETTINGS.get(name, {})), kernel) == {}


@pytest.mark.parametrize("seed", [*range(20), 2775, 2947, 10353])  # turns planned anew by polls; ends of sharers; a tie
def test_a_drawn_job_takes_as_long_as_in_the_event_world(seed):
    assert differ(*drawn(seed), engine._kernel) == {}


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 600, 60))
def test_drawn_jobs_take_as_long_as_in_the_event_world(start):
    found = {seed: off for seed in range(start, start + 60) if (off := differ(*drawn(seed), engine._kernel))}
    assert found == {}
