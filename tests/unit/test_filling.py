"""Every slot of a cluster, its number of hosts swept, and what is taken for a model file of one's own; throughput in tokens and dollars."""

import json
import shlex
from collections import Counter

import pandas as pd
import pytest
from test_commands import refused

from sim import options, run, simulated_options
from sim.answers import growth, sources, worth
from sim.base.errors import WrongSetting
from sim.job import gpu_memory
from sim.plans import show
from sim.plans.candidates import Figures
from sim.plans.configurations import Room
from sim.plans.question import Question
from sim.platform import cluster
from sim.platform.cluster import UNCOUNTED
from sim.simulation import simulate
from sim.studies import changes
from sim.sweeps import pools

MINE = """schema = "workload/1"
name = "mine"
parameters = "50 M"
layers = 12
inputs = "words"
sample_shape = [512]
batch = 16
precision = "bf16"
flops_per_sample = "50 Gflop"
"""
CPU = """schema = "cluster/1"
hosts = [{ count = 3, cores = 4, price_per_hour = 0.5 }]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pools, "of_command", lambda _: pools.of_size(1))
    (tmp_path / "mine.toml").write_text(MINE)
    # Decoders of that size have rates that are known better.
    (tmp_path / "large.toml").write_text(MINE.replace("50 M", "2 G"))
    (tmp_path / "cpu.toml").write_text(CPU)
    (tmp_path / "any.toml").write_text(
        f'schema = "cluster/1"\nhosts = [{{ slots = {UNCOUNTED} }}]\nprovenance = {{}}\n'
    )
    return tmp_path


def described(*words: str, change: str | None = None):
    given, read = run.parser().parse_args(words), options.Readers()
    return changes.applied(change, given, read) if change else simulated_options.scenario(given, read)


P3 = ("--workload", "resnet50", "--stragglers", "none", "--cluster", "p3.8xlarge*2")  # 4 GPUs each


@pytest.mark.parametrize(
    ("words", "change", "workers"),
    [
        (["--workers", "all", "--protocol", "allreduce"], None, 8),
        (["--workers", "all", "--protocol", "ps-sync", "--servers", "3"], None, 5),
        (["--workers", "all", "--protocol", "ps-sync", "--servers", "3", "--servers-on", "workers"], None, 8),
        (["--workers", "all", "--protocol", "amb"], None, 7),
        (["--protocol", "allreduce"], None, 8),
        (["--protocol", "allreduce"], "workers=all", 8),
        (["--protocol", "allreduce"], "hosts=3", 12),
        (["--protocol", "allreduce"], "hosts=3, workers=2", 2),
        (["--protocol", "allreduce", "--workers", "4"], "hosts=3", 4),
        (["--protocol", "allreduce", "--hosts", "5"], None, 20),
        (["--protocol", "allreduce", "--hosts", str(UNCOUNTED)], None, 4 * UNCOUNTED),
    ],
)
def test_workers_fill_the_slots_that_are_asked_for(words, change, workers):
    assert described(*P3, *words, change=change).workers == workers


APART = """schema = "cluster/1"
hosts = [{ name = "server", count = 4 }, { count = 8, cores = 4, gpus = 4 }]
costs = { mlp = { compute = { slope_s = 1e-3 } } }
[provenance]
workers = 32
hosts = 8
servers = 4
protocol = "ps-sync"
growth = { per_doubling = 0.1, simulated = 0.1, unchanged = 0.1, simulated_weight = 0.5, drifts = false }
"""


@pytest.mark.parametrize(
    ("words", "servers", "workers", "beyond"),
    [
        ("", 4, [4] * 8, None),
        ("--servers 2", 2, [4] * 8, None),
        ("--servers 2 --per-host 2", 2, [2] * 8, None),
        ("--hosts 16", 4, [4] * 16, "fitted on 8 hosts, asked for 16"),
        ("--servers-on workers", 0, [4] * 8, None),
        ("--protocol allreduce", 0, [4] * 8, None),
    ],
)
def test_servers_of_a_profile_keep_hosts_of_their_own(folder, words, servers, workers, beyond):
    (folder / "apart.toml").write_text(APART)
    job = described("--cluster", "apart.toml", "--workload", "mlp", *words.split())
    assert list(Counter(job.hosts[0 if servers else job.servers :]).values()) == [1] * servers + workers
    found = sources.beyond(job)
    assert (found and str(found)) == beyond
    if found:  # as many servers to a worker at the largest size of the table
        assert list(Counter(growth.at_largest(job).hosts).values()) == [1] * 2 + [4] * 8


def test_a_plan_counts_a_profiles_hosts_for_servers(folder):
    """They are among its hosts, where servers are on hosts of their own; and its command simulates as many."""
    (folder / "apart.toml").write_text(APART)
    asked = {"protocols": ["ps-sync"], "servers": [2], "servers_on": ["own", "workers"], "samples_per_s": 1}
    room = Room(Question(workload="mlp", hosts=["apart.toml"], prices={"apart.toml": 1}, counts=[12], **asked))
    for one, hosts in zip(room.all, (10, 12), strict=True):
        words = shlex.split(room.command(one, Figures(1, 1, 1, steps=9)))[3:]
        again = described(*words, change=run.parser().parse_args(words).what_if[0])
        assert again.workers == 4 * hosts
        assert again.hosts == room.scenario(one).hosts


def test_hosts_of_the_catalogue_keep_their_name_and_price():
    more = described(*P3, "--protocol", "allreduce", change="hosts=3").cluster
    assert (more.name, more.hosts[0].name, more.hosts[0].count) == ("p3.8xlarge*3", "p3.8xlarge", 3)
    assert more.usd_per_hour == pytest.approx(1.5 * cluster.read("p3.8xlarge*2").usd_per_hour)


def test_a_model_of_ones_own_on_gpus_is_trained_as_most_are(folder):
    words = ["--workload", "mine.toml", "--cluster", "g5.12xlarge*2"]
    job = described(*words)
    assert (job.protocol.name, job.protocol.bucket_mb) == ("ddp", 25.0)
    assert (job.workers, job.stragglers_name) == (8, "none")
    said = described(*words, "--protocol", "amb", "--stragglers", "niagara*0.02", "--workers", "2")
    assert (said.protocol.name, said.stragglers_name, said.workers) == ("amb", "niagara*0.02", 2)
    assert described(*words, "--set", "bucket_mb=7").protocol.bucket_mb == 7
    assert described(*words, change="bucket_mb=9").protocol.bucket_mb == 9
    assert described(*words, change="protocol=ps-sync").workers == 7
    assert described("--workload", "mine.toml").protocol == job.protocol
    assert described("--workload", "mine.toml", "--cluster", "cpu.toml", "--workers", "2").protocol == job.protocol


def test_the_answer_says_what_was_assumed_and_in_what_it_can_be_counted(folder, here):
    words = ["--workload", "large.toml", "--cluster", "p4d.24xlarge*1", "--replications", 1, "--steps", 2]
    answer = json.loads(here("sim.run", *words, "--json").stdout)
    note = "assumed, as nobody said: --protocol ddp (PyTorch's DDP"
    assert answer["notes"][0].startswith(note)
    assert answer["notes"][0].endswith("--workers all (8), --stragglers none")
    speed, usd = answer["samples_per_s"], cluster.read("p4d.24xlarge").usd_per_hour
    assert answer["tokens_per_s"] == pytest.approx(512 * speed)
    assert answer["usd_per_million_samples"] == pytest.approx(usd / 3600 / speed * 1e6)
    assert answer["usd_per_million_tokens"] == pytest.approx(usd / 3600 / speed / 512 * 1e6)
    assert answer["mfu"]["share"] == pytest.approx(3 * 50e9 * speed / (8 * 312e12))
    page = here("sim.run", *words).stdout
    assert all(word in page for word in ("tokens/s", "USD a million tokens", "; MFU "))
    plain = here("sim.run", "--protocol", "fmb", "--stragglers", "none", "--steps", 2, "--replications", 1).stdout
    assert not any(word in plain for word in ("tokens", "USD", "MFU", "nobody said"))


def test_nothing_has_a_price_where_nothing_is_known(folder, here):
    words = ["--workload", "resnet50", "--cluster", "p3.8xlarge*4", "--batch", 8, "--replications", 1, "--steps", 1]
    words += ["--protocol", "horovod", "--what-if", "batch=9"]
    page = here("sim.run", *words).stdout
    assert "nothing is known" in page
    assert not any(word in page for word in ("worth", "USD", "MFU"))
    answer = json.loads(here("sim.run", *words, "--json").stdout)
    assert not {"usd_per_million_samples", "usd_per_million_tokens", "mfu"} & {*answer, *answer["what_if"][0]["answer"]}
    assert "usd_per_hour" in answer
    row = {"samples_per_s": {"low": 1.0, "mid": 4.0, "high": 11.0}, "hours": 2.0, "usd": 5.0}
    row |= {"hosts_told": "", "protocol": "", "settings": (), "usd_per_hour": 2.5, "work": None}
    row |= dict.fromkeys(("offer", "servers", "batch", "p_target", "p_best"))
    cells = show._cells(row, Question(samples_per_s=1))
    assert [cells[name] for name in ("USD", "time", "USD/h")] == ["unknown", "unknown", "2.50"]


def test_nothing_is_said_of_what_is_not_known(folder):
    assert worth.of(described("--protocol", "fmb"), 100.0) == {}
    priced = worth.of(described("--protocol", "fmb", "--cluster", "cpu.toml", "--workers", "2"), 100.0)
    assert priced == {"usd_per_hour": 1.5, "usd_per_million_samples": pytest.approx(1.5 / 3600 / 100 * 1e6)}
    two = described(*P3, "--protocol", "allreduce", "--workers", "2")
    assert worth.of(two, 100.0)["mfu"]["peak_flops_per_s"] == pytest.approx(2 * 15.7e12)  # of GPUs with a worker


def test_hosts_are_swept_with_a_worker_in_every_slot(folder, here):
    words = ["--workload", "large.toml", "--cluster", "p4d.24xlarge", "--steps", 2, "--replications", 1]
    done = here("sim.sweep", *words, "--hosts", "1,2,0", "-o", "hosts.parquet")
    rows = pd.read_parquet("hosts.parquet")
    assert list(zip(rows["workers"], rows["cluster"], strict=True))[:2] == [
        (8, "p4d.24xlarge*1"),
        (16, "p4d.24xlarge*2"),
    ]
    said = "assumed, as nobody said: --protocol ddp"
    assert list(rows["assumed"].str.startswith(said))[:2] == [True, True]
    assert "USD a million" in done.stdout
    assert "cannot be" in done.stdout
    grid = here("sim.sweep", *words, "--workers", "2,all", "-o", "grid.parquet")
    assert "2 of 2 scenarios" in grid.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "all"], "--workers: given 'all'; allowed: a number, or --cluster too"),
        (["--workers", "al"], "--workers: given 'al'; allowed: an integer from 0, or all"),
        (["--workers", "-1"], "--workers: given -1"),
        (["--workers", "all", "--cluster", "any.toml"], "takes any number of ranks"),
        (
            ["--workers", "all", "--protocol", "ps-sync", "--servers", "12", "--cluster", "cpu.toml"],
            "has 12, and 12 of the ranks",
        ),
        (["--cluster", "cpu.toml", "--what-if", "hosts=0"], "--what-if hosts=0: --hosts: given 0; allowed: an integer"),
        (["--cluster", "cpu.toml", "--what-if", "hosts=-2"], "given -2"),
        (["--cluster", "cpu.toml", "--what-if", "hosts=many"], "--what-if hosts: given 'many'; allowed: an integer"),
        (["--cluster", "cpu.toml", "--what-if", "hosts=10000000"], "given 10000000; allowed: an integer from 1"),
        (["--what-if", "hosts=2"], "nothing without --cluster"),
    ],
)
def test_what_cannot_be_is_one_line(folder, here, words, said):
    assert said in refused(here("sim.run", *words))


@pytest.mark.parametrize(("gradients", "times"), [("fp32", 1), ("bf16", 2), ("fp16", 2), (None, 1)])
def test_gradients_are_summed_in_the_bytes_that_the_model_says(folder, gradients, times):
    """And take as much of a GPU's memory; servers take float32, and a note says so."""
    told = f'gradients = "{gradients}"\n' if gradients else ""
    (folder / "mine.toml").write_text(MINE + told)
    job = described("--workload", "mine.toml", "--cluster", "g5.12xlarge*2")
    plain = described("--workload", "gpt2", "--cluster", "g5.12xlarge*2", "--workers", "8", "--protocol", "allreduce")
    assert plain.network.bandwidth_bytes_per_s / job.network.bandwidth_bytes_per_s == pytest.approx(1 / times)
    assert gpu_memory.of_job(job).held.gradients == 50e6 * 4 / times
    served = described("--workload", "mine.toml", "--cluster", "g5.12xlarge*2", "--protocol", "ps-sync")
    assert served.network.bandwidth_bytes_per_s == plain.network.bandwidth_bytes_per_s
    noted = simulate(served, replications=1, within_s=1.0).notes
    assert any("go to servers, or the master, in float32" in note for note in noted) == (times == 2)


def test_a_plan_needs_no_other_price_than_that_of_the_file(folder, here):
    words = ["--samples-per-s", 1, "--hosts", "cpu.toml", "--workload", "mlp", "--counts", 2]
    words += ["--protocols", "allreduce"]
    plan = json.loads(here("sim.plan", *words, "--json").stdout)
    assert plan["best"][0]["usd_per_hour"] == pytest.approx(2 * 0.5)


def test_operations_beside_a_measured_step_tell_the_mfu_and_no_time(folder):
    step = 'step = [{ time = "100 ms", batch = 16, gpu = "A10G" }]\n'
    words = ["--workload", "mine.toml", "--cluster", "g5.12xlarge"]
    for told in (MINE + step, "".join(line for line in (MINE + step).splitlines(True) if "flops" not in line)):
        (folder / "mine.toml").write_text(told)
        job = described(*words)
        assert job.costs.compute(16) == pytest.approx(0.1)
        assert ("mfu" in worth.of(job, 100.0)) == ("flops" in told)


def test_a_format_that_a_gpu_lacks_has_no_peak():
    job = described(*P3, "--protocol", "allreduce")
    with pytest.raises(WrongSetting):
        job.machines[0].gpu.reached("bf16")
    object.__setattr__(job, "workload", job.workload.model_copy(update={"precision": "bf16"}))
    assert "mfu" not in worth.of(job, 10.0)
