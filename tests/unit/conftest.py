"""Fixtures of several files."""

import pytest
from engines import as_python, by_numba, compiled
from sim.engine import kept

__all__ = ["as_python", "by_numba", "compiled", "installed"]


@pytest.fixture
def installed():
    """The engine answers where it is asked for by its name; or the test is skipped."""
    if not kept.is_kept():
        pytest.skip("the engine is not compiled: python -m sim.engine.install")
