"""Sleeps in a trace: steps in which a rank does not sleep count as 0, in fitted laws and when they are replayed."""

import event
import pytest

from calibration import laws as fits
from sim import protocols, stragglers
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.recording.traces import by_rank_and_step
from sim.simulation import simulate

SELDOM = "empirical(values=[0,0,0,0.1])"  # linear between neighbours: two draws of three are 0


def job(law: str = SELDOM, protocol: str = "fmb") -> Scenario:
    return Scenario(
        protocols.make(protocol), workload.read("toy_fc"), stragglers=stragglers.read(law), steps=40, warmup=5
    )


def test_a_rank_that_does_not_sleep_in_a_step_slept_0_seconds():
    trace = event.trace(job())
    found = by_rank_and_step(trace, "sleep", 5)
    assert found.shape == (3, 40)
    rows = trace.rows[(trace.rows["activity"] == "sleep") & (trace.rows["step"] >= 5)]
    assert found.to_numpy().sum() == pytest.approx((rows["end_s"] - rows["start_s"]).sum())
    assert ((found == 0).sum().sum(), found.isna().sum().sum()) == (120 - len(rows), 0)
    with pytest.raises(WrongSetting, match="did you mean sleep"):
        by_rank_and_step(trace, "sleeps")


@pytest.mark.slow
def test_a_fitted_law_has_the_mean_of_all_steps(tmp_path, capsys):
    path, out = str(tmp_path / "t.parquet"), str(tmp_path / "law.toml")
    trace = event.trace(job())
    trace.write(path)
    fits.main([path, "--column", "sleep", "-o", out])
    true_s = by_rank_and_step(trace, "sleep", 5).to_numpy().mean()
    assert stragglers.read(out).mean == pytest.approx(true_s, rel=0.02)
    assert f"the mean {true_s:.4g}" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_the_sleeps_of_a_trace_are_replayed(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    event.trace(job()).write(path)
    again = job(f"replay(file={path})")
    assert simulate(again, replications=1).step_s[0] == pytest.approx(simulate(job(), replications=1).step_s[0])
    event.trace(job("none")).write(path)
    with pytest.raises(WrongSetting, match="an activity of the trace"):
        stragglers.read(f"replay(file={path})")
