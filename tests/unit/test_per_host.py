"""`--per-host N`: so many workers on each host, spread or packed, which the first lines of an answer say."""

import json
from collections import Counter

import pytest

import trainsim
from calibration import fit
from sim import options, plan, run, simulated_options
from sim.base.errors import WrongSetting
from sim.platform import cluster
from sim.studies import changes
from sim.sweeps import grid

JOB = ["--workload", "resnet50", "--replications", "1", "--steps", "3", "--warmup", "1"]


def job(*given: str):
    return simulated_options.scenario(run.parser().parse_args([*JOB, *given]), options.Readers())


def each(scenario) -> list[int]:
    """Workers of each host that has any."""
    return sorted(Counter(scenario.computing_hosts).values())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--cluster p3.8xlarge --hosts 8 --per-host 1", [1] * 8),
        ("--cluster p3.8xlarge*8 --per-host 2", [2] * 8),
        ("--cluster p3.8xlarge*8 --per-host 2 --workers 5", [1, 2, 2]),
        ("--cluster p3.8xlarge*8 --workers 8", [4, 4]),  # as before: full hosts first
    ],
)
def test_workers_of_each_host(given, expected):
    assert each(job(*given.split())) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--hosts 8 --per-host 1", "8 workers spread over 8 hosts (1 a host), batch 64"),
        ("--hosts 8 --workers 8", "8 workers packed on 2 of 8 hosts (4 a host), batch 64"),
        ("--hosts 8 --per-host 2 --workers 5", "5 workers spread over 3 of 8 hosts (1 to 2 a host), batch 64"),
        ("--hosts 2", "8 workers, batch 64"),
    ],
)
def test_the_first_line_says_where_workers_stand(capsys, given, said):
    assert run.main([*JOB, "--cluster", "p3.8xlarge", *given.split()]) == 0
    head = " ".join(capsys.readouterr().out.partition("stragglers;")[0].split())
    assert said in head


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--cluster p3.8xlarge*2 --per-host 5", "--per-host: given 5; allowed: an integer from 1 to 4"),
        ("--cluster p3.8xlarge*2 --per-host 0", "--per-host: given 0; allowed: an integer from 1 to 4"),
        ("--per-host 2", "--per-host: given 2; allowed: nothing without --cluster"),
        ("--cluster p3.8xlarge*2 --per-host 1 --workers 3", "--workers: given 3; allowed: at most 2 workers"),
    ],
)
def test_what_cannot_be_is_refused(given, said):
    with pytest.raises(WrongSetting, match=said):
        job(*given.split())


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ((1, 2, 4), {"--workers 8": [8], "--workers 8 --per-host 8": [8], "--workers 3": [3]}),
        ((1, 2), {"--hosts 2 --per-host 8": [8, 8]}),
    ],
)
def test_a_host_of_a_table_of_sizes_may_have_more_gpus_than_the_table(tmp_path, seen, expected):
    """Its number of GPUs is that of the largest row, and no host's."""
    table, profile = tmp_path / "sizes.csv", tmp_path / "fitted.toml"
    rows = "".join(f"1,{gpus},{batch},{0.1 + 0.01 * gpus}\n" for gpus, batch in zip(seen, (32.5, 64, 32), strict=False))
    table.write_text(f"hosts,gpus_per_host,batch,step_s\n{rows}")
    fit.main([str(table), "--from", "scaling", "--workload", "resnet50", "-o", str(profile)])
    assert {given: each(job("--cluster", str(profile), *given.split())) for given in expected} == expected


def test_what_ifs_and_sweeps_have_it():
    given = run.parser().parse_args([*JOB, "--cluster", "p3.8xlarge*4", "--per-host", "1"])
    assert each(changes.applied("gpus_per_host=4", given, options.Readers())) == [4] * 4
    assert each(changes.applied("hosts=16, gpus_per_host=2", given, options.Readers())) == [2] * 16
    assert grid.value_of("gpus_per_host", "2") == 2


def test_programs_have_it():
    place = trainsim.read_cluster("p3.8xlarge*4", gpus_per_host=1)
    scenario = trainsim.Scenario(
        trainsim.make_protocol("allreduce"), trainsim.read_workload("resnet50"), workers=4, cluster=place
    )
    assert each(scenario) == [1] * 4
    assert each(changes.of_job("gpus_per_host=2", scenario)) == [2, 2]
    with pytest.raises(WrongSetting, match="--per-host: given 9"):
        cluster.read("p3.8xlarge*4", gpus_per_host=9)


@pytest.mark.slow
def test_a_plan_has_it_and_prints_the_command_that_does(capsys):
    asked = "--workload resnet50 --hosts p3.8xlarge,p3.2xlarge --samples-per-s 1 --counts 2 --protocols allreduce"
    more = "--within 20 --processes 1 --json --per-host 2"
    assert plan.main([*asked.split(), *more.split()]) == 0
    found = json.loads(capsys.readouterr().out)
    (first,) = found["best"]
    assert first["hosts_told"] == "2 x p3.8xlarge, 2 a host"
    assert (first["workers"], "--per-host 2" in json.dumps(found)) == (4, True)
