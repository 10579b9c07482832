"""Fits recover what was planted: costs, noise, runs, hosts, sleeps; and say in one line what they cannot read."""

import contextlib
import io
import json
from functools import cache

import event
import numpy as np
import pytest
from event import by_engine

from calibration import fit
from calibration.evidence import factors, sleeps
from calibration.profiles import Probe, Source, make, write
from sim import command, stragglers
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.laws import Empirical, LogNormal
from sim.model import workload
from sim.model.costs import Costs, Line
from sim.platform import cluster
from sim.platform.cluster import Cluster, Host, Link
from sim.recording.traces import Trace, read
from sim.texts import AnytimeDelayedGradients, AnytimeMinibatch, FixedMinibatch, Hybrid

PLANTED = Costs(
    input=Line(base_s=1e-4, slope_s=1e-6),
    compute=Line(base_s=4e-3, slope_s=2e-4),
    loop_s=3e-3,
    partition=Line(base_s=1e-3, slope_s=2e-4),
    to_device=Line(base_s=2e-5, slope_s=1e-10),
    to_host=Line(slope_s=1.5e-10),
    take_up=Line(slope_s=2e-10),
    reduce=Line(slope_s=3e-10),
    update=Line(slope_s=5e-10),
    evaluate=Line(slope_s=5e-5),
    noise=LogNormal(cv=0.06),
)
JOB = {"workload": workload.read("mlp"), "steps": 40, "warmup": 2, "test_size": 50, "evaluate_every": 5}


def machines(costs, *own):
    return Cluster(hosts=own or (Host(count=4),), costs={"mlp": costs})


def campaign(where, sleep="niagara*0.01", seed=0):
    """FMB at two batches, AMB with two micro-batches and two limits, each in a run of its own."""
    protocols = [(FixedMinibatch(), 64), (FixedMinibatch(), 256)]
    protocols += [
        (AnytimeMinibatch(time_limit_s=limit_s, partitions=p), 512) for p in (8, 64) for limit_s in (0.03, 0.09)
    ]
    law = stragglers.read(sleep)
    for index, (protocol, batch) in enumerate(protocols):
        named = {"stragglers": law, "stragglers_name": sleep}
        job = Scenario(protocol, batch=batch, cluster=where, **named, seed=seed + index, **JOB)
        yield Source(f"run{index}", event.trace(job))


@cache
def plain():
    """Of what is planted and nothing else."""
    return tuple(campaign(machines(PLANTED)))


@pytest.fixture(scope="module")
def recovered():
    return make(list(plain()), "recovered")


def test_planted_costs_are_recovered(recovered):
    costs = recovered.costs["mlp"]
    for batch in (64, 256):
        assert costs.compute(batch) == pytest.approx(PLANTED.compute(batch), rel=0.02)
    for micro_batch, turns in ((8, 20), (64, 3)):
        planted_s = PLANTED.loop_s + turns * PLANTED.partition(micro_batch)
        assert costs.loop_s + turns * costs.partition(micro_batch) == pytest.approx(planted_s, rel=0.02)
    assert costs.compute.slope_s == pytest.approx(PLANTED.compute.slope_s, rel=0.03)
    assert costs.partition.slope_s == pytest.approx(PLANTED.partition.slope_s, rel=0.05)
    size = JOB["workload"].message_bytes
    for name, amount in (("to_device", 4 * (JOB["workload"].parameters + 64 * 785)), ("to_host", size - 32)):
        assert getattr(costs, name)(amount) == pytest.approx(getattr(PLANTED, name)(amount), rel=1e-4), name
    assert costs.reduce_rows is None
    for name, amount in (("take_up", size), ("reduce", size), ("update", size), ("evaluate", 50), ("input", 64)):
        assert getattr(costs, name)(amount) == pytest.approx(getattr(PLANTED, name)(amount), rel=1e-6), name


COLD_S = {"compute": 2e-3, "update": 1e-3}  # planted


def with_sleeps(costs: Costs, *laws: str) -> Costs:
    """Costs that are found in runs of fmb and amb, quick ones whose ranks stay warm, under each of the laws of sleeps."""
    protocols = [FixedMinibatch(), AnytimeMinibatch(time_limit_s=0, partitions=8)]
    job = {"batch": 16, **JOB, "cluster": machines(costs), "test_size": 0, "steps": 150}
    runs = [
        event.trace(Scenario(protocol, stragglers=stragglers.read(law), **(job | {"workers": workers})))
        for law in laws
        for protocol in protocols
        for workers in (1, 2)
    ]
    return make([Source(f"run{i}", trace) for i, trace in enumerate(runs)], "cold").costs["mlp"]


def cold(costs: Costs) -> dict[str, float]:
    return {name: getattr(costs, name).cold_s for name in ("compute", "partition", "update")}


QUICK = {"update": Line(base_s=1e-3), "compute": Line(base_s=1e-3), "partition": Line(base_s=1e-3)}


@pytest.mark.slow
def test_what_an_idle_rank_takes_more_is_found_in_runs_with_sleeps_and_without():
    lines = {name: QUICK[name].model_copy(update={"cold_s": COLD_S[name]}) for name in COLD_S}
    planted = Costs(**(QUICK | lines), noise=LogNormal(cv=0.05)).model_copy(
        update={"partition": Line(base_s=1e-3, cold_s=COLD_S["compute"])}
    )
    found = with_sleeps(planted, "none", "niagara*0.03")
    assert cold(found) == pytest.approx(COLD_S | {"partition": COLD_S["compute"]}, rel=0.1)
    assert found.compute(16) == pytest.approx(1e-3, rel=0.05)
    assert found.update(JOB["workload"].message_bytes) == pytest.approx(1e-3, rel=0.05)
    assert found.noise.draw(np.random.default_rng(1), 10_000).std() == pytest.approx(0.05, rel=0.3)


def renewing(cold_s: float) -> Costs:
    """Costs that are found in a run of amb-dg, which nobody has sleep: it packs for 3 ms and takes up parameters for 20 ms."""
    lines = {"compute": Line(base_s=1e-2, cold_s=cold_s), "pack": Line(base_s=3e-3), "take_up": Line(base_s=2e-2)}
    protocol = AnytimeDelayedGradients(time_limit_s=0.06, partitions=8, window_s=0.1)
    job = {"batch": 16, **JOB, "test_size": 0, "steps": 80, "workers": 1}
    where = machines(Costs(**lines, noise=LogNormal(cv=0.05)))
    fixed = [Scenario(FixedMinibatch(), cluster=where, seed=seed, **(job | {"batch": 2})) for seed in (1, 2)]
    traces = map(event.trace, [*fixed, Scenario(protocol, cluster=where, **job)])
    return make([Source(f"run{i}", trace) for i, trace in enumerate(traces)], "dg").costs["mlp"]


@pytest.mark.parametrize("planted_s", [2e-3, 0.0])
def test_partitions_that_follow_one_another_tell_what_a_cold_one_takes_more(planted_s):
    found = renewing(planted_s)
    assert found.compute.cold_s == pytest.approx(planted_s, rel=0.15)
    assert found.compute(2) == pytest.approx(1e-2, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("laws", [["none"], ["niagara*0.03"], ["none", "niagara*0.03"]])
def test_nothing_is_taken_for_cold_that_is_not(laws):
    assert cold(with_sleeps(Costs(**QUICK, noise=LogNormal(cv=0.05)), *laws)) == dict.fromkeys(cold(Costs()), 0.0)


def test_planted_noise_is_recovered(recovered):
    noise = recovered.costs["mlp"].noise
    assert noise.kind == "lognormal"
    assert noise.cv == pytest.approx(0.06, rel=0.1)
    assert recovered.costs["mlp"].run.cv < 0.02  # none was planted; 60 steps a run leave 0.06 / sqrt(60) = 0.008


@pytest.mark.slow
def test_planted_spread_of_runs_is_recovered():
    costs = PLANTED.model_copy(update={"run": LogNormal(cv=0.15)})
    found = make([s for seed in range(0, 50, 10) for s in campaign(machines(costs), seed=seed)], "runs").costs["mlp"]
    assert found.run.kind == "lognormal"
    assert found.run.cv == pytest.approx(0.15, rel=0.2)
    assert found.noise.cv == pytest.approx(0.06, rel=0.1)
    assert found.compute(256) == pytest.approx(PLANTED.compute(256), rel=0.05)


def test_a_profile_is_read_back(recovered, tmp_path):
    path = str(tmp_path / "p.toml")
    write(recovered, path)
    again = cluster.read(path)
    assert again.costs["mlp"].compute(256) == pytest.approx(recovered.costs["mlp"].compute(256), rel=1e-4)
    assert again.provenance.traces == tuple(f"run{i}" for i in range(6))
    assert any("no probe" in note for note in again.provenance.notes)


@pytest.mark.slow
def test_what_the_hybrid_adds_takes_up_and_updates_is_told_apart():
    """Rows cost more to add than pieces of an allreduce, and a worker takes up rows and updates what is dense."""
    planted = PLANTED.model_copy(update={"reduce_rows": Line(base_s=1e-4, slope_s=4e-9)})
    where = Cluster(hosts=[Host(count=4)], costs={"lstm_lm": planted})
    job = {"workload": workload.read("lstm_lm"), "workers": 3, "steps": 20, "warmup": 2, "cluster": where}
    sources = [
        Source(f"{batch}", event.trace(Scenario(Hybrid(local_aggregation=False), batch=batch, **job)))
        for batch in (8, 64)
    ]
    costs = make(sources, "hybrid").costs["lstm_lm"]
    for name in ("take_up", "reduce", "reduce_rows", "update"):
        for amount in (9.1e5,) if name == "reduce" else (2e4, 2e5):  # what an allreduce adds has one size
            assert getattr(costs, name)(amount) == pytest.approx(getattr(planted, name)(amount), rel=1e-3), name
    assert costs.update_noise.cv == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_shared_cores_do_not_count_twice():
    """3 workers and a master on 2 cores; the fit knows from the probe that they shared them, though not which had one to itself."""
    where = machines(PLANTED, Host(cores=2, slots=9))
    sources = list(campaign(where))
    known = make(sources, "known", Probe(cores=2, local=dict(cluster.LOCAL))).costs["mlp"]
    ignored = make(sources, "ignored").costs["mlp"]
    assert known.compute(256) == pytest.approx(PLANTED.compute(256), rel=0.04)
    assert ignored.compute(256) > 1.1 * PLANTED.compute(256)  # negative control


def test_the_probe_gives_machine_and_links():
    link = Link(latency_s=1e-5, overhead_s=2e-4, bandwidth_bytes_per_s=3e9)
    made = make(list(plain())[:1], "p", Probe(cores=4, oversleep_s=2e-4, local=dict(link)))
    assert (made.hosts[0].cores, made.hosts[0].count, made.local, made.oversleep_s) == (4, 1, link, 2e-4)


def test_one_minibatch_goes_through_the_origin(recovered):
    runs = list(plain())
    costs = make(runs[1:2], "one").costs["mlp"]
    assert costs.compute.base_s == 0
    assert costs.compute(256) == pytest.approx(PLANTED.compute(256), rel=0.02)
    assert costs.partition.slope_s == costs.compute.slope_s


@pytest.mark.slow
def test_one_micro_batch_takes_the_slope_of_compute():
    runs = list(plain())
    costs = make([*runs[:2], *runs[4:6]], "one").costs["mlp"]
    assert costs.partition.slope_s == pytest.approx(costs.compute.slope_s)
    assert costs.partition(8) == pytest.approx(PLANTED.partition(8), rel=0.03)


@pytest.mark.slow
def test_anytime_runs_alone():
    costs = make(list(plain())[2:], "amb").costs["mlp"]
    assert costs.partition(64) == pytest.approx(PLANTED.partition(64), rel=0.03)
    assert costs.compute(64) == pytest.approx(costs.loop_s + costs.partition(64))


@pytest.mark.slow
def test_partitions_that_renew_are_small_minibatches():
    protocol = AnytimeDelayedGradients(time_limit_s=0.05, partitions=16)
    job = Scenario(protocol, batch=512, cluster=machines(PLANTED), **JOB)
    costs = make([*list(plain())[1:2], Source("dg", event.trace(job))], "dg").costs["mlp"]
    for samples in (32, 256):
        assert costs.compute(samples) == pytest.approx(PLANTED.compute(samples), rel=0.03)


def lengthened(rows, late, more_s):
    """With so many more seconds of some rows, and all that follows them on the same rank later."""
    rows = rows.copy()
    rank, start_s = rows["rank"].to_numpy(), rows["start_s"].to_numpy().copy()
    for index, seconds in sorted(zip(rows.index[late], more_s, strict=True), key=lambda pair: -start_s[pair[0]]):
        after = (rank == rank[index]) & (start_s > start_s[index])
        rows.loc[after, ["start_s", "end_s"]] += seconds
        rows.loc[index, "end_s"] += seconds
    return rows


@pytest.mark.slow
def test_rare_stalls_are_left_out():
    costs = PLANTED.model_copy(update={"noise": LogNormal(cv=0.02)})
    sources = list(campaign(machines(costs)))
    for source in sources:
        rows = source.trace.rows
        late = (rows["activity"] == "compute") & (rows["step"] == 7) & (rows["rank"] == 1)
        source.trace.rows = lengthened(rows, late, np.full(late.sum(), 20.0))
    made = make(sources, "stalls")
    assert made.costs["mlp"].compute(256) == pytest.approx(PLANTED.compute(256), rel=0.02)
    assert made.costs["mlp"].noise.cv == pytest.approx(0.02, rel=0.2)
    assert any("stalls" in note for note in made.provenance.notes)


@pytest.mark.slow
def test_frequent_stalls_are_kept():
    """What happens in one step of twenty-one is what the machine is like: the mean and the tail are reproduced."""
    sources = list(campaign(machines(PLANTED.model_copy(update={"noise": LogNormal(cv=0.02)}))))
    for source in sources:
        rows = source.trace.rows
        late = (rows["activity"] == "compute") & (rows["step"] % 21 == 7)
        source.trace.rows = lengthened(rows, late, 9 * (rows["end_s"] - rows["start_s"])[late].to_numpy())
    made = make(sources, "stalls")
    costs = made.costs["mlp"]
    assert isinstance(costs.common_noise, Empirical)  # because it happens to all ranks in the same steps
    assert costs.compute(256) == pytest.approx(PLANTED.compute(256) * (1 + 9 / 21), rel=0.05)
    assert max(costs.common_noise.values) == pytest.approx(10 / (1 + 9 / 21), rel=0.1)
    assert not any("stalls" in note for note in made.provenance.notes)


@pytest.mark.parametrize("cv", [0.002, 0.01, 0.03])
def test_hidden_sleeps_are_told_apart(cv):
    rng, law = np.random.default_rng(1), stragglers.read("niagara")
    busy_s = 5.3 * np.exp(cv * rng.standard_normal(1300)) + law.draw(rng, 1300)
    mean_s, std_s = sleeps.net(busy_s, law)
    assert mean_s == pytest.approx(5.3, rel=0.003)
    assert std_s / mean_s == pytest.approx(cv, rel=0.15)


def test_hidden_sleeps_that_last_are_refused():
    with pytest.raises(WrongSetting, match="independent sleeps"):
        sleeps.net(np.ones(9), stragglers.read("markov(p_slow=0.1, p_recover=0.1, seconds=1)"))


def test_noise_laws():
    rng = np.random.default_rng(2)
    normal = factors.law(np.exp(0.1 * rng.standard_normal(5000)))
    assert isinstance(normal, LogNormal)
    assert normal.cv == pytest.approx(0.1, rel=0.05)
    mixed = factors.law(np.where(rng.random(5000) < 0.2, 2.0, 1.0) * np.exp(0.01 * rng.standard_normal(5000)))
    assert isinstance(mixed, Empirical)
    assert mixed.mean == pytest.approx(1, abs=1e-4)
    assert np.quantile(mixed.values, 0.9) / np.quantile(mixed.values, 0.1) == pytest.approx(2, rel=0.05)
    assert isinstance(factors.law(np.exp(rng.uniform(-0.1, 0.1, 5000))), Empirical), "no bell, though as wide"
    assert factors.law(np.ones(500)).cv == 0
    assert factors.law(np.array([1.3])).cv == 0


@pytest.mark.slow
def test_slow_host_through_the_whole_fit():
    quick, slow = Host(name="quick", count=3), Host(name="slow", speed=0.7)
    made = make(list(campaign(machines(PLANTED, quick, slow))), "hosts")
    speeds = [h.speed for h in list(made.machines())]
    assert speeds[3] / speeds[1] == pytest.approx(0.7, rel=0.03)


# what cannot be read: one line, exit 2


def call(*arguments):
    """The exit code, and what was said on the standard error."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), pytest.raises(SystemExit) as ended:
        command.run("calibration.fit", lambda: fit.main([str(a) for a in arguments]))
    return ended.value.code, said.getvalue()


def refused(result, *words):
    code, said = result
    assert code == 2
    assert len(said.strip().splitlines()) == 1
    for word in words:
        assert word in said


@pytest.fixture
def trace_file(tmp_path):
    path = tmp_path / "t.jsonl"
    plain()[0].trace.write(path)
    return path


def test_command_writes_a_profile(trace_file, tmp_path):
    result = call(trace_file, "-o", tmp_path / "box.toml")
    assert result == (0, "")
    made = cluster.read(str(tmp_path / "box.toml"))
    assert (made.name, list(made.costs), made.provenance.traces) == ("box", ["mlp"], ("t.jsonl",))


def test_command_with_probe(trace_file, tmp_path):
    probe = tmp_path / "probe.json"
    local = {"latency_s": 1e-5, "overhead_s": 1e-4, "bandwidth_bytes_per_s": 2e9, "one_way_s": {"8": 1e-5}}
    probe.write_text(json.dumps({"cores": 2, "oversleep_s": 1e-4, "local": local, "more": "is passed over"}))
    assert call(trace_file, "-o", tmp_path / "p.toml", "--probe", probe, "--name", "mine") == (0, "")
    made = cluster.read(str(tmp_path / "p.toml"))
    assert (made.name, made.hosts[0].cores, made.local.bandwidth_bytes_per_s) == ("mine", 2, 2e9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "probe"),
        ('{"cores": 2}', "probe"),
        ('{"cores": 1, "local": {"latency_s": -1}}', "probe"),
        ("[" * 9999, "probe"),
        ('{"schema": "probe/1", "cores": 2}', "probe again"),
        (None, "No such file"),
    ],
)
def test_wrong_probe(trace_file, tmp_path, text, said):
    probe = tmp_path / "probe.json"
    if text is not None:
        probe.write_text(text)
    refused(call(trace_file, "-o", tmp_path / "p.toml", "--probe", probe), said)


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (lambda rows: rows["step"] < 0, "no row of rank 0"),
        (lambda rows: rows["activity"] != "compute", "a trace with computation after its warm-up steps"),
        (lambda rows: rows["step"] < 2, "at least one step after warm-up"),  # warm-up alone
    ],
)
def test_traces_without_the_rows_of_a_fit(trace_file, tmp_path, keep, said):
    found = read(trace_file)
    Trace(found.header, found.rows[keep(found.rows)]).write(trace_file)
    refused(call(trace_file, "-o", tmp_path / "p.toml"), said)


def test_files_that_are_no_traces(trace_file, tmp_path):
    trace_file.write_text(trace_file.read_text().replace("trace/2", "trace/1", 1))
    refused(call(trace_file, "-o", tmp_path / "p.toml"), "trace/1", "trace/2", "record it again")
    trace_file.write_text("")
    refused(call(trace_file, "-o", tmp_path / "p.toml"), "trace")


def test_wrong_options(trace_file, tmp_path):
    refused(call(trace_file), "--output")
    refused(call("-o", tmp_path / "p.toml"), "TRACE")
    refused(call(trace_file, "-o", tmp_path / "p.toml", "--from", "nothing"), "amb-csv", "amb-log")
    refused(call(tmp_path, "-o", tmp_path / "p.toml", "--from", "amb-csv", "--stragglers", "nile"), "nile")


def test_hidden_sleeps_of_an_anytime_run_are_refused(tmp_path):
    rows = [f"0,{s},{r},{8 * (1 + r * s % 3)},1.{s},0" for s in (1, 2, 3) for r in (1, 2)]
    (tmp_path / "x_worker_stats.csv").write_text("time,step,rank,num_samples,compute_time,z\n" + "\n".join(rows) + "\n")
    (tmp_path / "x_master_stats.csv").write_text("time,step\n2,1\n4,2\n6,3\n")
    refused(call(tmp_path, "-o", tmp_path / "p.toml", "--from", "amb-csv", "--stragglers", "niagara"), "sleep_time")


@pytest.mark.slow
def test_imported_logs_reproduce_their_own_rounds(tmp_path):
    """A fit of a log, run in the simulator, takes as long as the log's rounds did."""
    rng, law, steps = np.random.default_rng(7), stragglers.read("niagara"), 400
    busy_s = 2 * np.exp(0.01 * rng.standard_normal((steps, 3))) + law.draw(rng, 3 * steps).reshape(steps, 3)
    ends_s = np.cumsum(busy_s.max(axis=1) + 0.4)
    rows = [f"0,{s + 1},{r + 1},8,{busy_s[s, r]},0" for s in range(steps) for r in range(3)]
    (tmp_path / "x_worker_stats.csv").write_text("time,step,rank,num_samples,compute_time,z\n" + "\n".join(rows) + "\n")
    (tmp_path / "x_master_stats.csv").write_text(
        "time,step\n" + "\n".join(f"{t},{i}" for i, t in enumerate(ends_s, 1)) + "\n"
    )
    result = call(tmp_path, "-o", tmp_path / "p.toml", "--from", "amb-csv", "--stragglers", "niagara")
    assert result == (0, "")
    where = cluster.read(str(tmp_path / "p.toml"))
    assert where.costs["cifar10"].update(0) == pytest.approx(0.4, abs=1e-3)
    asked = {"batch": 8, "cluster": where, "stragglers": law}
    job = Scenario(FixedMinibatch(), workload.read("cifar10"), workers=3, steps=4000, warmup=1, **asked)
    expected_s = 2.4 + law.draw(np.random.default_rng(0), (200_000, 3)).max(axis=1).mean()
    assert by_engine(job, 4).step_s.mean() == pytest.approx(expected_s, rel=0.01)


def test_costs_of_an_imported_workload_go_by_its_name_and_are_used(tmp_path, capsys):
    """And not by its file's; a name that is neither a workload's nor a file's is refused."""
    from sim import run

    rows = [f"0,{s},{r},8,{0.9 + 0.01 * (s % 3)},0" for s in range(1, 9) for r in (1, 2)]
    (tmp_path / "x_worker_stats.csv").write_text("time,step,rank,num_samples,compute_time,z\n" + "\n".join(rows) + "\n")
    (tmp_path / "x_master_stats.csv").write_text("time,step\n" + "\n".join(f"{s},{s}" for s in range(1, 9)) + "\n")
    model, profile = tmp_path / "file.toml", tmp_path / "p.toml"
    model.write_text('name = "mine"\nflops_per_sample = 1e6\nvariables = [{ name = "w", shape = [40] }]\n')
    imported = (tmp_path, "-o", profile, "--from", "amb-csv", "--workload")
    assert call(*imported, model) == (0, "")
    assert list(cluster.read(str(profile)).costs) == ["mine"]
    job = ["--protocol", "fmb", "--workers", "2", "--batch", "8", "--stragglers", "none", "--json"]
    capsys.readouterr()
    assert run.main([*job, "--cluster", str(profile), "--workload", str(model)]) == 0
    assert json.loads(capsys.readouterr().out)["step_s"]["mean"] == pytest.approx(1.0, rel=0.01)
    refused(call(*imported, "../../etc/passwd"), "--workload", "../../etc/passwd")


@pytest.mark.slow
@pytest.mark.parametrize("planted", [0.0, 0.25])
def test_planted_contention_is_recovered(planted):
    """From runs of 1 and of 2 workers on two cores; without the second there is nothing to learn it from."""
    shared = machines(PLANTED, Host(cores=2, slots=8, contention=planted))
    jobs = [
        Scenario(FixedMinibatch(), batch=256, cluster=shared, workers=workers, seed=seed, **JOB)
        for workers in (1, 2)
        for seed in (1, 2)
    ]
    sources = [Source(f"run{i}", event.trace(job)) for i, job in enumerate(jobs)]
    probe = Probe(cores=2, local={"latency_s": 0, "overhead_s": 1e-5, "bandwidth_bytes_per_s": 1e10})
    made = make(sources, "contention", probe)
    assert made.hosts[0].contention == pytest.approx(planted, abs=0.03)
    assert made.costs["mlp"].compute(256) == pytest.approx(PLANTED.compute(256), rel=0.03)
    assert make(sources[:2], "alone", probe).hosts[0].contention == 0
