"""Sources of several kinds: one fit takes them together and says what each determined; a check takes whatever a fit takes."""

import gzip
import json
from pathlib import Path

import pytest
from nccl_texts import text
from test_commands import refused
from tomli_w import dumps
from torch_traces_of import ring_us, trace, write

from calibration.sources import parsed
from sim.base.errors import WrongSetting
from sim.platform import cluster

BUCKETS = [*[250_000] * 9, 400_000]  # items, float32
MODEL = {
    "schema": "workload/1",
    "name": "net",
    "variables": [{"name": f"w{i}", "shape": [size]} for i, size in enumerate(BUCKETS[::-1])],
    "step": {"time": "30 ms", "batch": 32},
}
LATENCY_US, BYTES_PER_US = 20.0, 1250.0
STEP_S = {32: 0.03504, 64: 0.06504}  # of the traces: twice the samples take twice the kernels
FORTY = [f"{step},{rank},{1e3 * STEP_S[32] + 0.01 * rank:.3f},32" for step in range(6) for rank in range(4)]


def nccl(bytes_per_us: float) -> str:
    return text(lambda size: ring_us(size, 4, LATENCY_US, bytes_per_us) * 1e-6)


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """Traces at two batches, tests of the same link and of one a third as fast, and a table of steps, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    Path("net.toml").write_text(dumps(MODEL))
    for batch in STEP_S:
        Path(f"t{batch}").mkdir()
        write(Path(f"t{batch}"), [trace(rank, 4, BUCKETS, steps=4, slow=batch / 32) for rank in range(4)])
    Path("links.txt").write_text(nccl(BYTES_PER_US))
    Path("slow.txt").write_text(nccl(BYTES_PER_US / 3))
    Path("steps.csv").write_text("\n".join(["_step,global_rank,train/step_time,samples", *FORTY]) + "\n")
    return tmp_path


TWO = ["torch=t32,batch=32", "torch=t64,batch=64"]
NET = ["--workload", "net.toml"]


def fitted(here, *words) -> str:
    done = here("calibration.fit", *words, *NET, "-o", "p.toml")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_source_tells_what_it_measured(logs, here):
    said = fitted(here, *TWO, "nccl-tests=links.txt")
    assert "nccl-tests links.txt: links, 10.01 Gbit/s, 20 us" in said
    assert "torch t64, batch 64: computing" in said
    assert "contradict" not in said
    made = cluster.read("p.toml")
    compute = made.costs["net"].compute
    assert compute(64) - compute(32) == pytest.approx(0.030, rel=0.01)  # updates take the same at both batches
    assert compute.base_s == pytest.approx(0.002, rel=0.05)
    assert made.network.bandwidth_bytes_per_s == pytest.approx(BYTES_PER_US * 1e6, rel=0.01)
    assert made.provenance.links_measured
    assert made.provenance.protocol == "ddp"
    assert (made.hosts[0].gpu.name, made.provenance.batches["net"]) == ("A100", (32, 64))


@pytest.mark.slow
def test_a_check_takes_what_a_fit_takes(logs, here):
    fitted(here, *TWO, "nccl-tests=links.txt")
    done = here("calibration.check", "p.toml", *TWO, "nccl-tests=links.txt", *NET, "--json")
    jobs = json.loads(done.stdout)["jobs"]
    assert done.returncode == 0
    assert [job["measured_s"] for job in jobs[:2]] == pytest.approx(list(STEP_S.values()), rel=0.01)
    assert all(abs(job["error"]) < 0.02 for job in jobs)
    assert jobs[2]["covered"] is None
    columns = "seconds=train/step_time,step=_step,rank=global_rank"
    steps = ["steps=steps.csv", *NET, "--columns", columns, "--unit", "ms"]
    assert here("calibration.check", "p.toml", *steps).returncode == 0
    assert here("calibration.check", "p.toml", *steps[:-1], "us").returncode == 1  # a thousandth of it
    slower = here("calibration.check", "p.toml", "torch=t64,batch=32", *NET)
    assert slower.returncode == 1
    assert "1 of 1 job beyond the tolerance" in slower.stdout
    assert here("calibration.check", "p.toml", "nccl-tests=slow.txt", *NET[:0]).returncode == 1


def test_a_job_on_the_profile_is_by_default_one_of_its_runs(logs, here):
    fitted(here, *TWO)
    words = [*NET, "--cluster", "p.toml", "--batch", 64, "--steps", 5, "--replications", 1, "--json"]
    answer = json.loads(here("sim.run", *words).stdout)
    assert (
        "--protocol ddp --set bucket_mb=0.953674 (that of the profile's runs), --workers all (4)" in answer["notes"][0]
    )
    assert answer["step_s"]["mean"] == pytest.approx(STEP_S[64], rel=0.01)


def test_sources_that_contradict_one_another_are_named(logs, here):
    said = fitted(here, TWO[0], "nccl-tests=slow.txt")
    assert "sources contradict one another: torch t32, batch 32 by more than 10%" in said


@pytest.mark.slow
def test_a_table_of_scaling_is_fitted_checked_and_joined(logs, here):
    ring_s = {hosts: 2 * (hosts - 1) / hosts * 4 * sum(BUCKETS) / (BYTES_PER_US * 1e6) for hosts in (1, 2, 3, 4)}
    rows = [f"{hosts},1,{batch},{1e-3 * batch + ring_s[hosts]:.5f}" for hosts in ring_s for batch in (32, 64)]
    Path("scale.csv").write_text("\n".join(["hosts,gpus_per_host,batch,step_s", *rows]) + "\n")
    fitted(here, "scaling=scale.csv")
    done = here("calibration.check", "p.toml", "scaling=scale.csv", *NET, "--json")
    jobs = json.loads(done.stdout)["jobs"]
    assert done.returncode == 0
    assert len(jobs) == 8
    assert max(abs(job["error"]) for job in jobs) < 0.06
    said = fitted(here, "scaling=scale.csv", "nccl-tests=links.txt")
    assert "nccl-tests links.txt: links" in said
    assert "scaling scale.csv: computing" in said
    # Tables do not tell it.
    assert cluster.read("p.toml").network.latency_s == pytest.approx(1e-6 * LATENCY_US, rel=0.01)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*TWO, TWO[0]], "TRACE: given 't32'; allowed: each file once"),
        ([*TWO, "torch=t32/rank0.json"], "none of a folder that is there whole"),
        (["torch=t32,batch=32,ranks=8"], "--ranks: given '4 and 8'"),
        (["torch=t32,batch=0"], "batch: given 0; allowed: an integer from 1"),
        (["torch=t32,bach=32"], "t32: bach: given 'bach=32'; allowed: batch, ranks, each a number"),
        (["torch=t32,batch=x"], "batch: given 'x'"),
        (["torch=t32,batch=8,batch=9"], "batch: given '8'; allowed: each once"),
        (["torch=", TWO[1]], "TRACE: given 'torch='; allowed: the name of a file"),
        (["torhc=t32"], "did you mean torch?"),
        (["torch=nowhere,batch=3"], "a file that can be read"),
        ([*TWO, "horovod-timeline=links.txt"], "a timeline alone"),
        ([TWO[0], "nccl-tests=links.txt", "--link", "10 Gbit/s"], "no link beside that which nccl-tests measured"),
        ([TWO[0], "nccl-tests=links.txt", "--shared-cores", "2"], "nothing without --from trace"),
        ([TWO[0], "trace=links.txt", "--shared-cores", "2"], "nothing with sources of several kinds"),
        (
            ["amb-csv=links.txt", "--probe", "probe.json", "--link", "10 Gbit/s"],
            "no link beside that which --probe measured",
        ),
        (["torch=t32"], "--batch: missing; needed"),
        (["steps=steps.csv", "--columns", "seconds=train/step"], "samples (did you mean train/step_time?)"),
        (["steps=steps.csv", "--columns", "secs=loss"], "ours are step, rank, seconds"),
        (["steps=steps.csv", "--unit", "fortnights"], "--unit: given 'fortnights'; allowed: s, ms, us, ns"),
        (["nccl-tests=links.txt", "--unit", "ms"], "--unit: given 'ms'; allowed: nothing without --from steps"),
    ],
)
def test_what_cannot_be_joined_is_one_line(logs, here, words, said):
    Path("net.toml").write_text(
        dumps(MODEL | {"step": {"time": "30 ms", "batch": 32}} if words != ["torch=t32"] else _silent())
    )
    Path("probe.json").write_text('{"cores": 2, "network": {"latency_s": 1e-5}}')
    assert said in refused(here("calibration.fit", *words, *NET, "-o", "p.toml"))
    assert not Path("p.toml").exists()


def _silent() -> dict:
    """The model without a batch."""
    return {name: value for name, value in MODEL.items() if name != "step"} | {"flops_per_sample": "1 Gflop"}


CONTENTS = {
    "scaling": "gpus_per_host,hosts,step_ms,batch\n8,1,300,256\n",
    "steps": "step;seconds\n1;0,25\n",
    "torch": '{"schemaVersion": 1, "traceEvents": []}',
    "horovod-timeline": '[\n{"name": "NEGOTIATE_ALLREDUCE", "ph": "B"},\n',
    "nccl-tests": "# nThread 1\n#  size  count  type  redop  root  time  algbw  busbw\n",
}


PACKED = gzip.compress(CONTENTS["torch"].encode())
TRACES = "hosts,gpus_per_host,batch,step_s\n"  # whatever they have
KINDS = [
    *((f"a.{ending}", {"": content}, kind) for kind, content in CONTENTS.items() for ending in ("csv", "txt")),
    ("a.json.gz", {"": PACKED}, "torch"),
    ("cut.json.gz", {"": PACKED[:20]}, "steps"),
    ("a.parquet", {"": TRACES}, "trace"),
    ("a.jsonl", {"": TRACES}, "trace"),
    ("nothing.parquet", {}, "trace"),
    ("empty", {"/": ""}, "trace"),
    ("of torch", {"/rank0.json": CONTENTS["torch"], "/rank1.json": CONTENTS["torch"]}, "torch"),
    ("recorded", {"/rank-00000.json": '{"rank": 0}', "/rank-00000.jsonl": ""}, "trace"),
]


@pytest.mark.parametrize(("name", "files", "kind"), KINDS, ids=[f"{kind} {name}" for name, _, kind in KINDS])
def test_what_nobody_named_is_of_the_kind_of_its_first_lines_or_of_its_ending(name, files, kind, tmp_path):
    """Packed or not; a folder is of the kind of its files."""
    for further, content in files.items():
        path = tmp_path / f"{name}{further}"
        (path if further == "/" else path.parent).mkdir(exist_ok=True)
        if further != "/":
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert [one.kind for one in parsed([str(tmp_path / name)])] == [kind]


def test_a_file_that_is_not_there_is_said_not_to_be_there(tmp_path):
    with pytest.raises(WrongSetting, match=r"nothing\.csv'; allowed: a file or a folder that is there"):
        parsed([str(tmp_path / "nothing.csv")])
