"""A profile is a job: what it was fitted on are the defaults of commands and of Python; what they are without a profile."""

import json

import pandas as pd
import pytest
from test_recorded_profiles import planted

import trainsim
from calibration import fit
from sim import options, plan, protocols, run, simulated_options, sweep
from sim.base.errors import WrongSetting
from sim.model import workload
from sim.platform import cluster
from sim.platform.cluster import Cluster, Provenance
from sim.studies import changes

STEP_S = {(1, 1): 0.294, (1, 2): 0.307, (2, 2): 0.319, (4, 2): 0.343}  # by hosts and GPUs of each
SETTINGS = {"algorithm": "ring"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of scaling, and the profile that was fitted to it without a further option."""
    found = tmp_path_factory.mktemp("table")
    rows = [f"{hosts},{gpus},256,{seconds}" for (hosts, gpus), seconds in STEP_S.items()]
    (found / "rows.csv").write_text("\n".join(["hosts,gpus_per_host,batch,step_s", *rows]) + "\n")
    words = [str(found / "rows.csv"), "--from", "scaling", "--workload", "resnet50", "-o", str(found / "p.toml")]
    assert fit.main(words) == 0
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The profile of recorded runs of a model of one's own, whose file says the minibatch and not the batch of a step."""
    found = tmp_path_factory.mktemp("recorded")
    runs = [planted(found / f"run-{seed}", 32, seed) for seed in (0, 1, 2)]
    for one in runs:
        file = found / one / "workload.toml"
        file.write_text(file.read_text().replace("batch = 32", "batch = 8"))
    assert fit.main([*runs, "--link", "100 Gbit/s, 20 us", "-o", str(found / "p.toml")]) == 0
    return found


def job(*words, change=None):
    given, read = run.parser().parse_args(list(map(str, words))), options.Readers()
    return changes.applied(change, given, read) if change else simulated_options.scenario(given, read)


def told(found):
    return found.protocol, found.workload.name, found.workers, found.batch, found.stragglers_name


FITTED = protocols.make("ddp", [f"{name}={value}" for name, value in SETTINGS.items()])


def test_a_fitted_row_is_answered_without_further_options(table, capsys):
    words = ["--cluster", str(table / "p.toml"), "--hosts", "2", "--steps", "2", "--replications", "1", "--json"]
    assert run.main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["step_s"]["mean"] == pytest.approx(STEP_S[2, 2], rel=0.03)
    assert "the profile's runs), --workers all (4), --batch 256, --stragglers none" in found["notes"][0]
    assert told(job("--cluster", table / "p.toml")) == (FITTED, "resnet50", 8, 256, "none")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--protocol ddp", (FITTED, "resnet50", 8, 256, "none")),
        ("--protocol allreduce --workers 2", (protocols.make("allreduce"), "resnet50", 2, 256, "none")),
        ("--batch 32 --hosts 16", (FITTED, "resnet50", 32, 32, "none")),
        ("--workload vgg16", (FITTED, "vgg16", 8, 32, "none")),
        ("--stragglers niagara*0.01", (FITTED, "resnet50", 8, 256, "niagara*0.01")),
        ("--set bucket_mb=8", (protocols.make("ddp", ["bucket_mb=8"]), "resnet50", 8, 256, "none")),
        ("--protocol amb --workers 3 --batch 64", (protocols.make("amb"), "resnet50", 3, 64, "none")),
    ],
)
def test_options_override_what_the_profile_says(table, words, found):
    assert told(job("--cluster", table / "p.toml", *words.split())) == found


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("workers=2", (FITTED, "resnet50", 2, 256, "none")),
        ("hosts=8", (FITTED, "resnet50", 16, 256, "none")),
        ("protocol=amb", (protocols.make("amb"), "resnet50", 7, 256, "none")),
        ("cluster=p3.8xlarge*2", (FITTED, "resnet50", 8, 256, "none")),
        ("workload=vgg16", (FITTED, "vgg16", 8, 32, "none")),
        ("algorithm=tree", (protocols.make("ddp", ["algorithm=tree"]), "resnet50", 8, 256, "none")),
    ],
)
def test_a_change_is_of_the_profiles_job(table, change, found):
    assert told(job("--cluster", table / "p.toml", change=change)) == found


def test_a_change_of_a_programs_own_job_is_not_the_profiles(table):
    known = cluster.read(table / "p.toml")
    mine = trainsim.Scenario(protocols.make("horovod"), workload.read("resnet50"), workers=8, cluster=known)
    assert told(changes.of_job("workers=4", mine)) == (protocols.make("horovod"), "resnet50", 4, mine.batch, "none")


def test_a_plan_is_of_the_profiles_job(table, capsys):
    path = str(table / "p.toml")
    words = ["--hosts", path, "--price", f"{path}=24", "--samples-per-s", "100", "--counts", "2", "--processes", "1"]
    assert plan.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    asked, row = found["question"], found["best"][0]
    assert (asked["workload"], asked["protocols"], asked["batches"]) == ("resnet50", ["ddp"], [256])
    assert row["samples_per_s"]["mid"] == pytest.approx(4 * 256 / STEP_S[2, 2], rel=0.03)
    assert "--set algorithm=ring" in found["best"][0]["command"]


def test_a_sweep_is_of_the_profiles_job(table, tmp_path):
    words = ["--cluster", str(table / "p.toml"), "--hosts", "1,2", "--steps", "1", "--replications", "1"]
    assert sweep.main([*words, "--workers-processes", "1", "-o", str(tmp_path / "s.parquet")]) == 0
    rows = pd.read_parquet(tmp_path / "s.parquet")
    assert rows[["protocol", "workers", "batch", "stragglers"]].to_numpy().tolist() == [
        ["ddp", 2, 256, "none"],
        ["ddp", 4, 256, "none"],
    ]
    assert rows["step_mean_s"].tolist() == pytest.approx([STEP_S[1, 2], STEP_S[2, 2]], rel=0.03)


def test_protocols_that_are_compared_have_equal_stragglers(tmp_path):
    words = ["--protocol", "amb,allreduce", "--steps", "1", "--replications", "1", "--workers-processes", "1"]
    assert sweep.main([*words, "-o", str(tmp_path / "s.parquet")]) == 0
    assert set(pd.read_parquet(tmp_path / "s.parquet")["stragglers"]) == {options.SLEEPS}


def test_a_recorded_loop_is_a_job_by_itself(recorded):
    made = cluster.read(recorded / "p.toml")
    found = job("--cluster", recorded / "p.toml")
    assert (found.protocol.name, found.workload.name, found.workers, found.batch) == ("ddp", "Net", 2, 32)
    assert found.has_measured_costs
    again = job("--cluster", recorded / "p.toml", "--workload", recorded / "run-0" / "workload.toml")
    assert again.batch == 32  # of a step, where the file has a minibatch's 8
    assert job("--cluster", recorded / "p.toml", "--workload", "Net").workload == found.workload == made.fitted()
    assert job("--cluster", recorded / "p.toml", "--hosts", 8).workers == 16


def test_a_profile_predicts_checks_and_sums_itself_up_in_python(recorded, capsys):
    profile = trainsim.Profile.read(recorded / "p.toml")
    found = profile.predict(hosts=8, batch=64, replications=1)
    assert (found.scenario.workers, found.scenario.batch, found.scenario.protocol.name) == (16, 64, "ddp")
    assert abs(profile.check(recorded / "run-0")[0].error) < 0.03
    assert profile.summary().startswith("Net, from 3 runs\n  2 ranks on a")
    assert "Net, from 3 runs" in repr(profile)
    assert profile.job(protocol="ddp", set=["bucket_mb=8"]).protocol == protocols.make("ddp", ["bucket_mb=8"])
    again = trainsim.fit(*(recorded / f"run-{seed}" for seed in range(3)), link="100 Gbit/s, 20 us")
    assert again.predict(replications=1).samples_per_s == pytest.approx(
        profile.predict(replications=1).samples_per_s, rel=1e-3
    )


def test_python_knows_a_file_by_how_it_begins_as_commands_do(table):
    made = trainsim.fit(table / "rows.csv", workload="resnet50")
    assert made.summary().split(", from")[0] == "resnet50"
    assert len(made.check(table / "rows.csv")) == len(STEP_S)


@pytest.mark.parametrize(
    ("asked", "named"),
    [({"host": 3}, "host: given '3'"), ({"hosts": -1}, "--hosts: given -1"), ({"cluster": "x"}, "cluster: given 'x'")],
)
def test_what_a_profile_is_asked_wrongly_is_named(recorded, asked, named):
    with pytest.raises(WrongSetting, match=named):
        trainsim.Profile.read(recorded / "p.toml").predict(**asked)


def test_a_profile_without_runs_has_the_usual_defaults():
    known = Cluster(hosts=[{"count": 4}], provenance=Provenance())
    read = options.Readers()
    read.cluster = lambda _: known
    found = simulated_options.completed(run.parser().parse_args(["--cluster", "mine"]), read)
    assert (found.protocol, found.workers, found.batch, found.stragglers) == ("ddp", None, None, "none")


@pytest.mark.parametrize(
    ("words", "protocol", "workers", "stragglers"),
    [
        ("", "ddp", 3, "none"),
        ("--protocol amb", "amb", 3, options.SLEEPS),
        ("--protocol fmb", "fmb", 3, options.SLEEPS),
        ("--protocol amb-dg", "amb-dg", 3, options.SLEEPS),
        ("--protocol amb --stragglers none", "amb", 3, "none"),
        ("--protocol ps-sync", "ps-sync", 3, "none"),
        ("--protocol ddp --workers 5", "ddp", 5, "none"),
        ("--workload gpt2 --batch 12 --cluster p4d.24xlarge", "ddp", 8, "none"),
        ("--workload gpt2 --cluster p4d.24xlarge*2 --protocol allreduce", "allreduce", 16, "none"),
    ],
)
def test_without_a_profile(words, protocol, workers, stragglers):
    found = job(*words.split())
    assert (found.protocol, found.workers, found.stragglers_name) == (protocols.make(protocol), workers, stragglers)
