"""Tests that need a cluster in a box are skipped, saying why, where there can be none."""

from __future__ import annotations

import pytest

from real.launching import testbed
from sim.base.errors import WrongSetting


@pytest.fixture(autouse=True)
def _can_be_made():
    try:
        testbed.check()
    except WrongSetting as error:
        pytest.skip(str(error))
