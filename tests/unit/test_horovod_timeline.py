"""Horovod's timeline: what was fused is one reduction, and planted costs are recovered."""

import gzip
import json

import event
import numpy as np
import pytest

from calibration import fit, timelines, torch_traces
from calibration.importers.about import About
from calibration.importers.horovod_timeline import read
from sim import protocols
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.model import workload
from sim.platform import cluster
from sim.run import main as simulate

RANKS, LATENCY_S, BANDWIDTH, COPY_S = 3, 40e-6, 1e9, 2e-10  # planted
FUSED = [(1, [100, 1000], 400_000), (2, [7], 28)]  # pid, shape, bytes
ALONE = [(3, [250_000], 1_000_000)]


def ring_us(size_bytes):
    """As rank 0 sees it, which waits until the others have been told."""
    return 1e6 * (2 * (RANKS - 1) * (LATENCY_S + size_bytes / (RANKS * BANDWIDTH)) + LATENCY_S)


def reduction(tensors, start_us, agreed_us=500.0, late_us=300.0):
    """A reduction's events: tensors become ready one after another at rank 1, which is late, and are fused if several."""
    events, total = [], sum(size for *_, size in tensors)
    for k, (pid, _, _) in enumerate(tensors):
        events.append({"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": start_us + k, "pid": pid})
        events.append({"ph": "X", "name": "0", "ts": start_us + k, "pid": pid, "dur": 0})
    now_us = start_us + late_us
    events += [{"ph": "E", "ts": now_us, "pid": pid} for pid, *_ in tensors]
    now_us += agreed_us
    events += [{"ph": "B", "name": "ALLREDUCE", "ts": now_us, "pid": pid} for pid, *_ in tensors]
    copy_us = 1e6 * COPY_S * total if len(tensors) > 1 else 0.0
    phases = [("MEMCPY_IN_FUSION_BUFFER", copy_us), ("GLOO_ALLREDUCE", ring_us(total))]
    phases.append(("MEMCPY_OUT_FUSION_BUFFER", copy_us))
    for name, lasts_us in phases if copy_us else phases[1:2]:
        events += [{"ph": "B", "name": name, "ts": now_us, "pid": pid} for pid, *_ in tensors]
        now_us += lasts_us
        events += [{"ph": "E", "ts": now_us, "pid": pid} for pid, *_ in tensors]
    for pid, shape, _ in tensors:
        events.append({"ph": "E", "ts": now_us, "pid": pid, "args": {"dtype": "float32", "shape": str(shape)}})
    return events


@pytest.fixture
def timeline(tmp_path):
    """A file of fused tensors, one alone, and the fused ones again."""
    name = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "gradient"}}
    file = tmp_path / "timeline.json"
    file.write_text(json.dumps([name, *reduction(FUSED, 0.0), *reduction(ALONE, 1e5), *reduction(FUSED, 2e5)]))
    return file


def test_fused_tensors_are_one_reduction(timeline):
    found = read(timeline).reductions
    assert [(r.step, r.tensors, r.bytes) for r in found] == [(0, 2, 400_028), (0, 1, 1_000_000), (1, 2, 400_028)]
    for one, start_s in zip(found, (0, 0.1, 0.2), strict=True):
        assert one.had_s == pytest.approx(start_s, abs=2e-6)
        assert one.moved_s == pytest.approx(1e-6 * ring_us(one.bytes))


def test_a_tensor_that_the_cache_knows_is_rank_0s_from_the_begin_of_its_negotiation(timeline):
    marked, unmarked = read(timeline), [e for e in json.loads(timeline.read_text()) if e["ph"] != "X"]
    timeline.write_text(json.dumps(unmarked))
    assert (marked.ranks, read(timeline).ranks) == (1, 0)
    assert [r.had_s for r in read(timeline).reductions] == pytest.approx([r.had_s for r in marked.reductions])


def test_a_run_that_was_cut_short_leaves_out_its_last(timeline):
    timeline.write_text(timeline.read_text()[:-150])
    assert [r.tensors for r in read(timeline).reductions] == [2, 1]


HIERARCHICAL = {"NCCL_REDUCESCATTER": 3.0, "MEMCPY_IN_HOST_BUFFER": 1.0, "MPI_ALLREDUCE": 4.0}
HIERARCHICAL |= {"MEMCPY_OUT_HOST_BUFFER": 1.0, "NCCL_ALLGATHER": 3.0}
ITEMS = 1_500_000


def steps_of(moves: dict[str, float], dtype: str = "float32", whole: str = "ALLREDUCE", steps: int = 4) -> list[dict]:
    """A timeline of one tensor and two ranks: 50 ms of computing a step, then activities of so many milliseconds."""
    events, now = [], 0.0
    for _ in range(steps):
        now += 50e3
        events.append({"ph": "B", "name": f"NEGOTIATE_{whole}", "ts": now, "pid": 1})
        events += [{"ph": "X", "name": str(rank), "ts": now, "pid": 1, "dur": 0} for rank in range(2)]
        events += [{"ph": "E", "ts": now, "pid": 1}, {"ph": "B", "name": whole, "ts": now, "pid": 1}]
        for name, lasts in moves.items():
            events.append({"ph": "B", "name": name, "ts": now, "pid": 1})
            now += 1e3 * lasts
            events.append({"ph": "E", "ts": now, "pid": 1})
        events.append({"ph": "E", "ts": now, "pid": 1, "args": {"dtype": dtype, "shape": f"[{ITEMS}]"}})
    return events


def fitted(file, model, ranks=None, batch=None, each=None):
    about = About(workload=str(model), batch=batch, ranks=ranks)
    return torch_traces.of_runs([timelines.recorded(str(file), about)], "p", each)


def profiled(tmp_path, events):
    file, model = tmp_path / "t.json", tmp_path / "w.toml"
    file.write_text(events if isinstance(events, str) else json.dumps(events))
    model.write_text(f'name = "w"\nparameters = {ITEMS}\nlayers = 1\nbatch = 32\n')
    return fitted(file, model), workload.read(str(model))


def simulated_s(found, model) -> float:
    job = Scenario(protocols.make("horovod", ["algorithm=ring"]), model, 2, 3, 1, cluster=found)
    return step_s(event.trace(job))


OF_LIBRARIES = {
    "hierarchical": (HIERARCHICAL, 12.0),
    "shared": ({"MEMCPY_IN_SHARED_BUFFER": 2.0, "MPI_CROSS_ALLGATHER": 5.0, "MEMCPY_OUT_SHARED_BUFFER": 1.0}, 8.0),
    "broadcast last": ({"NCCL_REDUCE": 3.0, "MPI_ALLREDUCE": 4.0, "NCCL_BCAST": 3.0}, 10.0),
    **{
        name: ({name: 12.0}, 12.0)
        for name in ("CCL_ALLREDUCE", "DDL_ALLREDUCE", "MLSL_ALLREDUCE", "MPI_ADASUM_ALLREDUCE")
    },
    "fused": ({"MEMCPY_IN_FUSION_BUFFER": 1.0, "NCCL_ALLREDUCE": 12.0, "MEMCPY_OUT_FUSION_BUFFER": 1.0}, 12.0),
}


@pytest.mark.parametrize("library", OF_LIBRARIES)
def test_activities_of_other_libraries_move(tmp_path, library):
    moves, moved_ms = OF_LIBRARIES[library]
    found, model = profiled(tmp_path, steps_of(moves))
    assert f"{moved_ms:.3f} ms in the median" in found.provenance.notes[1]
    assert simulated_s(found, model) == pytest.approx(0.05 + sum(moves.values()) / 1e3, rel=0.02)


def test_adasum_is_read(tmp_path):
    found, _ = profiled(tmp_path, steps_of({"MPI_ADASUM_ALLREDUCE": 12.0}, whole="ADASUM"))
    assert "12.000 ms in the median" in found.provenance.notes[1]


@pytest.mark.parametrize(("each", "hosts"), [(2, 2), (4, 1)])
def test_ranks_sit_on_hosts_as_many_as_are_said(tmp_path, each, hosts):
    _, model = profiled(tmp_path, steps_of({"NCCL_ALLREDUCE": 12.0}))
    found = fitted(tmp_path / "t.json", tmp_path / "w.toml", ranks=4, each=each)
    assert found.provenance
    assert (found.hosts[0].slots, found.provenance.hosts) == (each, hosts)
    assert (found.provenance.links_measured, found.provenance.local_measured) == (hosts > 1, hosts == 1)
    job = Scenario(protocols.make("horovod", ["algorithm=ring"]), model, 4, 3, 1, cluster=found)
    assert step_s(event.trace(job)) == pytest.approx(0.062, rel=0.03)
    with pytest.raises(WrongSetting, match="--gpus-per-host"):
        fitted(tmp_path / "t.json", tmp_path / "w.toml", ranks=4, each=0)


def test_an_activity_that_is_not_known_is_named(tmp_path):
    with pytest.raises(WrongSetting, match=r"SOMETHING_ELSE.*NCCL_ALLREDUCE"):
        profiled(tmp_path, steps_of({"SOMETHING_ELSE": 12.0}))
    found, _ = profiled(tmp_path, steps_of({"WAIT_FOR_OTHER_TENSOR_DATA": 2.0, "NCCL_ALLREDUCE": 12.0}))
    assert "12.000 ms in the median" in found.provenance.notes[1]
    assert any(
        "in no cost, of 4 reductions together: WAIT_FOR_OTHER_TENSOR_DATA 8 ms" in n for n in found.provenance.notes
    )


def test_compressed_gradients_take_the_bytes_that_they_take(tmp_path):
    """The link is the same as of as many bytes in float32, and so is the simulated step."""
    found, model = profiled(tmp_path, steps_of({"NCCL_ALLREDUCE": 12.0}, dtype="float16"))
    assert found.costs["w"].item_bytes == 2
    assert found.network.bandwidth_bytes_per_s == pytest.approx(2 * ITEMS / 12e-3, rel=0.01)
    assert simulated_s(found, model) == pytest.approx(0.062, rel=0.02)
    assert any("summed in 2 bytes a number" in note for note in found.provenance.notes)


def test_a_reduction_that_ended_without_a_tensor_is_left_out(tmp_path):
    events = steps_of({"NCCL_ALLREDUCE": 12.0})
    del events[-1]["args"]
    found, _ = profiled(tmp_path, events)
    assert "1 reduction left out, which ended without a tensor" in found.provenance.notes
    for one in events:
        one.pop("args", None)
    with pytest.raises(WrongSetting, match="whose end says its tensor"):
        profiled(tmp_path, events)


def test_packed_and_wrapped_timelines_are_read(tmp_path):
    events = steps_of(HIERARCHICAL)
    plain, _ = profiled(tmp_path, events)
    wrapped, _ = profiled(tmp_path, {"traceEvents": events})
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(json.dumps(events).encode()))
    packed = fitted(tmp_path / "t.json.gz", tmp_path / "w.toml")
    assert plain.network == wrapped.network == packed.network


@pytest.mark.parametrize("moment", [None, True, "1", [], -1, 1e300, 10**400, float("nan"), float("inf"), 10])
@pytest.mark.parametrize("phase", ["B", "E"])
def test_a_moment_that_is_none_or_comes_too_early_is_refused(timeline, phase, moment):
    """10 us is before the end of the tensor's last reduction."""
    events = json.loads(timeline.read_text())
    last = max(at for at, one in enumerate(events) if one["ph"] == phase)
    events[last]["ts"] = moment
    timeline.write_text(json.dumps(events))
    with pytest.raises(WrongSetting, match=r"HOROVOD_TIMELINE.*ts"):
        read(timeline)


DEEP = b'[{"ph": "X", "ts": 1, "args": ' + b"[" * 10_000 + b"]" * 10_000 + b"}]"
NONE = [b"", b"[]", b"[{}]", b'{"a": 1}', b'[{"ph": "B", "ts": 1}]', b"nothing", b"\xff\x00", DEEP, DEEP[:-1]]


@pytest.mark.parametrize("text", NONE, ids=range(len(NONE)))
def test_what_is_no_timeline_is_refused(tmp_path, text):
    file = tmp_path / "t.json"
    file.write_bytes(text)
    with pytest.raises(WrongSetting, match="HOROVOD_TIMELINE"):
        read(file)
    with pytest.raises(WrongSetting, match="can be read"):
        read(tmp_path / "missing.json")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(timeline):
    with open(timeline, "r+b") as file:
        file.truncate(2**29 + 1)  # sparse
    with pytest.raises(WrongSetting, match="at most 512 MiB"):
        read(timeline)


SAMPLE_S, BATCH, STEPS = 2e-4, 100, 30  # planted


def step_s(trace) -> float:
    return float(of_trace(trace).step_s.mean())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The timeline of a run of three ranks that sum mnist's variables in two buffers a step."""
    tensors = [(pid, list(one.shape), 4 * one.size) for pid, one in enumerate(workload.read("mnist").variables, 1)]
    draw, now_us, events = np.random.default_rng(1), 0.0, []
    for _ in range(STEPS):
        now_us += 1e6 * SAMPLE_S * BATCH * draw.lognormal(-(0.05**2) / 2, 0.05)
        had_us, late_us = now_us, float(len(tensors))  # of all gradients
        for fused in (tensors[1:], tensors[:1]):
            events += reduction(fused, had_us, agreed_us=10.0 + now_us - had_us, late_us=late_us)
            now_us = events[-1]["ts"]
    events = [of for one in events for of in ([one | {"name": "1"}] * (one["ph"] == "X") + [one])]
    file = tmp_path_factory.mktemp("recorded") / "timeline.json"
    file.write_text(json.dumps(events))
    return file


def test_a_timeline_that_was_cut_within_a_step_is_fitted_without_it(recorded, tmp_path):
    text = recorded.read_text()
    (tmp_path / "cut.json").write_text(text[: int(0.7 * len(text))])
    whole, cut = (fitted(one, "mnist", RANKS, BATCH) for one in (recorded, tmp_path / "cut.json"))
    assert cut.network.bandwidth_bytes_per_s == pytest.approx(whole.network.bandwidth_bytes_per_s, rel=0.02)


def test_planted_costs_come_back(recorded, tmp_path):
    made = tmp_path / "profile.toml"
    options = f"--from horovod-timeline --workload mnist --batch {BATCH} --ranks 3".split()
    assert fit.main([str(recorded), *options, "-o", str(made)]) == 0
    profile = cluster.read(str(made))
    costs, link = profile.costs["mnist"], profile.network
    assert costs.compute.slope_s == pytest.approx(SAMPLE_S, rel=0.02)
    noise = costs.common_noise  # of one rank: whether others have it too is not known
    assert np.log(noise.quantile(0.9) / noise.quantile(0.1)) == pytest.approx(2.56 * 0.05, rel=0.4)
    assert (link.latency_s, link.bandwidth_bytes_per_s) == pytest.approx((LATENCY_S, BANDWIDTH), rel=0.02)
    words = ["--protocol", "horovod", "--set", "algorithm=ring", "--hosts", "8", "--cluster", str(made)]
    assert simulate([*words, "--steps", "5", "--replications", "1", "--json"]) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workload", "cifar10"], "parameters, which a step of the trace reduces"),
        (["--workload", "mnist", "--ranks", "1"], "--ranks"),
        (["--workload", "mnist", "--probe", "probe.json"], "nothing without --from trace"),
        (["--workload", "mnist", "--shared-cores", "2"], "nothing without --from trace"),
    ],
)
def test_what_a_timeline_does_not_fit_is_refused(recorded, tmp_path, options, words):
    line = [str(recorded), "--from", "horovod-timeline", "-o", str(tmp_path / "p.toml"), *options]
    with pytest.raises(WrongSetting, match=words):
        fit.main(line)


def test_a_pause_is_no_computation(timeline):
    """A step that began long after the one before: an evaluation, or the start of training."""
    start_us, events = 0.0, []
    for pause_us in (1e4,) * 9 + (1e6, 1e4):
        start_us += pause_us
        events += reduction(FUSED, start_us)
    timeline.write_text(json.dumps(events))
    file = timeline.with_suffix(".toml")
    file.write_text('name = "flat"\nvariables = [{name = "w", shape = [100007]}]\nbatch = 10\n')
    found = fitted(timeline, file, RANKS)
    assert found.costs["flat"].compute(10) == pytest.approx(0.01, rel=0.3)
    assert "1 of 10 steps left out as pauses" in " ".join(found.provenance.notes)


@pytest.mark.parametrize(("name", "value"), [("name", 5), ("args", 7), ("pid", {})])
def test_an_event_of_another_form_is_shown(name, value, tmp_path):
    """And no word of Python's."""
    events = reduction(ALONE, 0.0)
    events[-1 if name == "args" else 0][name] = value
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events))
    with pytest.raises(WrongSetting) as refused:
        read(path)
    assert "an event that is none of its own: {" in str(refused.value)
    assert "Error" not in str(refused.value)
