"""The event world says what the engine before it said (commit 63ce7df, whose ranks were SimPy processes throughout).

`recorded.csv` holds that engine's outcomes of `scenarios.py`. They differ on purpose in three ways, which the scenarios leave out:
the order of events at one moment; two ranks on one of a host's two cores while the other idles; cold caches under ps-layers.
In two more they are made alike here: ranks of that engine cooled while they packed, and posted gradients left with their sender's port.
Random numbers were drawn in another way; here they are drawn so again (`old_streams.py`), because the test is of the engine.
"""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from old_streams import BLOCK, OldStream
from scenarios import CLUSTERS, scenarios

import sim
from sim import event, randomness
from sim.event.machines import mechanics

EXACT_S = 1e-9
RECORDED = pd.read_csv(Path(__file__).with_name("recorded.csv"), sep=";", index_col="scenario")
SCENARIOS = dict(scenarios())


@pytest.fixture(autouse=True)
def old_streams(monkeypatch):
    """Whatever module of the simulator draws, it draws as it did; one that is imported later would do so for ever."""
    for module in pkgutil.walk_packages(sim.__path__, "sim."):
        import_module(module.name)
    replaced = (("Stream", randomness.Stream, OldStream), ("BLOCK", randomness.BLOCK, BLOCK))
    for module in [module for name, module in sys.modules.items() if name.startswith("sim.")]:
        for name, new, old in replaced:
            if getattr(module, name, None) is new:
                monkeypatch.setattr(module, name, old)


def outcome(scenario) -> dict[str, float]:
    of, _ = event.run(scenario, 0, want_trace=False)
    step_s = of.step_s[0]
    return {"mean_step_s": step_s.mean(), "longest_step_s": step_s.max(), "idle_fraction": of.idle_fraction.mean()}


def test_every_scenario_was_recorded():
    assert set(SCENARIOS) == set(RECORDED.index)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_the_event_world_says_what_was_recorded(cluster, monkeypatch):
    monkeypatch.setattr(mechanics, "WARMING", ("compute",))
    monkeypatch.setattr(mechanics.Mechanics, "_hold", lambda *_: None)
    names = [name for name in SCENARIOS if name.startswith(f"{cluster}: ")]
    said = pd.DataFrame({name: outcome(SCENARIOS[name]) for name in names}).T
    apart = (said - RECORDED.loc[names]).abs().max(axis=1)
    assert apart[apart > EXACT_S].to_dict() == {}
