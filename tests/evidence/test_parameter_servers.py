"""Published parameter servers to 64 GPUs are predicted from up to 8, and are not without the mechanisms."""

from __future__ import annotations

import pytest

from experiments.extrapolation import servers
from experiments.extrapolation.servers import PLATFORMS, ROWS, Constants

FITTED = Constants(0.045, 2.04e9)
AT_64 = [row for row in ROWS if row.gpus == 64]


def error(row, **options) -> float:
    return row.measured_s / servers.predicted_s(row, FITTED, **options) - 1


@pytest.mark.parametrize("row", AT_64, ids=lambda row: row.platform)
def test_64_gpus_are_predicted_within_10_percent(row):
    assert abs(error(row)) < 0.1


def test_the_collapse_is_the_ports():
    """The negative control: one GPU a host as fast as now, and a port as fast as Piz Daint's, and there is no collapse."""
    row = next(row for row in AT_64 if row.platform == "p2.xlarge")
    fast = PLATFORMS["p2.xlarge"]._replace(sustained_bytes_per_s=None, line_bytes_per_s=10e9)
    assert error(row, platform=fast) > 0.5


def test_the_fit_recovers_what_is_planted(monkeypatch):
    """On a cheap stand-in for the simulation."""
    planted = Constants(0.05, 1.5e9)

    def step_s(row, constants):
        port_s = row.gpus * 50e6 / constants.port_bytes_per_s * (row.platform == "Piz Daint")
        return 1 + constants.cost_of_distribution + port_s

    rows = [row._replace(images_per_s=servers.BATCH * row.gpus / step_s(row, planted)) for row in ROWS]
    monkeypatch.setattr(servers, "predicted_s", step_s)
    found, residual = servers.fitted(rows)
    assert found.cost_of_distribution == pytest.approx(planted.cost_of_distribution, abs=0.005)
    assert found.port_bytes_per_s == pytest.approx(planted.port_bytes_per_s, rel=0.1)
    assert residual < 0.01


def test_the_fit_reads_no_row_beyond_8_gpus(monkeypatch):
    read = []
    monkeypatch.setattr(servers, "fitted", lambda rows: (read.extend(rows), (FITTED, 0.0))[1])
    monkeypatch.setattr(servers, "predicted_s", lambda row, constants: row.measured_s)
    assert len(list(servers.held_out())) == 6
    assert {row.gpus for row in read} == {2, 4, 8}
