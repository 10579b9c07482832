"""What all ranks have alike in a step, what a rank has always, and what it has now and then: parts of a fit, and of `calibration.slow`."""

from __future__ import annotations

import json
import re

import event
import numpy as np
import pandas as pd
import pytest

from calibration import fit, slow
from calibration.laws import ranks
from sim import run, stragglers
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform import cluster, other_sizes
from sim.protocols import make
from sim.simulation import simulate

RANKS, STEPS, REST_S = 6, 60, 0.04
ALLREDUCE = make("allreduce")


def computed(cv: float = 0.01, ranks: int = RANKS, steps: int = STEPS) -> np.ndarray:
    """Seconds that ranks compute, shape (steps, ranks)."""
    return 0.28 * np.exp(cv * np.random.default_rng(3).standard_normal((steps, ranks)))


def table(path, compute_s: np.ndarray, with_compute: bool = True):
    """A log of steps of a run whose ranks wait for one another; and the mean of its steps but the first, which is warm-up."""
    steps, ranks = compute_s.shape
    length_s = compute_s.max(axis=1) + REST_S
    found = pd.DataFrame({"step": np.repeat(range(steps), ranks), "rank": np.tile(range(ranks), steps)})
    found["seconds"] = np.repeat(length_s, ranks)
    if with_compute:
        found["compute_s"] = compute_s.ravel()
    found.to_csv(path, index=False)
    return str(path), float(length_s[1:].mean())


def fitted(tmp_path, *files: str) -> cluster.Cluster:
    given = [*files, "--from", "steps", "--workload", "mlp", "--batch", "8", "-o", str(tmp_path / "p.toml")]
    fit.main(given)
    return cluster.read(str(tmp_path / "p.toml"))


def step_s(profile: cluster.Cluster, workers: int = RANKS) -> float:
    job = Scenario(ALLREDUCE, workload.read("mlp"), workers, 100, batch=8, cluster=profile)
    return float(simulate(job, replications=2).step_s.mean())


def told(capsys, *line: str) -> dict:
    capsys.readouterr()
    assert slow.main([*line, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("kind", "begins"),
    [
        ("scaling", "hosts,gpus_per_host,batch,step_s\n1,1,8,0.2\n"),
        ("nccl-tests", "# OSU MPI Allreduce\n# Size Avg(us)\n4 12\n"),
        ("horovod-timeline", '[{"name": "NEGOTIATE_ALLREDUCE"}]'),
    ],
)
def test_files_without_steps_of_ranks_are_refused(tmp_path, kind, begins):
    """By whatever way their kind is known: how they begin, or a name."""
    path = tmp_path / "file.txt"
    path.write_text(begins)
    for words in ([str(path)], [str(path), "--from", kind], [f"{kind}={path}"]):
        with pytest.raises(WrongSetting, match=f"RUN: given '{kind} file.txt'; allowed: steps of each rank"):
            slow.main(words)


@pytest.mark.parametrize("with_compute", [True, False])
def test_steps_that_are_long_at_all_ranks_are_so_on_more_hosts_too(tmp_path, capsys, with_compute):
    """Each tenth step is a checkpoint's: 2.7 times as long, and no rank is a straggler."""
    compute_s = computed()
    compute_s[::10] *= 3
    path, measured_s = table(tmp_path / "steps.csv", compute_s, with_compute)
    profile = fitted(tmp_path, path)
    assert "at all ranks together" in capsys.readouterr().out
    assert step_s(profile) == pytest.approx(measured_s, rel=0.015)
    assert step_s(other_sizes.on_hosts(profile, 32), 32) == pytest.approx(measured_s, rel=0.03)
    found = told(capsys, path, "--from", "steps")
    assert (found["slow_ranks"], found["long_steps"]["steps"], found["long_steps"]["ranks"]) == (
        [],
        STEPS // 10 - 1,
        [],
    )
    assert found["long_steps"]["cause"] == ("computing" if with_compute else "")


def test_the_log_of_one_rank_says_nothing_of_others(tmp_path):
    """Steps vary, and so they do on eight times as many hosts: nobody logged stragglers."""
    path, measured_s = table(tmp_path / "steps.csv", computed(0.2, 1, 200), with_compute=False)
    profile = fitted(tmp_path, path, "--ranks", "8")
    many = other_sizes.on_hosts(profile, 64)
    assert step_s(many, 64) == pytest.approx(measured_s, rel=0.01)


@pytest.mark.parametrize("runs", [1, 2])
def test_a_rank_that_is_slow_throughout_keeps_its_speed(tmp_path, capsys, runs):
    compute_s = computed()
    compute_s[:, 4] *= 1.3
    files = [table(tmp_path / f"{one}.csv", compute_s * (1 + one / 1000)) for one in range(runs)]
    profile = fitted(tmp_path, *(path for path, _ in files))
    assert "slow: rank 4 (1.2" in capsys.readouterr().out
    assert step_s(profile) == pytest.approx(files[0][1], rel=0.01)
    assert [host.speed < 0.9 for host in profile.machines()] == [rank == 4 for rank in range(RANKS)]


def test_a_slow_rank_makes_its_host_as_slow(tmp_path):
    compute_s = computed()
    compute_s[:, 4] *= 1.3
    path, measured_s = table(tmp_path / "steps.csv", compute_s)
    profile = fitted(tmp_path, path, "--gpus-per-host", "2")
    assert [host.count for host in profile.hosts] == [2, 1]
    assert step_s(profile) == pytest.approx(measured_s, rel=0.01)


def test_the_slow_rank_is_named_with_its_cost(tmp_path, capsys):
    compute_s = computed()
    compute_s[:, 4] *= 1.3
    path, measured_s = table(tmp_path / "steps.csv", compute_s)
    found = told(capsys, path, "--from", "steps", "--usd-per-hour", "36")
    (one,) = found["slow_ranks"]
    assert (one["ranks"], one["cause"], one["steps"]) == ([4], "computing", STEPS - 1)
    assert one["times"] == pytest.approx(1.3, rel=0.01)
    assert one["cost_s"] == pytest.approx((measured_s - found["without_slow_ranks_s"]) * (STEPS - 1))
    assert found["without_slow_ranks_s"] == pytest.approx(0.28 + REST_S, rel=0.02)
    assert one["cost_usd"] == pytest.approx(one["cost_s"] / 100)
    assert slow.main([path, "--from", "steps"]) == 0
    assert "rank 4: computing, 1.30 times the median rank's, in 59 of 59 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("heading", "unit"), [("time", "seconds"), ("ms/step", "milliseconds"), ("step_ms", "milliseconds")]
)
def test_the_unit_of_a_table_is_said_and_a_step_of_milliseconds_is_not_taken_for_seconds(
    tmp_path, capsys, heading, unit
):
    path = tmp_path / "steps.csv"
    path.write_text(
        f"step,rank,{heading}\n" + "".join(f"{step},{rank},40.0\n" for step in range(4) for rank in range(2))
    )
    assert slow.main([str(path)]) == 0
    said = capsys.readouterr().out
    assert f"note: {heading} read as {unit}" in said
    assert f"3 steps of 40 {'s' if unit == 'seconds' else 'ms'} in the mean" in said


def test_a_rank_that_is_slow_now_and_then_is_named_and_its_host_is_not_slow(tmp_path, capsys):
    compute_s = computed(steps=120)
    compute_s[5::10, 2] *= 3
    path, measured_s = table(tmp_path / "steps.csv", compute_s)
    (one,) = told(capsys, path, "--from", "steps")["slow_ranks"]
    assert (one["ranks"], one["steps"]) in (([2], 12), ([2], 13))  # beside chance
    profile = fitted(tmp_path, path)
    assert {host.speed for host in profile.machines()} == {1.0}
    assert step_s(profile) == pytest.approx(measured_s, rel=0.05)


def test_one_stall_is_no_slow_rank_and_is_named_with_what_it_took(tmp_path, capsys):
    compute_s = computed(steps=120)
    compute_s[70, 3] = 10.0
    path, _ = table(tmp_path / "steps.csv", compute_s)
    found = told(capsys, path, "--from", "steps")
    assert found["slow_ranks"] == []
    assert (found["long_steps"]["steps"], found["long_steps"]["ranks"]) == (1, [3])
    fitted(tmp_path, path)
    assert "at rank 3; where all ranks wait for them, steps take up to" in capsys.readouterr().out


def test_one_step_names_no_rank_and_clears_none(tmp_path, capsys):
    compute_s = computed(steps=2)
    compute_s[:, 4] *= 2
    path, _ = table(tmp_path / "steps.csv", compute_s)
    assert slow.main([path]) == 0
    said = capsys.readouterr().out
    assert "1 step of" in said
    assert "no rank can be named: one step" in said
    assert "none is slower" not in said


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("seed", range(4))
def test_slow_ranks_are_those_of_laws_too(tmp_path, capsys, seed, count):
    """A rank that takes 1.2 times as long among others that scatter: these are not named for what they differ by chance."""
    compute_s = 0.28 * np.exp(0.15 * np.random.default_rng(seed).standard_normal((201, count)))
    compute_s[:, 1] *= 1.2
    path, _ = table(tmp_path / "steps.csv", compute_s)
    throughout = [one["ranks"] for one in told(capsys, path, "--from", "steps")["slow_ranks"] if one["steps"] > 100]
    assert throughout == [[1]]
    assert list(ranks.varies(dict(enumerate(compute_s[1:].T))).slow) == [1]


def test_the_cause_is_that_in_which_a_rank_differs(tmp_path, capsys):
    """A rank whose input is long, in a trace."""
    law = stragglers.read("slow-ranks(rank=2, seconds=5 ms)")
    trace = event.trace(Scenario(ALLREDUCE, workload.read("mlp"), 4, 30, stragglers=law))
    trace.rows["activity"] = trace.rows["activity"].replace("sleep", "input")
    trace.write(tmp_path / "t.jsonl")
    (one,) = told(capsys, str(tmp_path / "t.jsonl"))["slow_ranks"]
    assert (one["ranks"], one["cause"], one["steps"]) == ([2], "input", 30)


def test_factors_of_simulated_stragglers_are_fitted_once(tmp_path, capsys):
    """The profile's host is slow, so that its own runs are simulated without the law that made it so."""
    line = ["--protocol", "allreduce", "--workload", "mlp", "--workers", "4", "--steps", "40", "--replications", "1"]
    run.main([*line, "--stragglers", "slow-ranks(rank=2, factor=1.3)", "--trace", str(tmp_path / "t.jsonl")])
    fit.main([str(tmp_path / "t.jsonl"), "-o", str(tmp_path / "p.toml")])
    assert re.search(r"an error of 0\.[01]%", capsys.readouterr().out)


def test_ranks_that_do_not_wait_are_refused(tmp_path):
    trace = event.trace(Scenario(make("ps-async"), workload.read("mlp"), 2, 5))
    trace.write(tmp_path / "t.jsonl")
    with pytest.raises(WrongSetting, match="wait for one another"):
        slow.main([str(tmp_path / "t.jsonl")])
