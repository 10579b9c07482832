"""The plan beside simulating everything: both have the same best, and a plan that misses one is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments import exhaustive
from sim.plans import plan
from sim.sweeps import pools

GRID = exhaustive.DEMO | {"protocols": ["fmb"], "counts": [1, 2], "keep": 3}
TARGET = {"samples_per_s": 2000}


@pytest.fixture
def every(monkeypatch):
    alone = pools.of_size(1)
    monkeypatch.setattr(pools, "of_size", lambda _: alone)
    return exhaustive.simulated(exhaustive.asked(GRID, TARGET))


def test_the_best_are_the_same_and_one_that_is_missed_is_seen(every, monkeypatch):
    asked = exhaustive.asked(GRID, TARGET)
    found = exhaustive.compared("here", asked, every)
    assert len(every) == 8
    assert (found.best, found.same + found.ties, found.worse) == (3, 3, [])

    planned = plan.answer(asked, pools.of_size(1))
    dearest = max(planned.simulated, key=lambda one: one.key(asked))
    worse = replace(planned, best=[*planned.best[:2], dearest])
    monkeypatch.setattr(plan, "answer", lambda *_: worse)
    found = exhaustive.compared("here", asked, every)
    assert found.same == 2
    assert found.worse[0] > 0.5
