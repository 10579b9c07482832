"""The engine as plain Python, and compiled; its answers, and that they are the event world's digits."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest
from scenarios import EXACT_S

from sim import event
from sim.answers.outcome import Outcome, join
from sim.job.scenario import Scenario

STAYS = ("sim.engine.choose", "sim.engine.kept")  # which know nothing of the kernel


@contextmanager
def loaded_anew(instead: dict[str, ModuleType] | None = None) -> Iterator[None]:
    """Within it the engine's modules are these, or not loaded; then they are those that there were, whose functions are compiled."""
    before = _taken_out()
    _put_in(instead or {})
    try:
        yield
    finally:
        found = _taken_out()
        if instead is not None:
            instead.update(found)
        _put_in(before)


def _taken_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.startswith("sim.engine.") and name not in STAYS]
    return {name: sys.modules.pop(name) for name in names}


def _put_in(modules: dict[str, ModuleType]) -> None:
    for name, module in modules.items():
        sys.modules[name] = module
        package, _, child = name.rpartition(".")
        setattr(sys.modules[package], child, module)


_as_python: dict[str, ModuleType] = {}  # the engine's modules, once they are loaded


@pytest.fixture
def as_python():
    """The engine's modules, of which numba compiles none, so that numbers of the kernel can be changed; nothing is kept of other runs."""
    with loaded_anew(_as_python):
        import_module("sim.engine.kernel.compiling").IS_COMPILED = False
        replications = import_module("sim.engine.replications")
        replications._kept.clear()
        yield replications


@pytest.fixture(scope="module")
def compiled():
    """The engine's modules as they are, compiled where numba compiles: loading that takes a second of each process."""
    return import_module("sim.engine.replications")


@pytest.fixture(scope="module")
def by_numba(compiled):
    """The same, for what takes too long where it does not."""
    if not sys.modules["sim.engine.kernel.compiling"].IS_COMPILED:
        pytest.skip("numba does not compile here")
    return compiled


def run(scenario: Scenario, replications: int = 1, first: int = 0, within_s: float = math.inf) -> Outcome:
    """The engine's answer: a test fails where it has none."""
    of = import_module("sim.engine.replications").Replications(scenario)
    found = [of.outcome(number, within_s) for number in range(first, first + replications)]
    assert all(one is not None for one in found)
    return join(found)


def agree(scenario: Scenario, replications: int = 1) -> None:
    """The engine gives the event world's digits in so many replications."""
    of = import_module("sim.engine.replications").Replications(scenario)
    for number in range(replications):
        assert_alike(lambda _: of, scenario, number)


def assert_alike(replications, scenario: Scenario, number: int = 0) -> None:
    """Steps, samples and idle shares are those of the event world."""
    assert_same_outcome(replications(scenario).outcome(number), event.run(scenario, number, want_trace=False)[0])


def assert_same_outcome(found: Outcome, expected: Outcome) -> None:
    np.testing.assert_allclose(found.step_s, expected.step_s, rtol=0, atol=EXACT_S)
    np.testing.assert_array_equal(found.samples, expected.samples)
    np.testing.assert_allclose(found.idle_fraction, expected.idle_fraction, rtol=0, atol=EXACT_S)
    assert (found.arrivals is None) == (expected.arrivals is None)
    if expected.arrivals:
        assert found.arrivals.missed == expected.arrivals.missed
    assert (found.ran_out, found.warmup) == (expected.ran_out, expected.warmup)
