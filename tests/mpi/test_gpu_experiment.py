"""The experiment that a GPU's owner runs, in small on the CPU; and what it fits and predicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments import gpu
from experiments.run import main
from real import calibration_plan
from real.cells import refusal
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host
from sim.recording import traces

SMALL = {"steps": 6, "workers": (2,), "slept": (), "fitted_batches": (32, 64, 128)}


def test_nothing_that_is_predicted_is_fitted():
    plan = gpu.Plan()
    known = Cluster(hosts=[Host()], costs={model: Costs(compute=Line(slope_s=1e-4)) for model in plan.models})
    cells = plan.fitted("gpu", 0), plan.predicted("gpu", 0, known)
    fitted, predicted = ({replace(c, seed=0, steps=1) for c in some} for some in cells)
    assert not fitted & predicted
    assert not {c.batch for c in fitted} & {c.batch for c in predicted}
    assert {c.protocol for c in predicted} == {"fmb", "amb", "ps-async", "ps-sync", "allreduce"}
    assert {c.workers for c in predicted} == {1, 2, 4, 8}
    assert (min(c.batch for c in fitted), max(c.batch for c in fitted)) == (32, 2048)
    assert {c.time_limit_s for c in predicted if c.protocol == "amb"} == {0.0038, 0.015, 0.092}
    assert not any(refusal(cell) for cell in [*fitted, *predicted])


def test_a_gpus_profile_is_fitted_on_batches_of_its_floor_too():
    for device, batches in (("cpu", {1024, 2048, 128}), ("gpu", {32, 64, 128, 256, 512, 1024, 2048})):
        asked = calibration_plan.Asked("mlp", 2, ("fmb", "amb"), 2048, 40, 3, 0, device=device)
        assert {cell.batch for cell in calibration_plan.fitted(asked, 1.0)} == batches


@pytest.mark.mpi
@pytest.mark.tensorflow
def test_it_runs_on_cores(tmp_path, monkeypatch, capsys):
    """One model, and two protocols of the five."""
    monkeypatch.setattr(gpu, "PROTOCOLS", ("fmb", "amb"))
    monkeypatch.setattr(gpu, "DEMO", replace(gpu.DEMO, **SMALL))
    assert main(["gpu", "--demo", "--device", "cpu", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "Device: CPU, no GPU" in said
    assert "covered by 90 %" in said
    header = traces.read(tmp_path / "gpu" / "traces" / "predict-0-0.parquet").header
    assert (header.training.engine, header.complete) == ("tensorflow", True)
