"""A profile from runs that trainsim.Recorder wrote, of planted times: the costs, the link, and what it predicts of another run."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration import check, fit
from sim import options, run, simulated_options
from sim.answers import sources
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform import catalogue, cluster
from sim.protocols import make
from sim.recording import traces
from sim.simulation import simulate
from trainsim.recording.files import Files
from trainsim.recording.steps import Call, Iteration, rows

VARIABLES = [("bucket_0", (750_000,)), ("bucket_1", (250_000,))]
BUCKETS = [1_000_000, 3_000_000]  # bytes; the last variable's gradient is ready first
INPUT_S, UPDATE_S, LATENCY_S, BYTES_PER_S = 1e-3, 2e-3, 200e-6, 1e9
NOISE = 0.01


def compute_s(batch: int) -> float:
    return 5e-3 + 200e-6 * batch


def ring_s(size: int, ranks: int) -> float:
    """Patarasuk and Yuan (2009)."""
    return 2 * (ranks - 1) * (LATENCY_S + size / ranks / BYTES_PER_S)


def planted(
    folder: Path,
    batch: int,
    seed: int = 0,
    hosts: tuple[str, ...] = ("a", "a"),
    summing: bool = True,
    input_s: float = INPUT_S,
    run: float = 1.0,
    buckets=BUCKETS,
    paused_s: float = 0.0,
    early_s: float = 0.0,
    first: float = 1 / 2,
    counted=None,
    **facts,
) -> str:
    """A run in which each rank's buckets are ready at a share of computing, and at its end, and are summed one after another.

    Args:
        run: times as long does computing take.
        counted: what is known of the model besides.
        first: the share of computing.
        early_s: by which all ranks but the first have their minibatches earlier; they wait for it in the sums.
        paused_s: of an evaluation at the end of each tenth step, which the loop does not name.
    """
    rng, ranks = np.random.default_rng(seed), len(hosts)
    files = [Files(folder, rank, {}) for rank in range(ranks)]
    now_s, inputs_s = 0.0, input_s - early_s * (np.arange(ranks) > 0)
    for step in range(30):
        computed_s = run * compute_s(batch) * (1 + NOISE * rng.standard_normal(ranks))
        begun_s = [now_s + inputs_s + share * computed_s for share in (first, 1.0)]
        calls: list[list[Call]] = [[] for _ in hosts]
        free_s = 0.0
        for size, ready_s in zip(buckets, begun_s, strict=True):
            free_s = max(free_s, float(ready_s.max())) + ring_s(size, ranks)
            for rank in range(ranks if summing and ranks > 1 else 0):
                calls[rank].append(Call(float(ready_s[rank]), size, free_s))
        update_s = UPDATE_S + paused_s * (step % 10 == 9)
        ready_s = free_s if summing and ranks > 1 else float(begun_s[-1].max())
        for rank, of in enumerate(files):
            one = Iteration(now_s, now_s + float(inputs_s[rank]), ready_s + update_s, batch, ready_s, calls[rank])
            of.add(rows(step, [one], rank, ranks))
        now_s = ready_s + update_s
    for rank, of in enumerate(files):
        said = {"schema": "recorded/1", "rank": rank, "world": ranks, "host": hosts[rank], "cores": 2}
        said |= {"began_unix_s": 1e9, "warmup": 5, "engine": "torch", "complete": True, "workload": None}
        said |= {"summing": {"bucket_bytes": BUCKETS[1], "backend": "gloo"}} if summing and ranks > 1 else {}
        of.tell(said | facts)
        of.flush()
    variables = [(f"bucket_{at}", (size // 4,)) for at, size in enumerate(reversed(buckets))]
    files[0].describe("Net", variables, batch, {"optimiser": "sgd"} | (counted or {}))
    return str(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of two batches, one of them twice, and one that is not fitted; and the profile."""
    found = tmp_path_factory.mktemp("recorded")
    fitted = [planted(found / f"run-{batch}-{seed}", batch, seed) for batch, seed in ((32, 0), (32, 1), (64, 2))]
    planted(found / "other", 48, 3)
    assert fit.main([*fitted, "--link", "100 Gbit/s, 20 us", "-o", str(found / "p.toml")]) == 0
    return found


def test_costs_and_link_are_those_that_were_planted(folder):
    made = cluster.read(str(folder / "p.toml"))
    costs = made.costs["Net"]
    assert float(costs.compute(100)) == pytest.approx(compute_s(100), rel=0.02)
    assert (float(costs.input(32)), float(costs.update(1))) == pytest.approx((INPUT_S, UPDATE_S), rel=0.05)
    assert made.local.bandwidth_bytes_per_s == pytest.approx(BYTES_PER_S, rel=0.02)
    assert made.network.bandwidth_bytes_per_s == pytest.approx(12.5e9)
    assert (sum(host.count for host in made.hosts), made.hosts[0].slots) == (1, 2)
    assert made.provenance.repeated == ("Net",)


def test_it_predicts_a_run_of_another_batch_beside_its_floor(folder, capsys):
    words = [str(folder / "p.toml"), str(folder / "other")]
    assert check.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["jobs"][0]
    assert abs(found["error"]) < 0.03
    assert 0 < found["floor"] < 0.01
    assert check.main([*words, "--tolerance", "0.0001"]) == 1
    assert "floor" in capsys.readouterr().out


@pytest.mark.parametrize("first", [0.5, 0.98])
def test_sums_that_begin_when_computing_ends_are_not_hidden_by_it(tmp_path, capsys, first):
    """Two buckets, of which the model's file tells only the sizes, and the run when they were ready."""
    runs = [
        planted(tmp_path / f"run-{seed}", 32, seed, first=first, buckets=[4 * size for size in BUCKETS])
        for seed in (0, 1)
    ]
    assert fit.main([*runs, "-o", str(tmp_path / "p.toml")]) == 0
    assert ("fused=False" in capsys.readouterr().out) == (first > 0.9)
    assert check.main([str(tmp_path / "p.toml"), *runs, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["jobs"]
    assert abs(found["error"]) < 0.04


def test_a_recorded_model_is_simulated_on_more_hosts(folder, capsys):
    asked = "--batch 48 --hosts 8"
    where = ["--cluster", str(folder / "p.toml"), "--workload", str(folder / "other" / "workload.toml")]
    assert run.main([*asked.split(), *where, "--replications", "2", "--steps", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 16 * 48 / (compute_s(48) + INPUT_S + UPDATE_S + 0.015) < found["samples_per_s"] < 16 * 48 / compute_s(48)
    assert "nominal" not in " ".join(found["notes"])


def test_ranks_on_two_hosts_measure_the_link_between_them(tmp_path):
    runs = [planted(tmp_path / f"run-{seed}", 32, seed, ("a", "b")) for seed in (0, 1)]
    assert fit.main([*runs, "-o", str(tmp_path / "p.toml")]) == 0
    made = cluster.read(str(tmp_path / "p.toml"))
    assert made.network.bandwidth_bytes_per_s == pytest.approx(BYTES_PER_S, rel=0.02)
    assert made.provenance.links_measured
    with pytest.raises(WrongSetting, match="no link beside that which the runs measured"):
        fit.main([*runs, "--link", "25 Gbit/s", "-o", str(tmp_path / "q.toml")])


def test_messages_that_nobody_saw_are_part_of_computing(tmp_path):
    assert fit.main([planted(tmp_path / "run", 32, summing=False), "-o", str(tmp_path / "p.toml")]) == 0
    made = cluster.read(str(tmp_path / "p.toml"))
    assert any("links are free" in note for note in made.provenance.notes)


def test_gradients_of_half_precision_are_moved_in_two_bytes(tmp_path):
    whole = planted(tmp_path / "run", 32)
    (Path(whole) / "workload.toml").unlink()
    Files(tmp_path / "model", 0, {}).describe("Net", [*VARIABLES, ("bucket_2", (1_000_000,))], 32, {})
    (tmp_path / "model" / "workload.toml").rename(tmp_path / "run" / "workload.toml")
    assert fit.main([whole, "-o", str(tmp_path / "p.toml")]) == 0
    assert cluster.read(str(tmp_path / "p.toml")).costs["Net"].item_bytes == pytest.approx(2)


def test_a_gpu_is_known_by_its_name(tmp_path):
    found = {"gpu": "NVIDIA A100-SXM4-40GB", "gpus": 8, "device": "gpu"}
    assert fit.main([planted(tmp_path / "run", 32, **found), "-o", str(tmp_path / "p.toml")]) == 0
    host = cluster.read(str(tmp_path / "p.toml")).hosts[0]
    assert (host.gpus, host.gpu.name) == (2, "A100")


def asked_elsewhere(profile: Path, where: str):
    """The model of a profile on a host of the catalogue, without messages."""
    return Scenario(make("allreduce"), workload.read(profile), workers=1, cluster=cluster.read(where))


def test_what_was_measured_on_a_gpu_is_carried_to_another(tmp_path, capsys):
    """By the ratio of what training reaches on both, in the format and the class that were seen."""
    found = {"gpu": "NVIDIA A100-SXM4-40GB", "gpus": 8, "device": "gpu"}
    seen = {"flops_per_sample": 1e9, "architecture": "convolution", "precision": "bf16"}
    runs = [planted(tmp_path / f"run-{batch}", batch, counted=seen, **found) for batch in (32, 64)]
    assert fit.main([*runs, "-o", str(tmp_path / "p.toml")]) == 0
    assert "the ratio of rates to those of A100, where it was measured" in capsys.readouterr().out
    there, here = (asked_elsewhere(tmp_path / "p.toml", where) for where in ("p5.48xlarge", "p4d.24xlarge"))
    was, now = (catalogue.find("gpus", name).reached("bf16", "convolution") for name in ("A100", "H100"))
    for batch in (32, 64):
        assert float(here.costs.compute(batch)) == pytest.approx(compute_s(batch) + UPDATE_S, rel=0.02)
        times = was.peak * was.share / (now.peak * now.share)
        assert float(there.costs.compute(batch) / here.costs.compute(batch)) == pytest.approx(times)
    assert there.costs.error > 0
    assert "times those on A100 (bf16)" in sources.notes(there)[0]


def test_operations_that_were_counted_on_cores_are_asked_of_gpus(tmp_path, capsys):
    """At the share of the peak that models of the class reach; runs whose batches have other lengths are still of one job."""
    runs = [planted(tmp_path / f"run-{n}", 32, n, counted={"flops_per_sample": 1e9 + n * 1e7}) for n in (0, 1)]
    assert fit.main([*runs, "-o", str(tmp_path / "p.toml")]) == 0
    assert "computing by the peak rates of their GPUs, and no wait for data" in capsys.readouterr().out
    rate = catalogue.find("gpus", "H100").reached(None, "other")
    there = asked_elsewhere(tmp_path / "p.toml", "p5.48xlarge")
    more_s = float(there.costs.compute(64) - there.costs.compute(32))
    assert more_s == pytest.approx(32 * 3 * 1.005e9 / (rate.peak * rate.share))
    assert "no measurement of Net on H100" in sources.notes(there)[0]
    assert cluster.read(str(tmp_path / "p.toml")).provenance.repeated == ("Net",)
    here = asked_elsewhere(tmp_path / "p.toml", str(tmp_path / "p.toml"))
    assert float(here.costs.compute(32)) == pytest.approx(compute_s(32), rel=0.02)


def test_a_profile_that_describes_no_model_is_no_workload(tmp_path):
    profile = tmp_path / "p.toml"
    profile.write_text('schema = "cluster/1"\n[provenance.models.gone]\nparameters = 1\n')
    with pytest.raises(WrongSetting, match="a profile that says which model it was fitted for"):
        workload.read(profile)
    for text in ("provenance = 3", "[provenance]\nmodels = 3"):
        profile.write_text(f"{text}\n")
        with pytest.raises(WrongSetting, match="a profile that says which model it was fitted for"):
            workload.read(profile)
    profile.write_text("[provenance.models.toy_fc]\nparameters = 1\n")
    assert workload.read(profile) == workload.NAMED["toy_fc"]


def test_recorded_runs_are_fitted_alone(folder, tmp_path, trace):
    traces.Trace(replace(trace.header, batch=32), trace.rows).write(tmp_path / "sim.jsonl")
    with pytest.raises(WrongSetting, match="Recorder alone, or none"):
        fit.main([str(folder / "other"), str(tmp_path / "sim.jsonl"), "-o", str(tmp_path / "p.toml")])
    with pytest.raises(WrongSetting, match="--shared-cores"):
        fit.main([str(folder / "other"), "--shared-cores", "2", "-o", str(tmp_path / "p.toml")])


@pytest.mark.parametrize(
    ("facts", "named"),
    [({"world": 3}, "rank-00002"), ({"schema": "x"}, "schema"), ({"began_unix_s": None}, "began_unix_s")],
)
def test_facts_that_cannot_be_are_refused_by_name(tmp_path, facts, named):
    with pytest.raises(WrongSetting, match=named):
        traces.read(planted(tmp_path / "run", 32, **facts))


def causes(profile: Path, folder: str, capsys) -> dict[str, float]:
    """The gain of a job without each cause."""
    asked = (
        "--protocol horovod --set algorithm=ring --set fusion_bytes=0 --set cycle_s=0 --stragglers none --why --json"
    )
    where = ["--cluster", str(profile), "--workload", f"{folder}/workload.toml", "--workers", "2", "--steps", "3"]
    assert run.main([*asked.split(), *where, "--replications", "1"]) == 0
    return {one["change"]: one["throughput_ratio"] for one in json.loads(capsys.readouterr().out)["why"]["causes"]}


@pytest.mark.parametrize(("workers", "gain"), [(2, 1.0), (0, 1.095)])
def test_faster_computing_makes_no_loader_faster(tmp_path, capsys, workers, gain):
    """A step computes 11.4 ms and waits 60: half of computing is 5.7 ms less, or 5.7 ms more of waiting for a loader beside it."""
    runs = [planted(tmp_path / f"run-{batch}", batch, input_s=60e-3, loader_workers=workers) for batch in (32, 34)]
    assert fit.main([*runs, "-o", str(tmp_path / "p.toml")]) == 0
    assert ("loaders of 2 workers set the pace" in capsys.readouterr().out) == (workers == 2)
    found = causes(tmp_path / "p.toml", runs[0], capsys)
    assert found.get("computing twice as fast", 1.0) == pytest.approx(gain, abs=0.02)
    assert max(found, key=found.__getitem__) == "without waiting for data"
    assert found["without waiting for data"] > 3


def test_a_loader_that_nobody_waits_for_sets_no_pace(tmp_path):
    assert fit.main([planted(tmp_path / "run", 32, loader_workers=2), "-o", str(tmp_path / "p.toml")]) == 0
    assert cluster.read(str(tmp_path / "p.toml")).costs["Net"].loading is None


def test_a_model_whose_gradients_go_in_other_buckets_is_the_same_model(folder, tmp_path, capsys):
    other = planted(tmp_path / "compiled", 32, 4, buckets=[3_500_000, 500_000])
    assert check.main([str(folder / "p.toml"), other]) in (0, 1)
    assert fit.main([str(folder / "run-32-0"), other, "-o", str(tmp_path / "p.toml")]) == 0
    larger = planted(tmp_path / "larger", 32, 4, buckets=[1_000_000, 8_000_000])
    with pytest.raises(
        WrongSetting,
        match="Net of 2,250,000 parameters'; allowed: the model of this name that was fitted, of 1,000,000",
    ):
        check.main([str(folder / "p.toml"), larger])


@pytest.mark.slow
def test_one_pair_of_repeats_is_not_enough_and_said(tmp_path, capsys):
    runs = [planted(tmp_path / f"run-{n}", 32, n, run=1 + 0.2 * (n == 1)) for n in range(5)]
    other = planted(tmp_path / "other", 64)
    told = []
    for fitted in ([runs[0], other], [*runs[:2], other], [*runs, other]):
        assert fit.main([*fitted, "-o", str(tmp_path / "p.toml")]) == 0
        assert run.main(["--cluster", str(tmp_path / "p.toml"), "--workload", f"{other}/workload.toml", "--workers", "2", "--protocol",
            "allreduce", "--steps", "5", "--stragglers", "none"]) == 0  # fmt: skip
        told.append(" ".join(capsys.readouterr().out.split()))
    assert ["record a third run of the same batch" in one for one in told] == [False, True, False]
    assert ["record a third and fit again" in one for one in told] == [False, True, False]


def test_evaluations_within_the_loop_are_no_update_and_said(tmp_path, capsys):
    fitted = planted(tmp_path / "run", 32, paused_s=0.3)
    assert fit.main([fitted, "-o", str(tmp_path / "p.toml")]) == 0
    costs = cluster.read(str(tmp_path / "p.toml")).costs["Net"]
    assert float(costs.update(1)) == pytest.approx(UPDATE_S, rel=0.05)
    assert "in 3 of 25 steps the update takes 5 times the usual" in " ".join(capsys.readouterr().out.split())
    assert check.main([str(tmp_path / "p.toml"), fitted, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert abs(found["jobs"][0]["error"]) < 0.03
    assert "evaluate" not in found["jobs"][0]["activities_s"]
    assert any("recorder.pause() names them" in note for note in found["notes"])


def test_ranks_wait_for_the_loader_that_is_last(tmp_path, capsys):
    """The others' loaders went on while they waited in the sums: what these had waited for says nothing of their pace."""
    runs = [planted(tmp_path / f"run-{n}", 32, n, input_s=60e-3, early_s=50e-3, loader_workers=1) for n in (0, 1)]
    assert fit.main([*runs, "-o", str(tmp_path / "p.toml")]) == 0
    capsys.readouterr()
    assert check.main([str(tmp_path / "p.toml"), runs[0], "--json"]) == 0
    assert abs(json.loads(capsys.readouterr().out)["jobs"][0]["error"]) < 0.08  # planted sums overlap at the early rank


@pytest.mark.parametrize(
    ("given", "hosts", "each", "cores"),
    [
        ("", 1, 2, 4),  # as recorded: what threads of sums took of two cores is in the costs
        ("--workers 4", 1, 4, 2),
        ("--hosts 1 --workers 4", 1, 4, 2),
        ("--per-host 4", 1, 4, 2),
        ("--hosts 2", 2, 2, 4),
        ("--hosts 2 --per-host 4", 2, 4, 2),
    ],
)
def test_more_ranks_share_the_cores_that_were_recorded(folder, given, hosts, each, cores):
    words = ["--cluster", str(folder / "p.toml"), "--workload", str(folder / "run-32-0" / "workload.toml")]
    job = simulated_options.scenario(run.parser().parse_args([*words, *given.split()]), options.Readers())
    (host,) = job.cluster.hosts
    assert (host.count, host.ranks, host.cores, job.workers) == (hosts, each, cores, hosts * each)


def test_sums_that_were_timed_as_a_whole_take_no_core_of_more_ranks(folder):
    """Four ranks on the two cores compute for twice as long; their sums do not take twice the ring's time on top."""
    words = ["--cluster", str(folder / "p.toml"), "--workers", "4", "--batch", "32"]
    job = simulated_options.scenario(run.parser().parse_args(words), options.Readers())
    step_s = simulate(job, replications=4).outcome.step_s.mean()
    alone_s = 2 * (compute_s(32) + INPUT_S + UPDATE_S)
    assert alone_s < step_s < alone_s + 1.1 * sum(ring_s(size, 4) for size in BUCKETS)


def test_a_machine_that_had_cores_to_spare_has_those_that_were_recorded(tmp_path):
    assert fit.main([planted(tmp_path / "run", 32, cores=8), "-o", str(tmp_path / "p.toml")]) == 0
    (host,) = cluster.read(str(tmp_path / "p.toml")).with_each(6).hosts
    assert (host.ranks, host.cores) == (6, 8)
