"""`import trainsim`: names that load what they are of, and questions that say what the commands say."""

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from processes import ROOT

import trainsim
from calibration import check as checking
from calibration import fit as fitting
from calibration import profiles
from sim import plan as planning
from sim import run, simulation
from sim.base.errors import WrongSetting

JOB = ("--protocol=amb", "--set=partitions=8", "--workload=mnist", "--workers=3", "--steps=8", "--replications=3")
SLOW = "--stragglers=niagara*0.01"


def job(**further) -> trainsim.Scenario:
    law = {"stragglers": trainsim.read_stragglers("niagara*0.01"), "stragglers_name": "niagara*0.01"}
    protocol = trainsim.make_protocol("amb", ["partitions=8"])
    return trainsim.Scenario(protocol, trainsim.read_workload("mnist"), **{"workers": 3, "steps": 8} | law | further)


def test_names_are_there_and_typed():
    tree = ast.parse((ROOT / "trainsim" / "__init__.py").read_text())
    typed = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        for one in node.body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    }
    assert typed == set(trainsim.__all__) == set(dir(trainsim)) == set(trainsim._HOMES)
    assert all(getattr(trainsim, name).__doc__ for name in trainsim.__all__)
    assert trainsim.simulate is simulation.simulate
    with pytest.raises(AttributeError, match="no attribute 'simulatte'"):
        _ = trainsim.simulatte


def test_importing_it_loads_nothing():
    code = "import sys; before = set(sys.modules); import trainsim; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    ours = {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert ours == {"trainsim", "trainsim.aliases"}


CHANGES = (
    "workers=5",
    "protocol=fmb",
    "protocol=ps-sync, servers=2, workers=4",
    "time_limit_s=30 ms",
    "network.bandwidth=1 Gbit/s",
    "stragglers=none",
    "workload=mlp",
    "workload=mlp, batch=10",
    "cluster=p3.8xlarge*4",
    "cluster=p3.8xlarge*4, workers=all, protocol=allreduce",
    "cluster=p3.8xlarge*4, hosts=2",
)


def test_what_if_says_what_the_command_says(capsys):
    run.main([*JOB, SLOW, "--json", *(f"--what-if={change}" for change in CHANGES)])
    printed = json.loads(capsys.readouterr().out)["what_if"]
    found = trainsim.what_if(job(), *CHANGES, replications=3)
    assert [one.change for one in found] == list(CHANGES)
    for one, row in zip(found, printed, strict=True):
        assert (one.change, one.ratio, one.pairs) == (row["change"], row["throughput_ratio"], row["pairs"])
        assert list(one.interval) == row["interval"]["throughput_ratio"]
    frame = found.to_frame()
    assert frame["ratio_low"].tolist() == [one.interval[0] for one in found]


def test_a_job_of_ones_own_is_a_change_and_a_result_is_not_simulated_again():
    base = trainsim.simulate(job(), replications=3, first=4)
    found = trainsim.what_if(base, replace(job(), batch=8), "batch=8")
    assert found.base is base
    assert found[0].ratio == found[1].ratio
    assert found[0].result.first == 4


def test_why_says_what_the_command_says(capsys):
    run.main([*JOB, SLOW, "--json", "--why"])
    printed, found = json.loads(capsys.readouterr().out)["why"], trainsim.why(job(), replications=3)
    assert json.loads(json.dumps(found.as_json())) == printed


def test_a_plan_is_that_of_the_command(capsys):
    asked = {"workload": "toy_fc", "samples_per_s": 1000, "hosts": ["p3.2xlarge"], "counts": [1, 2]}
    asked["protocols"] = ["fmb"]
    words = ["--workload=toy_fc", "--samples-per-s=1000", "--hosts=p3.2xlarge", "--counts=1,2", "--protocols=fmb"]
    planning.main([*words, "--processes=1", "--json"])
    printed, found = json.loads(capsys.readouterr().out), trainsim.plan(**asked, processes=1)
    assert found.as_json() | {"wall_s": 0} == printed | {"wall_s": 0}
    assert len(found.to_frame()) == len(found.simulated)
    assert "p3.2xlarge" in repr(found)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A trace of one run, whose costs are known exactly."""
    path = tmp_path_factory.mktemp("runs") / "run.parquet"
    run.main([*JOB[:-1], "--stragglers=none", "--replications=1", "--trace", str(path)])
    return path


def timeless(profile: Path) -> list[str]:
    """The lines of a profile but that of when it was made."""
    return [line for line in profile.read_text().splitlines() if not line.startswith("made = ")]


def test_a_fit_is_that_of_the_command_and_a_check_too(recorded, tmp_path, capsys):
    profile = tmp_path / "mine.toml"
    fitting.main([str(recorded), "-o", str(profile), "--link=10 Gbit/s, 20 us"])
    made = trainsim.fit(recorded, name="mine", link="10 Gbit/s, 20 us")
    again = tmp_path / "again.toml"
    profiles.write(made, str(again))
    assert timeless(again) == timeless(profile)
    capsys.readouterr()
    checking.main([str(profile), str(recorded), "--json", "--tolerance=9"])
    printed = json.loads(capsys.readouterr().out)
    for known in (made, str(profile)):
        found = trainsim.check(known, recorded)
        np.testing.assert_allclose(
            [one.predicted_s for one in found], [one["predicted_s"] for one in printed["jobs"]], rtol=1e-5
        )
    assert found.to_frame()["measured_s"].tolist() == [one["measured_s"] for one in printed["jobs"]]


REFUSED = {
    "no job": (lambda: trainsim.what_if(3), "base: given 3"),
    "no name": (lambda: trainsim.what_if(job(), "wrokers=3"), "wrokers"),
    "no value": (lambda: trainsim.what_if(job(), "workers=0.5"), "workers"),
    "no change": (lambda: trainsim.what_if(job(), 3), "scenario: given 3"),
    "no why": (lambda: trainsim.why("amb"), "base: given 'amb'"),
    "no target": (lambda: trainsim.plan(workload="mlp"), "target"),
    "no such question": (lambda: trainsim.plan(samples_per_s=1, hots=["x"]), "hots"),
    "no time": (lambda: trainsim.plan(samples_per_s=1, within_s=float("nan")), "within_s: given nan"),
    "no traces": (trainsim.fit, "traces: missing"),
    "no option": (lambda: trainsim.fit("x.parquet", wrokload="mlp"), "wrokload: given 'mlp'"),
    "no kind": (lambda: trainsim.fit("x.parquet", ranks="4"), "ranks: given '4'; allowed: an integer"),
    "no source": (lambda: trainsim.fit("x.parquet", source="torhc"), "source: given 'torhc'"),
    "no file": (lambda: trainsim.fit("nowhere.parquet"), "nowhere.parquet"),
    "no table": (
        lambda: trainsim.fit("nowhere.csv", workload="mlp"),
        "'nowhere.csv'; allowed: a file or a folder that",
    ),
    "no profile": (lambda: trainsim.check(3, "x.parquet"), "PROFILE: given 3"),
    "no runs": (lambda: trainsim.check("p3.8xlarge*4"), "traces: missing"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_is_a_wrong_setting(name):
    ask, said = REFUSED[name]
    with pytest.raises(WrongSetting) as refused:
        ask()
    assert said in str(refused.value)
