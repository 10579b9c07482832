"""Fixtures of several files."""

import pytest

from sim.language.engine import job


@pytest.fixture
def installed():
    """The engine answers where it is asked for by its name; or the test is skipped."""
    if job._kernel is None:
        pytest.skip("the engine is not compiled: python -m sim.language.engine.building")
