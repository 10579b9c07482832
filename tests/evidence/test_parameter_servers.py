"""Published parameter servers to 64 GPUs are predicted from up to 8, and are not without the mechanisms."""

from __future__ import annotations

import pytest

from experiments.extrapolation import servers
from experiments.extrapolation.servers import PLATFORMS, ROWS

AT_64 = [row for row in ROWS if row.gpus == 64]


def error(row, **options) -> float:
    return row.measured_s / servers.predicted_s(row, **options) - 1


@pytest.mark.parametrize("row", AT_64, ids=lambda row: row.platform)
def test_64_gpus_are_predicted_within_10_percent(row):
    assert abs(error(row)) < 0.1


def test_the_collapse_is_the_ports():
    """The negative control: one GPU a host as fast as now, and a port as fast as Piz Daint's, and there is no collapse."""
    row = next(row for row in AT_64 if row.platform == "p2.xlarge")
    fast = PLATFORMS["p2.xlarge"]._replace(sustained_bytes_per_s=None, line_bytes_per_s=10e9)
    assert error(row, platform=fast) > 0.5
