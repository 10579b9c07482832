"""torch.profiler's traces (calibration.fit --from torch): what was planted in them is found, and its steps are predicted."""

import copy
import gzip
import json

import pytest
from tomli_w import dumps
from torch_traces_of import BACKWARD, FORWARD, MILLI, UPDATE, event, ring_us, trace, write

from calibration import profiles, torch_traces
from calibration.importers import torch_events
from calibration.importers.about import About
from calibration.importers.torch_profiler import read
from sim import protocols, run
from sim.answers.sources import known_by_name
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform import cluster, other_sizes
from sim.platform.cluster import Link
from sim.simulation import simulate

BUCKETS = [*[250_000] * 9, 400_000]  # items, float32
MODEL = {
    "schema": "workload/1",
    "name": "net",
    "batch": 32,
    "variables": [{"name": f"w{i}", "shape": [size]} for i, size in enumerate(BUCKETS[::-1])],
    "step": {"time": "30 ms", "batch": 32},
}
SMALL = ["--protocol", "allreduce", "--workers", "2", "--stragglers", "none"]
COMPUTED_S = (FORWARD + BACKWARD + UPDATE) / MILLI / 1e3
REDUCED_S = sum(ring_us(4 * items, 4, 20.0, 1250.0) for items in BUCKETS) * 1e-6


@pytest.fixture
def model(tmp_path) -> str:
    path = tmp_path / "net.toml"
    path.write_text(dumps(MODEL))
    return str(path)


def profile(paths, model: str, **said):
    return torch_traces.of_runs([torch_traces.recorded([str(path) for path in paths], About(model, **said))], "traced")


def step_s(found, model: str, protocol: str, workers: int, world: str = "auto") -> float:
    settings = [] if workers == 1 else found.provenance.settings if protocol == "ddp" else ["algorithm=ring"]
    job = Scenario(protocols.make(protocol, settings), workload.read(model), workers, 6, 1, cluster=found)
    return float(simulate(job, world, replications=1).step_s.mean())


def test_a_step_is_told_apart(tmp_path):
    (path,) = write(tmp_path, [trace(0, 4, BUCKETS)])
    found = read(path)
    assert (found.rank, found.world, found.steps, found.device) == (0, 4, (3, 4, 5, 6, 7, 8), "NVIDIA A100-SXM4-40GB")
    assert found.compute_s == pytest.approx(COMPUTED_S, rel=1e-3)
    assert found.library_s == pytest.approx(REDUCED_S, rel=1e-3)
    hidden_s = REDUCED_S - ring_us(4 * BUCKETS[-1], 4, 20.0, 1250.0) * 1e-6  # all but the last
    assert found.hidden_s == pytest.approx(hidden_s, rel=1e-3)
    assert found.length_s == pytest.approx(COMPUTED_S + REDUCED_S - hidden_s + 1e-3, rel=1e-3)
    assert [[call.bytes for call in calls] for calls in found.calls] == [[4 * items for items in BUCKETS]] * 6


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [True, False])
@pytest.mark.parametrize("sizes", [True, False])
def test_steps_of_the_size_that_was_traced_are_predicted(tmp_path, model, hidden, sizes):
    paths = write(tmp_path, [trace(rank, 4, BUCKETS, hidden=hidden, sizes=sizes) for rank in range(4)])
    found = profile(paths, model)
    assert found.provenance
    protocol = "ddp" if hidden else "allreduce"
    assert any(f"--protocol {protocol}" in note for note in found.provenance.notes)
    measured_s = read(paths[0]).length_s.mean()
    assert step_s(found, model, protocol, 4) == pytest.approx(measured_s, rel=0.05)
    if sizes:
        assert found.network.bandwidth_bytes_per_s == pytest.approx(1.25e9, rel=0.02)


def test_one_rank_alone_has_no_link(tmp_path, model):
    found = profile(write(tmp_path, [trace(0, 1, [])]), model)
    assert step_s(found, model, "allreduce", 1) == pytest.approx(COMPUTED_S + 1e-3, rel=0.02)


def test_the_shortest_call_at_any_rank_is_what_it_takes(tmp_path, model):
    """Others wait: their kernels run until the slowest rank has come."""
    early, late = trace(0, 2, BUCKETS, hidden=False), trace(1, 2, BUCKETS, slow=1.3, hidden=False)
    for one in early["traceEvents"]:
        if "nccl" in one["name"]:
            one["dur"] *= 2
    found = profile(write(tmp_path, [early, late]), model)
    assert found.network.bandwidth_bytes_per_s == pytest.approx(1.25e9, rel=0.02)


def test_some_ranks_stand_for_all_and_that_is_said(tmp_path, model):
    (path,) = write(tmp_path, [trace(0, 4, BUCKETS, hidden=False)])
    found = profile([path], model)
    assert found.provenance
    assert found.provenance.workers == 4
    assert any("ranks without a trace" in note for note in found.provenance.notes)


def test_messages_that_computing_hides_a_part_of_are_those_of_ddp(tmp_path):
    """A fifth of messages that take twice as long as computing."""
    buckets = [4 * 2**20, 8 * 2**20, 4 * 2**20]
    large = tmp_path / "large.toml"
    large.write_text(f'schema = "workload/1"\nname = "large"\nparameters = {sum(buckets)}\nlayers = 3\nbatch = 8\n')
    paths = write(tmp_path, [trace(rank, 4, buckets) for rank in range(2)])
    found = profile(paths, str(large))
    assert any("--protocol ddp" in note for note in found.provenance.notes)
    assert step_s(found, str(large), "ddp", 4) == pytest.approx(read(paths[0]).length_s.mean(), rel=0.05)


@pytest.mark.parametrize("traced", [4, 1])
def test_the_run_that_was_fitted_has_a_measured_link(tmp_path, model, traced):
    """A link that was given was not measured."""
    paths = write(tmp_path, [trace(rank, 4, BUCKETS, hidden=False) for rank in range(traced)])
    jobs = [
        Scenario(protocols.make("allreduce", ["algorithm=ring"]), workload.read(model), 4, 6, 1, cluster=found)
        for found in (profile(paths, model), profile(paths, model, link=Link(bandwidth_bytes_per_s=1.25e9)))
    ]
    measured, given = (simulate(job, replications=2) for job in jobs)
    assert measured.scenario.cluster.provenance.links_measured
    assert measured.samples_per_s / measured.interval[0] < 1.2
    assert not any(known_by_name(measured.scenario))
    assert not given.scenario.cluster.provenance.links_measured
    assert any(known_by_name(given.scenario))


@pytest.mark.parametrize("loading", [0.0, 30 * MILLI])
def test_equal_steps_have_no_spread_and_idle_time_is_said(tmp_path, model, loading):
    """From start to start, the last one too."""
    (path,) = write(tmp_path, [trace(0, 1, [], steps=4, loading=loading)])
    found = read(path)
    assert found.length_s == pytest.approx(COMPUTED_S + 1e-3 + loading / 1e6, rel=1e-6)
    assert found.idle_s == pytest.approx(1e-3 + loading / 1e6, rel=1e-3)
    notes = profile([path], model).provenance.notes
    said = f"{1 + loading / MILLI:.4g} ms of a step nothing runs on NVIDIA A100-SXM4-40GB"
    assert any(note.startswith(said) for note in notes)


@pytest.mark.parametrize("world", [1, 4])
def test_a_last_step_that_was_cut_is_left_out(tmp_path, world):
    one = trace(0, world, BUCKETS)
    last = max(event["ts"] for event in one["traceEvents"] if event.get("name") == "ampere_sgemm_128x64_nn")
    one["traceEvents"] = [event for event in one["traceEvents"] if event.get("cat") != "kernel" or event["ts"] <= last]
    (path,) = write(tmp_path, [one])
    found = read(path)
    assert found.steps == (3, 4, 5, 6, 7)
    cut = "the last step left out: cut, with 1 of 3 operations"
    short = "6 profiler steps, of which 5 allreduce gradients: taken as 5 steps; 1 left out"
    assert found.notes == (cut if world == 1 else short,)


def test_the_number_of_ranks_is_asked_for_where_nothing_says_it(tmp_path, model, here):
    one = trace(0, 4, BUCKETS, sizes=False)
    del one["distributedInfo"]
    (path,) = write(tmp_path, [one])
    words = [path, "--workload", model, "-o", tmp_path / "p.toml"]
    assert "--ranks: missing" in ended(here, *words)[1]
    assert "1 of 4 ranks" in ended(here, *words, "--ranks", 4)[1]


def test_micro_batches_are_put_together(tmp_path, model):
    whole = COMPUTED_S + REDUCED_S
    (path,) = write(tmp_path, [trace(0, 4, BUCKETS, steps=14, hidden=False, micro_batches=4)])
    found = read(path)
    assert found.steps == (6, 10, 14)
    assert found.length_s == pytest.approx(whole + 3 * COMPUTED_S + 4e-3, rel=1e-3)
    assert found.compute_s == pytest.approx(4 * COMPUTED_S, rel=1e-3)
    assert found.notes[0].startswith("14 profiler steps, of which 3 allreduce gradients: taken as 3 steps of 4 micro")
    assert found.notes[0].endswith("micro-batches, and --batch of all of these; 2 left out")
    assert found.notes[0] in profile([path], model, batch=32).provenance.notes
    (path,) = write(tmp_path, [trace(0, 4, BUCKETS, steps=6, hidden=False, micro_batches=4)])
    with pytest.raises(WrongSetting, match=r"1 steps of 4 micro-batches.*two or more whole"):
        read(path)


@pytest.mark.parametrize("dtype", ["BFloat16", "Half"])
def test_gradients_in_two_bytes_are_moved_in_two_bytes(tmp_path, model, dtype):
    """The link is the line's, and the run that was traced is as long when it is simulated."""
    paths = write(tmp_path, [trace(rank, 4, BUCKETS, hidden=False, dtype=dtype) for rank in range(4)])
    found = profile(paths, model)
    assert found.network.bandwidth_bytes_per_s == pytest.approx(1.25e9, rel=0.02)
    assert found.costs["net"].item_bytes == 2
    assert any("summed in 2 bytes a number" in note for note in found.provenance.notes)
    assert step_s(found, model, "allreduce", 4) == pytest.approx(read(paths[0]).length_s.mean(), rel=0.02)
    four = found.model_copy(update={"costs": {"net": found.costs["net"].model_copy(update={"item_bytes": 4})}})
    assert step_s(four, model, "allreduce", 4) > 1.1 * step_s(found, model, "allreduce", 4)


def test_a_model_that_says_another_format_of_gradients_is_refused(tmp_path):
    """One that says that of the traces is not."""
    net = tmp_path / "net.toml"
    files = write(tmp_path, [trace(rank, 4, BUCKETS, dtype="BFloat16") for rank in range(4)])
    net.write_text(dumps(MODEL | {"gradients": "fp32"}))
    with pytest.raises(
        WrongSetting, match="gradients of net: given 'fp32'; allowed: the format that the traces sum, of 2 bytes"
    ):
        profile(files, str(net))
    net.write_text(dumps(MODEL | {"gradients": "bf16"}))
    made = profile(files, str(net))
    assert made.network.bandwidth_bytes_per_s == pytest.approx(1.25e9, rel=0.02)


def renamed(one: dict, name: str, **args) -> dict:
    """A trace whose calls have another name."""
    for each in one["traceEvents"]:
        if "nccl" in each["name"]:
            each["name"] = name
            each["args"] |= args
    return one


@pytest.mark.parametrize(
    "name",
    [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
        "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)",  # RCCL
        "mscclKernel_Sum_float_LL_AllReduce",
    ],
)
def test_calls_are_known_by_other_names(tmp_path, name):
    (path,) = write(tmp_path, [renamed(trace(0, 4, BUCKETS), name)])
    found = read(path)
    assert found.library_s == pytest.approx(REDUCED_S, rel=1e-3)
    assert {call.collective for calls in found.calls for call in calls} == {"all_reduce"}


def test_what_no_protocol_moves_is_refused_or_said(tmp_path, model, here):
    exchange = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(args)"
    (path,) = write(tmp_path, [renamed(trace(0, 4, BUCKETS, sizes=False), exchange)])
    line = ended(here, path, "--workload", model, "-o", tmp_path / "p.toml")[1]
    assert f"SendRecv {REDUCED_S * 1e3:.4g} ms a step" in line
    assert "data-parallel training" in line
    groups = renamed(trace(0, 4, BUCKETS), "ncclKernel_AllReduce", **{"Group size": 2})
    (path,) = write(tmp_path, [groups])
    assert "all_reduce among 2 ranks" in ended(here, path, "--workload", model, "-o", tmp_path / "p.toml")[1]
    both = trace(0, 4, BUCKETS, hidden=False)
    for one in [one for one in both["traceEvents"] if one["name"].startswith("multi_tensor")]:
        both["traceEvents"].append({**one, "name": exchange, "dur": 1500.0, "args": {}})
    (path,) = write(tmp_path, [both])
    code, said = ended(here, path, "--workload", model, "-o", tmp_path / "p.toml")
    assert code == 0
    assert "collectives that no protocol here makes: SendRecv 1.5 ms a step" in said


@pytest.mark.slow
@pytest.mark.parametrize("linked", [(), ("--link", "10 Gbit/s, 20 us")])
def test_ranks_sit_on_hosts_as_many_as_are_said(tmp_path, model, here, linked):
    """Each has cores enough that arrays answer, and rings are said with a link that is given, too."""
    paths = write(tmp_path, [trace(rank, 4, BUCKETS, hidden=False) for rank in range(4)])
    made = str(tmp_path / "p.toml")
    for each, hosts in ((None, 4), (2, 2), (4, 1)):
        words = ["--gpus-per-host", each] if each else []
        code, said = ended(here, *paths, "--workload", model, *words, *linked, "-o", made)
        assert (code, "--set algorithm=ring" in said) == (0, True)
        assert ("the link was given" in said) == bool(linked)
        found = cluster.read(made)
        assert [(host.count, host.slots) for host in found.hosts] == [(hosts, each or 1)]
        of_traces = found.provenance.links_measured, found.provenance.local_measured
        assert of_traces == (not linked and hosts > 1, not linked and hosts == 1)
        assert step_s(found, model, "allreduce", 4, "auto") == pytest.approx(read(paths[0]).length_s.mean(), rel=0.03)
    grown = other_sizes.on_hosts(cluster.read(made), 3)
    assert (grown.hosts[0].count, grown.hosts[0].ranks) == (3, 4)


def test_a_batch_that_nobody_gave_is_asked_for(tmp_path, here):
    (path,) = write(tmp_path, [trace(0, 1, [])])
    (tmp_path / "w.toml").write_text('schema = "workload/1"\nname = "w"\nparameters = 1000\nlayers = 1\n')
    words = [path, "-o", tmp_path / "p.toml", "--workload"]
    assert "--batch: missing" in ended(here, *words, tmp_path / "w.toml")[1]
    assert "is that of w" not in ended(here, *words, tmp_path / "w.toml", "--batch", 8)[1]
    assert "batch 100 is that of mlp" in ended(here, *words, "mlp")[1]


def test_the_hosts_have_the_gpu_that_was_traced(tmp_path, model):
    """Other models are computed at its rates, and another GPU does not take what was measured on it."""
    found = profile(write(tmp_path, [trace(rank, 2, BUCKETS, hidden=False) for rank in range(2)]), model)
    assert (found.hosts[0].gpus, found.hosts[0].gpu.name) == (1, "A100")
    other = Scenario(protocols.make("allreduce"), workload.read("resnet50"), 2, 3, 1, cluster=found)
    assert other.on_named_gpus
    path = tmp_path / "p.toml"
    profiles.write(found, str(path))
    with pytest.raises(WrongSetting, match="gpu: given 'A100, H100'"):
        run.main(["--cluster", str(path), "--workload", model, *SMALL, "--what-if", "hosts.0.gpu=H100"])


def test_packed_traces_in_a_folder_are_the_same(tmp_path, model):
    paths = write(tmp_path, [trace(rank, 2, BUCKETS) for rank in range(2)])
    first, packed = profile(paths, model), tmp_path / "packed"
    packed.mkdir()
    for path in paths:
        (packed / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    second = profile([packed], model)
    assert (first.costs, first.network) == (second.costs, second.network)


def test_events_in_any_order_are_the_same(tmp_path):
    one = trace(0, 2, BUCKETS)
    other = copy.deepcopy(one)
    other["traceEvents"].reverse()
    first, second = (read(path) for path in write(tmp_path, [one, other]))
    assert (first.compute_s == second.compute_s).all()
    assert first.calls == second.calls


def ended(here, *words: object) -> tuple[int, str]:
    done = here("calibration.fit", *words, "--from", "torch")
    assert done.returncode == 0 or (done.stdout, done.stderr.count("\n")) == ("", 1), done.stderr
    return done.returncode, done.stdout or done.stderr


def edited(change) -> dict:
    """A trace of one rank of two, changed."""
    found = trace(0, 2, BUCKETS)
    return change(found) or found


def without(word: str):
    def change(found: dict) -> None:
        found["traceEvents"] = [one for one in found["traceEvents"] if word not in one["name"]]

    return change


def each(name: str, value):
    def change(found: dict) -> None:
        for one in found["traceEvents"]:
            one[name] = value

    return change


WRONG = {
    "no steps": (edited(without("ProfilerStep")), "profiler.step()"),
    "a step is missing": (edited(without("ProfilerStep#5")), "one after another"),
    "nothing is computed": (edited(lambda found: {**found, "traceEvents": found["traceEvents"][-2:] * 1}), "steps"),
    "times are none": (edited(each("ts", float("nan"))), "microseconds"),
    "times are negative": (edited(each("dur", -1)), "microseconds"),
    "times are the same": (edited(each("ts", 5)), "follow one another"),
    "no trace": ({"a": 1}, "a trace of torch.profiler"),
    "a rank beyond the last": (edited(lambda f: {**f, "distributedInfo": {"rank": 2, "world_size": 2}}), "rank 2 of 2"),
    "another kind of number": (edited(lambda f: {**f, "distributedInfo": {"rank": "x"}}), "rank"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_such_trace_is_one_line(tmp_path, model, what, here):
    content, said = WRONG[what]
    (path,) = write(tmp_path, [content])
    code, line = ended(here, path, "--workload", model, "-o", tmp_path / "p.toml")
    assert code in (1, 2)
    assert said in line
    assert not (tmp_path / "p.toml").exists()


def test_a_trace_that_was_cut_is_refused(tmp_path, model, here):
    (path,) = write(tmp_path, [trace(0, 2, BUCKETS)])
    whole = path.read_bytes()
    packed = gzip.compress(whole)
    for content in (b"", b"[", whole[: len(whole) // 2], packed[: len(packed) // 2], packed[:12], b"\x1f\x8b" + whole):
        path.write_bytes(content)
        code, line = ended(here, path, "--workload", model, "-o", tmp_path / "p.toml")
        assert (code, "torch.profiler" in line) == (2, True), line


def test_traces_that_are_not_of_one_run_are_refused(tmp_path, model, here):
    for traces, said in (
        ([trace(0, 2, BUCKETS), trace(0, 2, BUCKETS)], "each once"),
        ([trace(0, 2, BUCKETS), trace(1, 3, BUCKETS)], "one number"),
        ([trace(0, 2, BUCKETS), trace(1, 2, BUCKETS, steps=7)], "the same in every trace"),
        ([trace(0, 2, [*BUCKETS, 10**7]), trace(1, 2, BUCKETS)], "a workload of 7,650,000 parameters"),
    ):
        code, line = ended(here, *write(tmp_path, traces), "--workload", model, "-o", tmp_path / "p.toml")
        assert (code, said in line) == (2, True), line


def test_sharded_training_and_huge_files_are_refused(tmp_path, model, here, monkeypatch):
    sharded = json.loads(json.dumps(trace(0, 2, BUCKETS)).replace("AllReduce", "ReduceScatter"))
    (path,) = write(tmp_path, [sharded])
    assert "reduce_scatter" in ended(here, path, "--workload", model, "-o", tmp_path / "p.toml")[1]
    monkeypatch.setattr(torch_events, "MOST_TEXT", 100)
    assert "profile fewer steps" in ended(here, path, "--workload", model, "-o", tmp_path / "p.toml")[1]


def test_the_command_says_what_was_found_and_needs_a_workload(tmp_path, model, here):
    paths = write(tmp_path, [trace(rank, 2, BUCKETS, hidden=False) for rank in range(2)])
    assert "--workload: missing" in ended(here, *paths, "-o", tmp_path / "p.toml")[1]
    code, said = ended(here, *paths, "--workload", model, "-o", tmp_path / "p.toml")
    assert code == 0
    assert "2 of 2 ranks, 6 steps of" in said
    assert ended(here, *paths, "--workload", model, "--probe", "x", "-o", tmp_path / "p.toml")[0] == 2
    (tmp_path / "none").mkdir()
    assert "a folder with traces" in ended(here, tmp_path / "none", "--workload", model, "-o", tmp_path / "p.toml")[1]


@pytest.mark.parametrize("launches", [True, False])
def test_kernels_that_were_launched_before_recording_belong_to_no_step(tmp_path, launches):
    """The GPU was 30 ms behind the CPU when recording began; files without any launch are read by when kernels ran."""
    table = trace(0, 2, BUCKETS)
    truth = read(write(tmp_path, [table])[0])
    first = min(one["ts"] for one in table["traceEvents"] if one.get("cat") == "kernel")
    about = {"stream": 7, "device": 0}
    table["traceEvents"] += [
        event("kernel", "ampere_sgemm_128x64_nn", first - 0.4 * number, 0.3, correlation=90_000 + number, **about)
        for number in range(1, 101)
    ]
    if not launches:
        table["traceEvents"] = [one for one in table["traceEvents"] if one.get("cat") != "cuda_runtime"]
    found = read(write(tmp_path, [table])[0])
    assert any("100 of " in note and "launched before recording began" in note for note in found.notes) == launches
    assert (found.compute_s == pytest.approx(truth.compute_s)) == launches
    assert (found.length_s == pytest.approx(truth.length_s)) == launches
