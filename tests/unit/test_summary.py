"""What programs and people are told."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from sim.answers import summary
from sim.answers.outcome import Outcome
from sim.answers.summary import COSTS, SLOW_HOSTS_COST, SLOW_RANKS_COST, STRAGGLERS_COST, as_json, show
from sim.job.header import RECORDED, Training
from sim.job.scenario import Scenario
from sim.model.costs import Costs, Line
from sim.model.workload import read
from sim.platform.cluster import Cluster, Host, Link
from sim.protocols import make
from sim.simulation import simulate
from sim.stragglers import read as law
from sim.version import VERSION


def scenario(workers=2, **more):
    """On a cluster whose costs its user knows."""
    amb = make("amb", ["time_limit_s=0.08", "partitions=16"])
    known = Cluster(name="mine", hosts=[Host(count=workers + 1)], costs={"toy_fc": Costs(compute=Line(slope_s=1e-5))})
    about = {"stragglers": law("niagara*0.02"), "stragglers_name": "niagara*0.02", "cluster": known} | more
    return Scenario(amb, read("toy_fc"), workers=workers, batch=256, seed=7, **about)


def outcome(replications=2, steps=50, ranks=3):
    step_s = np.tile(np.linspace(0.1, 0.3, steps), (replications, 1))
    return Outcome(step_s, np.full(step_s.shape, 40), np.full((replications, ranks), 0.25))


def printed(capsys, workers=2, free=None, notes=(), **shape):
    job = scenario(workers)
    show(as_json(job, "event", outcome(ranks=workers + 1, **shape), 1.5, notes=notes), job, free or {})
    return capsys.readouterr().out


def test_steps_of_one_run_are_told_and_not_how_far_runs_differ():
    """What is unknown of the speed makes one run half as fast and another twice as fast, and each of them steady."""
    runs = Outcome(np.array([[0.1] * 10, [0.2] * 10, [0.4] * 10]), np.full((3, 10), 40), np.zeros((3, 3)))
    assert as_json(scenario(), "event", runs, 1.5)["step_s"] == pytest.approx(
        dict.fromkeys(("mean", "p50", "p95", "p99"), 0.2)
    )


def test_values_are_those_of_the_run():
    answer = as_json(scenario(), "event", outcome(), 1.5, runs=9, notes=["a note"])
    assert (answer["schema"], answer["version"]) == ("answer/1", VERSION)
    assert answer["asked"] == {"runs": 9, "steps": 100, "warmup": 10}
    assert answer["done"] == {"runs": 2, "steps": 50, "warmup": 0}
    assert (answer["notes"], answer["wall_s"]) == (["a note"], 1.5)
    assert answer["samples_per_s"] == pytest.approx(200)
    assert answer["step_s"]["p95"] == pytest.approx(0.1 + 0.2 * 46.55 / 49)  # of 50 values
    assert answer["samples_per_step"] == {"mean": 40, "sd": 0}
    assert answer["idle_fraction"] == [0.25, 0.25, 0.25]
    assert answer["interval"]["samples_per_s"] == pytest.approx([200, 200])


def test_the_scenario_is_all_that_was_asked():
    """Field by field what a trace's header says of the job, and the cluster; of a real run how it trained."""
    asked = as_json(scenario(), "event", outcome(), 1.5)["scenario"]
    header = asdict(scenario().header("event"))
    told = {name for name in header if name not in (*RECORDED, "world", "replication", "updates_per_step")} | {
        "cluster"
    }
    assert set(asked) == told
    for name in told - {"cluster"}:
        assert asked[name] == json.loads(json.dumps(header[name])), name
    assert asked["settings"] == {"time_limit_s": 0.08, "partitions": 16}
    assert asked["law"]["kind"] == "folded-mixture"
    assert asked["cluster"] == {"name": "mine", "hosts": [{"count": 3}]}
    trained = Training("digits", "rms", 0.001, 0, 1.0, "cpu", False, 1)
    run = {"training": trained, "hosts": (("a", 2), ("b", 2), ("b", 2))}
    real = as_json(scenario(), "mpi", outcome(), 1.5, ran=scenario().header("mpi", **run))["scenario"]
    assert real["training"]["data"] == "digits"
    assert real["cluster"] == {"name": "mine", "host_of_rank": ["a", "b", "b"]}


@pytest.mark.parametrize(("replications", "steps"), [(1, 1), (1, 50), (3, 1)])
def test_json_has_no_nan(replications, steps):
    free = Cluster(hosts=[Host(count=3)], network=Link(bandwidth_bytes_per_s=float("inf")))
    made = as_json(scenario(cluster=free), "engine", outcome(replications, steps), 0)
    answer = json.loads(json.dumps(made, allow_nan=False))
    assert answer["done"]["steps"] == steps
    assert answer["scenario"]["cluster"]["network"]["bandwidth_bytes_per_s"] == "inf"


def test_an_unknown_interval_is_null_and_says_why():
    found = as_json(scenario(), "mpi", outcome(1, 5), 0)["interval"]
    why = "too few steps"
    assert found == {"level": 0.9, "samples_per_s": None, "why_none": why, "run_to_run": None, "not_known": None}


def answered(low: float, high: float, runs: float, unknown: tuple[str, ...] = ("links", "computing")) -> dict:
    """An answer of 12,345 samples a second that may be from low to high, and of which all but the spread of runs is not known."""
    spread = (12345 / runs, 12345 * runs)
    told = {"level": 0.9, "samples_per_s": (low, high), "why_none": None, "run_to_run": spread, "not_known": None}
    basis = [{"number": "from run to run", "share_of_variance": 0.2, "measured_by": ""}]
    if unknown:
        told["not_known"] = (low, high)
        each = [
            {"number": name, "share_of_variance": 0.4 / (n + 1), "measured_by": name} for n, name in enumerate(unknown)
        ]
        basis = [each[0], *basis, *each[1:]]
    return as_json(scenario(), "event", outcome(), 1.5) | {"samples_per_s": 12345.0, "interval": told, "basis": basis}


def test_what_varies_and_what_is_not_known_are_told_apart(capsys):
    """The largest part of what is not known is named, with its share of that alone, and the command that measures it."""
    show(answered(6789.0, 22345.0, 1.02), scenario(), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 8
    assert "12,000 samples/s, +-2% from run to run" in lines[2]
    assert lines[3].split() == ["not", "known", "6,800", "to", "22,000", "(9", "in", "10):", "links", "67%"]
    assert lines[4].split() == ["measure", "first", "links"]


@pytest.mark.parametrize("costs", [(SLOW_HOSTS_COST,), (SLOW_RANKS_COST, SLOW_HOSTS_COST), tuple(COSTS)])
def test_slow_hosts_with_prices_are_said_in_eight_lines(capsys, monkeypatch, costs):
    """The shares of each rank go first; what is left of three causes is what each costs."""
    monkeypatch.setenv("COLUMNS", "200")
    priced = scenario(
        cluster=Cluster(hosts=[Host(count=2, name="a", price_per_hour=4.0), Host(name="b", price_per_hour=1.0)])
    )
    job = answered(6789.0, 22345.0, 1.02)
    job |= {
        "scenario": as_json(priced, "event", outcome(), 1.5)["scenario"],
        "usd_per_hour": 9.0,
        "usd_per_million_samples": 0.2,
    }
    show(job, priced, {cause: job | {"samples_per_s": 24690.0} for cause in costs})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert lines[5].startswith("worth")
    said = "costs" if len(costs) == 3 else SLOW_HOSTS_COST
    assert lines[-1].startswith(said)
    assert "50.0%" in lines[-1]
    assert not any(line.startswith("idle") for line in lines)


def test_beyond_a_factor_of_ten_nothing_is_known(capsys):
    job = answered(987.0, 62345.0, 1.02)
    show(job, scenario(), {STRAGGLERS_COST: job | {"samples_per_s": 24690.0}})
    page = capsys.readouterr().out
    assert "nothing is known (990 to 62,000 samples/s): links 67%" in page
    assert "as assumed       12,000 samples/s" in page
    assert "50.0%: 25,000 samples/s without" in page


@pytest.mark.parametrize(("runs", "said"), [(1.0, False), (1.00004, False), (1.0001, True)])
def test_runs_that_hardly_differ_have_no_spread(capsys, runs, said):
    show(answered(6789.0, 22345.0, runs), scenario(), {})
    assert ("from run to run" in capsys.readouterr().out) == said


@pytest.mark.parametrize(("times", "said"), [(2.0, "12,000"), (1.05, "12,300"), (1.002, "12,345")])
def test_there_are_as_many_digits_as_the_interval_bears(capsys, times, said):
    show(answered(12345 / times, 12345 * times, 1.001, unknown=()), scenario(), {})
    page = capsys.readouterr().out
    assert f" {said} samples/s, +-0.1% from run to run" in page
    assert "not known" not in page


def test_an_algorithm_that_nobody_said_is_not_known_and_does_not_vary_from_run_to_run():
    job = Scenario(make("horovod", ["algorithm=unknown"]), read("resnet50"), workers=4, steps=2, warmup=1, batch=8)
    found = simulate(job, replications=5)
    told = found.answer()["interval"]
    assert (told["run_to_run"], told["not_known"]) == (None, list(found.interval))
    named = {one.name for one in found.basis}
    assert "the algorithm that sums" in named
    assert "from run to run" not in named


def test_page_says_what_was_run_and_what_came_of_it(capsys):
    page = printed(capsys)
    for text in ("amb (time_limit_s=0.08, partitions=16)", "toy_fc", "2 workers, batch 256", "niagara*0.02", "seed 7"):
        assert text in page
    assert "+-0%" not in page
    for text in ("200 samples/s\n", "p95 290 ms", "; 40 samples", "master 25.0%"):
        assert text in page


def test_page_fits_80_columns(capsys):
    free = {STRAGGLERS_COST: as_json(scenario(), "event", outcome(), 1.5) | {"samples_per_s": 1234567.0}}
    lines = printed(capsys, workers=11, free=free, notes=["word " * 40]).splitlines()
    assert max(map(len, lines)) <= 80


def test_cost_of_stragglers_is_said_in_percent(capsys):
    page = printed(capsys, free={STRAGGLERS_COST: {"samples_per_s": 400.0}})
    assert "50.0%: 400 samples/s without" in page
    assert "stragglers cost" not in printed(capsys)


def test_many_ranks_are_summed_up(capsys):
    assert "workers min 25.0%, median 25.0%, max 25.0%" in printed(capsys, workers=12)
    assert "median" not in printed(capsys, workers=11)
    assert (
        summary._idle([0.25] * 40, 38)
        == "servers min 25.0%, median 25.0%, max 25.0%, workers min 25.0%, median 25.0%, max 25.0%"
    )


def test_one_process_alone(capsys):
    page = printed(capsys, workers=0)
    assert "one process alone" in page
    assert "master" not in page
