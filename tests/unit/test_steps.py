"""Tables of step times (calibration.fit --from steps): what was planted in them is predicted, at their size and at others."""

from dataclasses import replace

import pandas as pd
import pytest

from calibration import fit, profiles
from calibration.importers import step_tables, steps, table_names
from calibration.importers.about import About
from sim import protocols
from sim.answers.outcome import of_trace
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.laws import LogNormal
from sim.model import workload
from sim.platform import cluster, other_sizes
from sim.platform.cluster import Link, one_rank_a_host
from sim.simulation import simulate

RATES = ("samples_per_sec", "images/s", "tokensPerSecond", "throughput (it/s)", "steps_per_s")
LINK = Link(latency_s=50e-6, bandwidth_bytes_per_s=1e8)


def job(name: str = "allreduce", workers: int = 4, cv: float = 0.2, **further) -> Scenario:
    """One whose computing varies, whose messages take about as long, and whose updates take time."""
    model = workload.read("mlp")
    noisy = model.costs.model_copy(update={"noise": LogNormal(cv=cv)})
    hosts = one_rank_a_host(workers + 1, cores=2).model_copy(update={"network": LINK})
    model = model.model_copy(update={"costs": noisy})
    return Scenario(protocols.make(name), model, workers, 200, 2, cluster=hosts, **further)


def logged(scenario: Scenario, path, with_compute: bool = False):
    """A table of its steps, as a user's script would log them."""
    found = simulate(scenario, "event", 1, want_trace=True)
    rows, warm = found.trace.rows, scenario.warmup
    table = [(s + warm, r, length) for s, length in enumerate(found.step_s[0]) for r in range(scenario.workers)]
    table = pd.DataFrame(table, columns=["step", "rank", "seconds"])
    if with_compute:
        work = rows[rows["activity"].isin(["input", "compute", "pack"]) & (rows["rank"] >= scenario.servers)]
        spent_s = (work["end_s"] - work["start_s"]).groupby([work["step"], work["rank"] - scenario.servers]).sum()
        table["compute_s"] = [spent_s[s, r] for s, r in zip(table["step"], table["rank"], strict=True)]
    table.to_csv(path, index=False)
    return found.step_s.mean()


def predicted(path, scenario: Scenario, link: Link | None, hosts: int = 9, **said) -> float:
    told = About("mlp", protocol=scenario.protocol.name, batch=scenario.batch, link=link, **said)
    sources = fit.read(str(path), "steps", told)
    profile = other_sizes.on_hosts(profiles.make(sources, "logged", network=link), hosts)
    plain = replace(scenario, workload=workload.read("mlp"), cluster=profile)
    return float(simulate(plain, replications=4).step_s.mean())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["allreduce", "fmb"])
@pytest.mark.parametrize("with_compute", [False, True])
@pytest.mark.parametrize("link", [LINK, None])
def test_steps_of_the_size_that_was_logged_are_predicted(tmp_path, name, with_compute, link):
    scenario, path = job(name), tmp_path / "steps.csv"
    measured_s = logged(scenario, path, with_compute)
    assert predicted(path, scenario, link) == pytest.approx(measured_s, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("with_compute", [False, True])
def test_on_a_known_link_other_sizes_are_predicted(tmp_path, with_compute):
    path = tmp_path / "steps.csv"
    logged(job(), path, with_compute)
    twice = job(workers=8)
    truth_s = simulate(twice, replications=4).step_s.mean()
    assert predicted(path, twice, LINK) == pytest.approx(truth_s, rel=0.03)
    slow = Link(latency_s=50e-6, bandwidth_bytes_per_s=1e11)  # on which messages take no time
    assert abs(predicted(path, twice, slow) / truth_s - 1) > 0.03


def test_the_trace_keeps_the_steps_and_counts_from_either_end(tmp_path):
    table = pd.DataFrame([(s, r, 0.1 * (s + 1)) for s in range(5, 9) for r in (2, 1)], columns=list(step_tables.NEEDED))
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        (table.to_csv if path.suffix == ".csv" else table.to_parquet)(path, index=False)
        (trace,), _ = steps.read(path, About("mlp"))
        assert of_trace(trace).step_s[0] == pytest.approx([0.7, 0.8, 0.9])
        assert (trace.header.workers, trace.header.protocol, trace.header.world) == (2, "allreduce", "imported")


ROWS = [(0, 0, 0.3), (0, 1, 0.3), (1, 0, 0.2), (1, 1, 0.2)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "columns step, rank, seconds"),
        ("step,rank,seconds\n", "rows"),
        ("step,rank,seconds\n0,0,1\n", "at least two"),
        ("step,rank,seconds\n0,0,1\n1,0,nan\n", "row 2"),
        ("step,rank,seconds\n0,0,1\n1.5,0,1\n", "row 2"),
        ("step,rank,seconds\n0,0,1\n1,0,1e300\n", "row 2"),
        ("step,rank,seconds\n0,0,1\n0,0,1\n", "each of 1 ranks once"),
        ("step,rank,seconds\n0,0,1\n2,0,1\n", "one after another"),
        ("step,rank,seconds\n0,3,1\n1,3,1\n", "ranks"),
        ("step,rank,seconds,compute_s\n0,0,1,2\n1,0,1,1\n", "compute_s within them"),
        ("step,rank,seconds,samples\n0,0,1,2\n1,0,1,3\n", "fixed minibatches"),
        ("step,rank,seconds,seconds\n0,0,1,2\n1,0,1,3\n", "each of them once"),
        (
            "step,rank,seconds\n0,0,410\n1,0,409\n",
            "'a median step of 409.5'; allowed: steps of 1e-06 s to 100 s; --unit ms or us",
        ),
        ("step,rank,seconds\n0,0,25000000\n1,0,25000000\n", "--unit s that they are seconds"),
        ("step,rank,step_s\n0,0,2e6\n1,0,2e6\n", "1e-09 s to 1e+06 s"),
        ("step,rank,a_ms,b_ms\n0,0,1,1\n1,0,1,1\n", "one column of a step's seconds"),
        *((f"step,{name}\n0,51\n1,52\n2,53\n", "one column of a step's seconds") for name in RATES),
        ("step,rank,elapsed_s\n0,0,2\n1,0,1\n", "times that grow"),
        ("\0\0\0,\n", "step, rank, seconds"),
    ],
)
def test_a_table_that_is_none_is_said_in_a_line(tmp_path, text, said):
    path = tmp_path / "steps.csv"
    path.write_text(text)
    with pytest.raises(WrongSetting) as caught:
        steps.read(path, About("mlp"))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "header",
    [
        "step,rank,seconds:1",
        "step,rank,Step Time (ms):1e3",
        "_step,rank,train/step_time_us:1e6",
        "Step,worker,run-1 - train/step_time:1",
        "iteration,global_rank,stepTimeMs:1e3",
        "global_step,rank,iter_time_s:1",
        "step,rank,ms/step:1e3",
        "step,rank,elapsed time per iteration (us):1e6",
        "step,rank,s/it:1",
    ],
)
def test_a_unit_is_read_by_the_name_of_its_column(tmp_path, header):
    path, (names, unit) = tmp_path / "steps.csv", header.split(":")
    rows = [(step, rank, (0.2 + 0.1 * step) * float(unit)) for step in range(3) for rank in range(2)]
    pd.DataFrame(rows, columns=names.split(",")).assign(_runtime=1.0, lr=0.1).to_csv(path, index=False)
    found = steps.logged(path, About("mlp"))
    assert found.length_s == pytest.approx([0.2, 0.3, 0.4])
    assert any("read as" in note for note in found.notes) == ("seconds" not in names.split(","))


LINES = {"": "{line}", "srun -l": "{rank}: {line}", "mpirun --tag-output": "[1,{rank}]<stdout>: {line}"}


@pytest.mark.parametrize("launcher", LINES)
@pytest.mark.parametrize("ending", ["csv", "log"])
def test_rows_are_read_with_what_a_launcher_has_put_before_them(tmp_path, launcher, ending):
    """A rank that no column says is that of the launcher; other lines of the log are left out, and counted."""
    columns, path = "step,seconds" if launcher else "step,rank,seconds", tmp_path / f"job.{ending}"
    rows = [(0, columns), *((rank, f"{step},{0.2 + rank / 100}") for step in range(3) for rank in range(2))]
    if not launcher:
        rows = [(0, columns), *((rank, f"{step},{rank},{0.2 + rank / 100}") for step in range(3) for rank in range(2))]
    said = [LINES[launcher].format(rank=rank, line=line) for rank, line in rows]
    path.write_text("\n".join([*said, *(["NCCL INFO ready"] if ending == "log" else [])]) + "\n")
    found = steps.logged(path, About("mlp"))
    assert (found.ranks, found.length_s.tolist()) == (2, pytest.approx([0.205] * 3))
    assert any("put before the rows" in note for note in found.notes) == bool(launcher)
    assert any("1 of 8 lines left out" in note for note in found.notes) == (ending == "log")


def test_columns_and_a_unit_are_those_that_are_said(tmp_path):
    path = tmp_path / "wandb.csv"
    path.write_text("_step,global_rank,train/step,lr,eval_s\n0,0,400,1,9\n0,1,410,1,9\n1,0,400,1,9\n1,1,410,1,9\n")
    names = table_names.names_of("seconds=train/step, step=_step,rank=global_rank", "ms")
    assert steps.logged(path, About("mlp", names=names)).length_s == pytest.approx([0.405, 0.405])
    with pytest.raises(WrongSetting, match="--unit: given 'us'; allowed: the unit of the column 'eval_s'"):
        steps.logged(path, About("mlp", names=table_names.names_of("seconds=eval_s", "us")))
    with pytest.raises(WrongSetting, match="a column of it: _step, global_rank, train/step, lr, eval_s"):
        steps.logged(path, About("mlp", names=table_names.names_of("seconds=time", None)))


def test_computing_has_a_unit_too(tmp_path):
    (tmp_path / "t.csv").write_text("step,rank,step_ms,compute_ms\n0,0,400,300\n1,0,410,310\n")
    found = steps.logged(tmp_path / "t.csv", About("mlp"))
    assert found.compute_s[:, 0] == pytest.approx([0.3, 0.31])
    (tmp_path / "t.csv").write_text("step,rank,step_s\n0,0,410\n1,0,400\n")
    assert steps.logged(tmp_path / "t.csv", About("mlp")).length_s.tolist() == [410, 400]


@pytest.mark.slow
def test_a_log_of_one_rank_is_read(tmp_path, capsys):
    """A step is computing alone where there is one rank; the link stays as it was given."""
    path, made = tmp_path / "one.csv", tmp_path / "p.toml"
    words = [str(path), "--from", "steps", "--workload", "mlp", "--batch", "16", "-o", str(made)]
    for text in (
        "step,rank,seconds\n0,0,0.31\n1,0,0.30\n2,0,0.33\n3,0,0.31\n",
        "step,seconds\n0,0.31\n10,0.3\n20,0.33\n30,0.31\n",
    ):
        path.write_text(text)
        fit.main([*words, "--link", "25 Gbit/s, 20 us"])
        found = cluster.read(str(made))
        assert found.costs["mlp"].compute(16) == pytest.approx(0.313, abs=0.01)
        assert found.network.bandwidth_bytes_per_s == pytest.approx(25e9 / 8)
    assert "taken as the log of one rank" in capsys.readouterr().out
    fit.main([*words, "--link", "25 Gbit/s, 20 us", "--ranks", "8", "--gpus-per-host", "4"])
    said, found = capsys.readouterr().out, cluster.read(str(made))
    assert "1 of 8 ranks logged: the others are taken to be like it" in said
    assert [(host.count, host.slots) for host in found.hosts] == [(2, 4)]
    assert (found.provenance.workers, found.provenance.hosts) == (8, 2)
    plain = workload.read("mlp")
    job = Scenario(protocols.make("allreduce"), plain, 8, 20, 1, batch=16, cluster=found)
    assert simulate(job, replications=2).step_s.mean() == pytest.approx(0.313, rel=0.02)
    for wrong in (["--ranks", "0"], ["--gpus-per-host", "0"]):
        with pytest.raises(WrongSetting, match=wrong[0]):
            fit.main([*words, *wrong])


def test_a_batch_that_nobody_gave_is_asked_for(tmp_path, capsys):
    path, model, made = tmp_path / "steps.csv", tmp_path / "w.toml", str(tmp_path / "p.toml")
    pd.DataFrame(ROWS, columns=list(step_tables.NEEDED)).to_csv(path, index=False)
    model.write_text('schema = "workload/1"\nname = "w"\nparameters = 1000\nlayers = 1\n')
    words = [str(path), "--from", "steps", "-o", made, "--workload"]
    with pytest.raises(WrongSetting, match="--batch: missing"):
        fit.main([*words, str(model)])
    fit.main([*words, str(model), "--batch", "8"])
    assert "--batch" not in capsys.readouterr().out
    fit.main([*words, "mlp"])
    assert "batch 100 is that of mlp" in capsys.readouterr().out


def test_a_log_that_was_cut_is_read_without_its_last_step(tmp_path):
    rows = "".join(f"{step},{rank},0.{step + 2}\n" for step in range(4) for rank in range(2))
    path, whole = tmp_path / "steps.csv", f"step,rank,seconds\n{rows}"
    for text, said in (
        (whole, []),
        (whole + "4,0,0.3\n", ["the last step left out: 1 of 2 ranks logged it"]),
        (whole + "4,0", ["the last row left out: cut"]),
        (whole + "4,0,0.3\n4,1", ["the last row left out: cut", "the last step left out: 1 of 2 ranks logged it"]),
    ):
        path.write_text(text)
        found = steps.logged(path, About("mlp"))
        assert found.length_s.tolist() == [0.2, 0.3, 0.4, 0.5]
        assert list(found.notes) == [*said, "the first step, 0.2 s, is left out of the costs, as warm-up"]


def test_packed_tables_are_read(tmp_path):
    path = tmp_path / "steps.csv.gz"
    pd.DataFrame(ROWS, columns=list(step_tables.NEEDED)).to_csv(path, index=False)
    assert steps.logged(path, About("mlp")).length_s.tolist() == [0.3, 0.2]


@pytest.mark.parametrize("name", ["x.parquet", "y.csv"])
def test_a_file_of_bytes_is_no_table(tmp_path, name):
    (tmp_path / name).write_bytes(bytes(range(256)))
    with pytest.raises(WrongSetting, match="--from steps"):
        steps.read(tmp_path / name, About("mlp"))
    with pytest.raises(WrongSetting, match="--from steps"):
        steps.read(tmp_path / "nothing.csv", About("mlp"))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"protocol": "ps-async"}, "a synchronous one"),
        ({"protocol": "alreduce"}, "did you mean allreduce"),
        ({"settings": ("algorithm=rong",)}, "algorithm"),
        ({"stragglers": "niagara"}, "do not separate sleeps"),
        ({"link": Link(bandwidth_bytes_per_s=1e6)}, "a faster one"),
        ({"batch": 0}, "--batch"),
    ],
)
def test_what_does_not_fit_a_table_is_said(tmp_path, said, message):
    path = tmp_path / "steps.csv"
    pd.DataFrame(ROWS, columns=list(step_tables.NEEDED)).to_csv(path, index=False)
    with pytest.raises(WrongSetting, match=message):
        steps.read(path, About("mlp", **said))


@pytest.mark.slow
def test_the_link_is_that_which_was_given(tmp_path, capsys):
    path, made = tmp_path / "steps.csv", tmp_path / "p.toml"
    logged(job(), path)
    words = [str(path), "--from", "steps", "--workload", "mlp", "--link", "800 Mbit/s, 50 us", "-o", str(made)]
    fit.main(words)
    assert "the link was given, not measured: 0.8 Gbit/s, 50 us" in capsys.readouterr().out
    assert cluster.read(str(made)).network.bandwidth_bytes_per_s == 1e8
    for wrong in (["--link", "slow"], ["--ranks", "3"]):
        with pytest.raises(WrongSetting, match=wrong[0]):
            fit.main([*words, *wrong] if wrong[0] != "--link" else [*words[:5], *wrong, *words[7:]])


@pytest.mark.parametrize(("second", "apart"), [(0.104, False), (0.2, True)])
def test_tables_of_one_job_that_contradict_one_another_are_named(tmp_path, capsys, second, apart):
    """As tests of links and tables of scaling are; repeats differ, too, and by less."""
    files = []
    for number, seconds in enumerate((0.1, 0.1, second)):
        rows = [f"{step},{seconds * (1 + 0.01 * (step % 3))}" for step in range(12)]
        (tmp_path / f"run{number}.csv").write_text("\n".join(["step,step_s", *rows]))
        files.append(str(tmp_path / f"run{number}.csv"))
    assert (
        fit.main([*files, "--from", "steps", "--workload", "mlp", "--ranks", "2", "-o", str(tmp_path / "p.toml")]) == 0
    )
    said = "contradict one another: of one job, by a factor 2" in capsys.readouterr().out
    assert said == apart
