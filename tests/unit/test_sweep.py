"""Many scenarios, one row each: the same however they are simulated, cut off or killed."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from processes import ROOT, until
from test_outputs import child, end, limited

from sim import options, protocols
from sim.base.errors import WrongSetting
from sim.job.scenario import Scenario
from sim.language.text import Text
from sim.language.verbs import compute
from sim.model.workload import read as read_workload
from sim.protocols.base import protocol_of
from sim.simulation import simulate
from sim.sweep import main, sweep, swept
from sim.sweeps import grid, jobs, pools, results
from sim.sweeps.results import ANSWERED, ASKED, SETTING, Results

ONE_GO = {"processes": 1, "replications": 2}
LINE = ["--workload", "mlp", "--steps", "4", "--warmup", "1", "--replications", "2"]


@dataclass(frozen=True)
class Killing(Text):
    """Kills the process that simulates it: always, or until there is a file of this name."""

    until: str = ""

    def __call__(self, me):
        if not (self.until and Path(self.until).exists()):
            if self.until:
                Path(self.until).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        for _ in me.steps():
            yield from compute(me)
            yield from me.update()


@dataclass(frozen=True)
class Waiting(Text):
    """A dead end."""

    def __call__(self, me):
        for _ in me.steps():
            yield from me.take((me.rank + 1) % me.n)


def job(protocol, workers=2, **settings):
    text = protocols.make(protocol) if isinstance(protocol, str) else protocol
    return Scenario(text, read_workload("mlp"), **{"workers": workers, "steps": 4, "warmup": 1} | settings)


def scenarios():
    return [job(name, workers) for name in ("amb", "fmb", "ps-async") for workers in (1, 2, 3)]


def timeless(rows) -> pd.DataFrame:
    """But for the seconds that it took."""
    rows = pd.read_parquet(rows) if isinstance(rows, str | Path) else rows
    return rows.drop(columns="wall_s")


@pytest.fixture
def whole(tmp_path):
    """The rows of one go."""
    return timeless(sweep(scenarios(), str(tmp_path / "whole.parquet"), **ONE_GO))


def test_a_row_says_all_that_was_asked_and_what_came_of_it(whole):
    for row, scenario in zip(whole.to_dict("records"), scenarios(), strict=True):
        found = simulate(scenario, replications=2)
        for one in fields(Scenario):
            if one.name not in ("protocol", "workload", "cluster", "stragglers", "stragglers_name", "sleeps_of"):
                assert row[one.name] == getattr(scenario, one.name), one.name
        assert (row["protocol"], row["workload"], row["stragglers"]) == (scenario.protocol.name, "mlp", "none")
        assert (row["world"], row["runs_asked"], row["runs_done"], row["steps_done"]) == (found.world, 2, 2, 4)
        assert row["samples_per_s"] == pytest.approx(found.samples_per_s, rel=1e-12)
        runs = json.loads(row["samples_per_s_runs"])
        assert runs == pytest.approx(found.outcome.throughput(), rel=1e-8)
        assert row["samples_per_s_se"] == pytest.approx(
            found.samples_per_s * np.log(runs).std(ddof=1) / 2**0.5, rel=1e-4
        )
        assert row["step_p95_s"] == pytest.approx(found.answer()["step_s"]["p95"], rel=1e-12)
        assert row["idle_fraction_workers"] == pytest.approx(found.idle_fraction[:, scenario.servers :].mean())
        assert row["notes"] == "; ".join(found.notes)
        assert pd.isna(row["error"])
    limits = whole[f"{SETTING}time_limit_s"]
    assert (limits[whole["protocol"] == "amb"] == protocols.make("amb").time_limit_s).all()
    assert limits[whole["protocol"] != "amb"].isna().all()


def test_the_columns_are_those_of_a_scenario_and_of_an_answer():
    """A field that is added to a scenario has a column, or this test fails."""
    made = jobs.of_scenario(job("amb"), jobs.How())
    assert {name for name in made.asked if not name.startswith(SETTING)} == set(ASKED)
    row = jobs.row(made)
    assert set(row) | {"error"} == set(ANSWERED) | {"digest"}


def test_the_file_says_its_schema_and_version(whole, tmp_path):
    about = pq.read_schema(tmp_path / "whole.parquet").metadata[b"sweep"]
    assert json.loads(about) == results.ABOUT
    assert not (tmp_path / "whole.parquet.parts").exists()


@pytest.mark.processes
@pytest.mark.parametrize("how", ["two processes", "threads"])
def test_rows_are_the_same_whoever_simulates(how, whole, tmp_path):
    out = str(tmp_path / "other.parquet")
    with ThreadPoolExecutor(2) as threads:
        where = {"processes": 2} if how == "two processes" else {"executor": threads}
        found = sweep(scenarios(), out, replications=2, **where)
    pd.testing.assert_frame_equal(timeless(found), whole)
    pd.testing.assert_frame_equal(timeless(out), whole)


@pytest.fixture
def counted(monkeypatch):
    """The scenarios that are simulated in this process, by their workers."""
    seen, real = [], jobs.simulate
    monkeypatch.setattr(jobs, "simulate", lambda one, *a, **k: seen.append(one) or real(one, *a, **k))
    return seen


@pytest.mark.parametrize(("rows", "error"), [(1, RuntimeError), (8, KeyboardInterrupt)])
def test_what_was_cut_off_and_goes_on_is_one_go(rows, error, whole, tmp_path, monkeypatch, counted):
    """Without a loss and without a repeat."""
    out, came = str(tmp_path / "cut.parquet"), []

    def add(self, more, real=Results.add):
        real(self, more)
        came.extend(more)
        if len(came) >= rows:
            raise error

    with monkeypatch.context() as patch:
        patch.setattr(Results, "add", add)
        with pytest.raises(error):
            sweep(scenarios(), out, **ONE_GO)
    assert rows <= len(came) < len(whole)
    if error is KeyboardInterrupt:
        assert len(timeless(out)) == len(came)
    found = sweep(scenarios(), out, resume=True, **ONE_GO)
    pd.testing.assert_frame_equal(timeless(found), whole)
    assert len(counted) == len({id(one) for one in counted}) == len(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.parquet", "whole.parquet"]


def test_a_larger_sweep_goes_on_with_a_smaller_one(whole, tmp_path, counted):
    """Even if other protocols have settings of their own."""
    more = [job("kbatch-async"), *scenarios()]
    found = sweep(more, str(tmp_path / "whole.parquet"), resume=True, **ONE_GO)
    assert len(counted) == 1
    assert found["protocol"].tolist()[:2] == ["kbatch-async", "amb"]
    assert found["error"].isna().all()


def test_equal_scenarios_have_one_row(tmp_path, counted):
    assert len(sweep([job("fmb"), job("fmb")], str(tmp_path / "x.parquet"), **ONE_GO)) == len(counted) == 1


@pytest.mark.parametrize("change", [{"replications": 3}, {"world": "event"}, {"within_s": 60.0}])
def test_rows_of_another_sweep_are_refused(change, whole, tmp_path):
    with pytest.raises(WrongSetting, match="rows of this sweep: 9 of its 9 are of other scenarios"):
        sweep(scenarios(), str(tmp_path / "whole.parquet"), resume=True, **ONE_GO | change)


def test_a_profile_of_other_costs_is_another_cluster(tmp_path):
    """Though an answer does not say its costs."""
    from sim.model.costs import Costs, Line
    from sim.platform.cluster import Cluster, Host

    def digest(base_s):
        cluster = Cluster(hosts=[Host(count=3)], costs={"mlp": Costs(compute=Line(base_s=base_s))})
        return jobs.of_scenario(job("fmb", cluster=cluster), jobs.How()).digest

    assert digest(0.1) == digest(0.1) != digest(0.2)


def test_rows_of_another_version_are_refused(whole, tmp_path, monkeypatch):
    monkeypatch.setitem(results.ABOUT, "version", "9.9")
    with pytest.raises(WrongSetting, match=r"version: given '0\.1\.0'; allowed: 9\.9"):
        sweep(scenarios(), str(tmp_path / "whole.parquet"), resume=True, **ONE_GO)


@pytest.mark.parametrize("text", [b"", b"PAR1", b"PAR1" * 100])
def test_what_is_no_sweep_is_refused(text, tmp_path):
    (tmp_path / "x.parquet").write_bytes(text)
    with pytest.raises(WrongSetting, match="the rows of a sweep"):
        sweep(scenarios(), str(tmp_path / "x.parquet"), resume=True, **ONE_GO)


def test_a_trace_is_no_sweep(tmp_path, trace):
    trace.write(tmp_path / "x.parquet")
    with pytest.raises(WrongSetting, match="schema: missing; needed: sweep-rows/1"):
        sweep(scenarios(), str(tmp_path / "x.parquet"), resume=True, **ONE_GO)


def test_rows_that_are_there_are_not_overwritten(whole, tmp_path):
    with pytest.raises(WrongSetting, match="--resume"):
        sweep(scenarios(), str(tmp_path / "whole.parquet"), **ONE_GO)
    pd.testing.assert_frame_equal(timeless(tmp_path / "whole.parquet"), whole)


@pytest.mark.parametrize("given", [[], [["--workers", "x"]]])
def test_scenarios_that_cannot_be_are_refused(given, tmp_path):
    with pytest.raises(WrongSetting, match="one Scenario or more"):
        sweep(given, str(tmp_path / "x.parquet"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.processes
@pytest.mark.parametrize("processes", [1, 2])
def test_a_scenario_that_fails_is_a_row_and_the_others_go_on(processes, tmp_path):
    """One that is a deadlock, and one that can be simulated."""
    found = sweep([job(protocol_of(Waiting)()), job("fmb")], str(tmp_path / "x.parquet"), processes=processes)
    assert found["error"].isna().tolist() == [False, True]
    assert "wait for ever" in found["error"][0]


def test_what_no_column_holds_is_a_row(tmp_path):
    odd = (("--workers", "9" * 30), ("--seed", str(2**64 - 1)), ("--placement", "\udcff"))
    wanted = [jobs.of_options(grid.parser().parse_args([*LINE, *one]), options.Readers()) for one in odd]
    found = swept(wanted, str(tmp_path / "x.parquet"), pools.of_size(1), resume=False).to_pandas()
    assert [word in str(found["error"][row]) for row, word in ((0, "--workers"), (2, "--placement"))] == [True, True]
    assert found["placement"][2] == "\\udcff"
    assert int(pq.read_table(tmp_path / "x.parquet")["seed"][1].as_py()) == 2**64 - 1


@pytest.mark.processes
def test_a_process_that_is_killed_once_costs_nothing(whole, tmp_path, capfd):
    """One line; its scenarios are simulated again."""
    out, mark = str(tmp_path / "x.parquet"), str(tmp_path / "mark")
    found = sweep([*scenarios(), job(protocol_of(Killing)(mark))], out, processes=2, replications=2)
    assert Path(mark).exists()
    assert len(found) == len(whole) + 1
    assert found["error"].isna().all()
    pd.testing.assert_frame_equal(timeless(found)[: len(whole)][whole.columns], whole)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "a process died" in lines[0]


@pytest.mark.processes
def test_a_scenario_that_kills_its_process_is_a_row(whole, tmp_path, capfd):
    out = str(tmp_path / "x.parquet")
    found = sweep(
        [job(protocol_of(Killing)()), *scenarios(), job(protocol_of(Killing)(), 3)], out, processes=2, replications=2
    )
    assert found["error"].isna().tolist() == [False, *[True] * len(whole), False]
    assert "its process died twice" in found["error"][0]
    rest = timeless(found)[1:-1].reset_index(drop=True)
    pd.testing.assert_frame_equal(rest[whole.columns], whole, check_dtype=False)


def test_what_cannot_travel_is_a_row(tmp_path):
    @dataclass(frozen=True)
    class Local(Waiting):
        """Its class is in no module."""

        def __call__(self, me):
            for _ in me.steps():
                yield from compute(me)
                yield from me.update()

    wanted = [job(protocol_of(Local)() if seed == 6 else "fmb", seed=seed) for seed in range(12)]
    with ThreadPoolExecutor(1) as one:  # of which the second chunk has several scenarios
        found = sweep(wanted, str(tmp_path / "x.parquet"), one)
    assert found["error"].isna().tolist() == [seed != 6 for seed in range(12)]
    assert "not to be sent" in found["error"][6]
    assert sweep([job(protocol_of(Local)())], str(tmp_path / "y.parquet"), processes=1)["error"].isna().all()


SLOW = ["--protocol", "ps-async", "--steps", "60", "--replications", "2", "--workload", "mlp"]
SEEDS = ",".join(map(str, range(20)))
SCRIPT = "import sys; from sim.sweeps import results; results.BLOCK_S = 0; from sim import command, sweep; "
SCRIPT += "command.run('sim.sweep', sweep.main)"


@pytest.mark.processes
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_one_that_is_ended_leaves_its_rows_and_no_processes(by, tmp_path):
    """Ctrl-C a file, a kill parts; both go on to one go."""
    line = [*SLOW, "--seed", SEEDS, "--workers-processes", "2", "-o", "x.parquet"]
    started = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", SCRIPT, *line], start_new_session=True, **started) as process:
        parts = tmp_path / "x.parquet.parts"
        until(lambda: list(parts.glob("part-*.parquet")) or process.poll() is not None)
        (os.killpg if by == signal.SIGINT else os.kill)(process.pid, by)  # Ctrl-C comes to all processes of a terminal
        said = process.communicate(timeout=300)[1]
    until(lambda: not group(process.pid))
    assert process.returncode == (130 if by == signal.SIGINT else -by)
    there = [tmp_path / "x.parquet"] if by == signal.SIGINT else sorted(parts.glob("part-*.parquet"))
    rows = sum(len(pd.read_parquet(path)) for path in there)
    assert 0 < rows < 20
    if by == signal.SIGINT:
        assert said.splitlines()[-1] == "sim.sweep: interrupted"
        assert "Traceback" not in said
        assert not parts.exists()
    done = child("sim.sweep", *line, "--resume", cwd=tmp_path)
    assert done.stdout.endswith("x.parquet: 20 of 20 scenarios simulated\n"), done.stderr
    assert pd.read_parquet(tmp_path / "x.parquet")["seed"].tolist() == list(range(20))


def group(leader: int) -> bool:
    """Whether any process of a group is there."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_is_not_for_its_processes():
    with pools.Own(2) as pool:
        assert pool.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
        blocked = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()
        assert signal.SIGINT in blocked, "also while they began"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_if_all_fail_the_command_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line = "--protocol amb --batch 4 --set partitions=5,6 -o x.parquet --workers-processes 1"
    assert end("sim.sweep", *line.split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sim.sweep: no scenario of 2 could be simulated; x.parquet says why, first: --set partitions")
    assert err.count("\n") == 1
    assert len(pd.read_parquet("x.parquet")) == 2


def test_if_some_fail_the_command_counts_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    line = ["--protocol", "amb", "--batch", "4", "--set", "partitions=2,5", "-o", "x.parquet", *LINE]
    assert end("sim.sweep", *line, "--workers-processes", "1") == 0
    said = "x.parquet: 1 of 2 scenarios simulated, 1 could not be (see the column error)"
    assert capsys.readouterr().out.splitlines()[-1] == said


@pytest.mark.parametrize(
    ("block_s", "said"),
    [
        (results.BLOCK_S, "x.parquet could not be written (File too large)"),
        (0, "x.parquet.parts/part-000000.parquet could not be written (File too large); --resume goes on"),
    ],
)
def test_a_full_disk_is_one_line(block_s, said, tmp_path, monkeypatch, capsys):
    """A limit on the size of files stands for a disk that is full."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "BLOCK_S", block_s)
    line = ["--protocol", "fmb", *LINE, "--workers-processes", "1", "-o", "x.parquet"]
    with limited(1000):
        assert end("sim.sweep", *line) == 1
    assert capsys.readouterr().err == f"sim.sweep: {said}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", pools.LAUNCHED)
def test_copies_that_know_nothing_of_one_another_are_refused(name, tmp_path, monkeypatch, capsys):
    """They would write one file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, "3")
    assert end("sim.sweep", *LINE, "-o", "x.parquet") == 2
    assert "python -m mpi4py.futures -m sim.sweep" in capsys.readouterr().err
    monkeypatch.setenv(name, "1")
    assert end("sim.sweep", *LINE, "--protocol", "fmb", "--workers-processes", "1", "-o", "x.parquet") == 0


@pytest.mark.processes
def test_a_script_without_a_guard_is_told_so(tmp_path):
    """Its processes import it, and so would sweep again."""
    script = "from trainsim import Scenario, protocols, read_workload, sweep\n"
    script += "sweep([Scenario(protocols.make('fmb'), read_workload('mlp'))], 'x.parquet', processes=2)\n"
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "script.py"]
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr.splitlines()[-1].endswith(pools.UNGUARDED)
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_a_sweep_that_ends_before_its_first_row_leaves_nothing(tmp_path):
    job = jobs.of_scenario(Scenario(protocols.make("fmb"), read_workload("mlp"), steps=2), jobs.How())
    rows = Results(str(tmp_path / "t.parquet"), [job])
    rows.begin(resume=False)
    assert len(rows.finish()) == 0
    assert list(tmp_path.iterdir()) == []


def test_commas_within_brackets_cut_no_value(tmp_path):
    """The law that the help of --stragglers offers."""
    file = str(tmp_path / "laws.parquet")
    laws = ["none", "lognormal(mean=50ms, cv=1.5)", "niagara*0.01+slow-ranks(rank=[1,2],factor=1.3)"]
    line = ["--workers-processes", "1", "--protocol", "fmb", "--stragglers", ",".join(laws)]
    assert main([*LINE, *line, "-o", file]) == 0
    assert pd.read_parquet(file)["stragglers"].to_list() == laws


@pytest.mark.processes
def test_nobody_waits_for_what_is_under_way_when_time_is_over():
    with pools.Own(1) as pool:
        pool.submit(time.sleep, 3600)
        assert list(pools.rows([], pool, lambda: 0.0)) == []
