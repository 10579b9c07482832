"""The engine as plain Python, and compiled; and that it gives the event world's digits."""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np
import pytest
from scenarios import EXACT_S

from sim import event
from sim.job.scenario import Scenario
from sim.vector import compiled


def load(as_python: bool):
    """The engine's modules, of which numba compiles none, or all."""
    for name in [name for name in sys.modules if name.startswith("sim.engine.")]:
        if name != "sim.engine.choose":
            del sys.modules[name]
    compiling = import_module("sim.engine.kernel.compiling")
    compiling.IS_COMPILED = compiling.IS_COMPILED and not as_python
    return import_module("sim.engine.replications")


@pytest.fixture(scope="module")
def as_python():
    yield load(as_python=True)
    load(as_python=False)


@pytest.fixture(scope="module")
def by_numba():
    if not compiled.can_compile():
        pytest.skip("numba does not compile here")
    return load(as_python=False)


def assert_alike(replications, scenario: Scenario, number: int = 0) -> None:
    """Steps, samples and idle shares are those of the event world."""
    found, expected = replications(scenario).outcome(number), event.run(scenario, number, want_trace=False)[0]
    np.testing.assert_allclose(found.step_s, expected.step_s, rtol=0, atol=EXACT_S)
    np.testing.assert_array_equal(found.samples, expected.samples)
    np.testing.assert_allclose(found.idle_fraction, expected.idle_fraction, rtol=0, atol=EXACT_S)
    assert (found.arrivals is None) == (expected.arrivals is None)
    if expected.arrivals:
        assert found.arrivals.missed == expected.arrivals.missed
    assert (found.ran_out, found.warmup) == (expected.ran_out, expected.warmup)
