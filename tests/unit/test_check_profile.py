"""`calibration.check`: a profile that predicts its cluster passes, one that was changed is rejected, and what is off is named."""

import json
from dataclasses import replace

import event
import pytest

from calibration import check, comparison, profiles
from calibration.profiles import Source
from sim import protocols
from sim.base.errors import WrongSetting
from sim.job.header import Training
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.platform import cluster, other_sizes
from sim.platform.cluster import Link, one_rank_a_host
from sim.recording import traces
from sim.recording.traces import Trace

LINK = Link(latency_s=20e-6, bandwidth_bytes_per_s=2e8)


def job(workers: int = 2) -> Scenario:
    model = workload.read("mlp")
    model = model.model_copy(update={"costs": model.costs.model_copy(update={"noise": LogNormal(cv=0.1)})})
    place = one_rank_a_host(4).model_copy(update={"network": LINK})
    return Scenario(protocols.make("fmb"), model, workers, 40, 5, cluster=place)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A profile that was fitted on a run, and another run, by file."""
    folder = tmp_path_factory.mktemp("check")
    fitted = [Source("fitted", event.trace(replace(job(), workload=workload.read("mlp")), number)) for number in (0, 1)]
    made = profiles.make(fitted, "cluster", network=LINK)
    profiles.write(other_sizes.on_hosts(made, 4), str(folder / "p.toml"))
    event.trace(replace(job(3), workload=workload.read("mlp")), 2).write(str(folder / "run.parquet"))
    return folder


def changed(files, **update) -> str:
    """The profile with something changed, in a file of its own."""
    found = cluster.read(str(files / "p.toml")).model_copy(update=update)
    profiles.write(found, str(files / "changed.toml"))
    return str(files / "changed.toml")


def run(capsys, profile: str, *words: str) -> tuple[int, dict]:
    code = check.main([profile, *words, "--json"])
    return code, json.loads(capsys.readouterr().out)["jobs"][0]


def test_a_profile_that_predicts_its_cluster_passes(files, capsys):
    code, found = run(capsys, str(files / "p.toml"), str(files / "run.parquet"))
    assert code == 0
    assert abs(found["error"]) < 0.02
    assert set(found["activities_s"]) >= {"compute", "send", "receive", "reduce", "update"}


def test_half_the_bandwidth_is_rejected_and_named(files, capsys):
    slow = changed(files, network=LINK.model_copy(update={"bandwidth_bytes_per_s": 1e8}))
    code, found = run(capsys, slow, str(files / "run.parquet"))
    assert code == 1
    assert found["error"] > 0.1
    assert next(iter(found["activities_s"])) in ("send", "receive")
    assert run(capsys, slow, str(files / "run.parquet"), "--tolerance", "5")[0] == 0


def test_slower_computing_is_rejected_and_named(files, capsys):
    known = cluster.read(str(files / "p.toml"))
    costs = known.costs["mlp"]
    line = costs.compute.model_copy(update={"base_s": costs.compute.base_s + 0.05})
    code, found = run(
        capsys, changed(files, costs={"mlp": costs.model_copy(update={"compute": line})}), str(files / "run.parquet")
    )
    assert (code, next(iter(found["activities_s"]))) == (1, "compute")


@pytest.mark.slow
def test_repeats_of_a_job_are_judged_together(files, capsys):
    """One run that is 14 % slow fails alone, and not beside two that are not; a table has 80 columns."""
    known, runs = cluster.read(str(files / "p.toml")), []
    for number, slower in ((3, 1.0), (4, 1.0), (5, 1.14)):
        trace = event.trace(replace(job(3), workload=workload.read("mlp"), seed=number), number)
        rows = trace.rows.assign(start_s=trace.rows["start_s"] * slower, end_s=trace.rows["end_s"] * slower)
        runs.append(str(files / f"night-of-the-24th-of-december-{number}.parquet"))
        Trace(trace.header, rows).write(runs[-1])
    assert run(capsys, str(files / "p.toml"), runs[2])[0] == 1
    code, found = run(capsys, str(files / "p.toml"), *runs)
    assert (code, found["runs"]) == (0, runs)
    assert -0.06 < found["error"] < -0.03
    other = str(files / "run.parquet")
    assert len(comparison.jobs([(path, traces.read(path)) for path in [*runs, other]])) == 1  # seeds differ alone
    assert known.provenance.engines == ()
    check.main([str(files / "p.toml"), *runs])
    page = capsys.readouterr().out.splitlines()
    assert max(map(len, page)) <= 80
    assert page[-1].endswith("all of 1 job within the tolerance of 10%")


def test_a_profile_names_the_engines_of_its_runs():
    trace = event.trace(replace(job(3), workload=workload.read("mlp")), 6)
    trained = Training("digits", "sgd", 0.1, 0, 0.0, "cpu", False, 1, "numpy")
    run_of_numpy = Trace(replace(trace.header, world="mpi", training=trained), trace.rows)
    assert profiles.make([Source("run", run_of_numpy)], "x").provenance.engines == ("numpy",)


def test_what_cannot_be_checked_is_said_in_a_line(files, tmp_path):
    with pytest.raises(WrongSetting, match="--tolerance"):
        check.main([str(files / "p.toml"), str(files / "run.parquet"), "--tolerance", "-1"])
    other = tmp_path / "other.parquet"
    event.trace(Scenario(protocols.make("fmb"), workload.read("toy_fc"), 2, 5, 1)).write(str(other))
    with pytest.raises(WrongSetting, match="a model that the profile has costs of: mlp"):
        check.main([str(files / "p.toml"), str(other)])
    many = tmp_path / "many.parquet"
    event.trace(Scenario(protocols.make("fmb"), workload.read("mlp"), 9, 5, 1)).write(str(many))
    with pytest.raises(WrongSetting, match="at most 3 workers"):
        check.main([str(files / "p.toml"), str(many)])
