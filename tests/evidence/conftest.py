"""What is simulated here is long."""

import pytest
from sim.engine import choose


@pytest.fixture(autouse=True, scope="module")
def _by_the_engine():
    """From the first run on where it can, as users have it after some seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "LEAST_S", 0.0)
        patch.setattr(choose, "LOADING_S", -1.0)
        yield
