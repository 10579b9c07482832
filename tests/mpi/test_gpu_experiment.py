"""The experiment that a GPU's owner runs, in small on the CPU; and what it fits and predicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments import gpu, gpu_report
from experiments.run import main
from real import calibration_plan
from real.cells import refusal
from sim import event, protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform.cluster import Cluster, Host
from sim.recording import traces
from sim.recording.traces import Trace

SMALL = {"steps": 6, "fits": 1, "repeats": 1, "workers": (2,), "slept": (), "fitted_batches": (32, 64, 128)}


def test_nothing_that_is_predicted_is_fitted():
    plan = gpu.plan("gpu", 0, demo=False)
    fitted, predicted = ({replace(c, seed=0, steps=1) for c in cells} for cells in (plan.fitted, plan.predicted))
    assert not fitted & predicted
    assert not {c.batch for c in fitted} & {c.batch for c in predicted}
    assert {c.protocol for c in predicted} == {"fmb", "amb", "ps-async", "ps-sync", "allreduce"}
    assert {c.workers for c in predicted} == {1, 2, 4, 8}
    assert (min(c.batch for c in fitted), max(c.batch for c in fitted)) == (32, 2048)
    assert not any(refusal(cell) for cell in [*plan.pilots, *plan.fitted, *plan.predicted])
    with pytest.raises(WrongSetting, match="--device"):
        gpu.plan("tpu", 0, demo=True)


def test_a_gpus_profile_is_fitted_on_batches_of_its_floor_too():
    for device, batches in (("cpu", {1024, 2048, 128}), ("gpu", {32, 64, 128, 256, 512, 1024, 2048})):
        asked = calibration_plan.Asked("mlp", 2, ("fmb", "amb"), 2048, 40, 3, 0, device=device)
        assert {cell.batch for cell in calibration_plan.fitted(asked, 1.0)} == batches


def test_rates_are_compared_with_the_catalogues_entry(capsys):
    """1,000 samples of resnet18_cifar in a second, on what says that it is an H100."""
    costs = {"resnet18_cifar": Costs(compute=Line(slope_s=1e-3))}
    where = Cluster(hosts=[Host(count=2)], costs=costs)
    job = {"workers": 1, "steps": 3, "warmup": 1, "batch": 64, "cluster": where}
    trace = event.trace(Scenario(protocols.make("fmb"), workload.read("resnet18_cifar"), **job))
    assert gpu_report.rates([trace]) == [("resnet18_cifar", 64, pytest.approx(1000))]
    named = Trace(replace(trace.header, details={"gpus": ["NVIDIA H100 80GB HBM3"]}), trace.rows)
    gpu_report.show_rates([named], ["NVIDIA H100 80GB HBM3"])
    assert "resnet18_cifar" in capsys.readouterr().out
    gpu_report.show_rates([named], ["Something else"])
    assert "No entry of the catalogue for Something else" in capsys.readouterr().out


@pytest.mark.mpi
def test_it_runs_on_cores(tmp_path, monkeypatch, capsys):
    """One model, and two protocols of the five."""
    monkeypatch.setattr(gpu, "PROTOCOLS", ("fmb", "amb"))
    small = gpu.plan("cpu", 0, demo=True)
    monkeypatch.setattr(gpu, "plan", lambda *_: replace(small, **SMALL))
    assert main(["gpu", "--demo", "--device", "cpu", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "Device: CPU, no GPU" in said
    assert "covered by 90 %" in said
    rows = traces.read(tmp_path / "gpu" / "traces" / "fit-0-0.parquet").rows
    assert {"copy to device", "copy to host"} <= set(rows["activity"])
    assert rows.loc[rows["activity"] == "copy to host", "bytes"].unique().tolist() == [318040]
