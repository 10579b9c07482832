"""`sim.run --sweep`: a row for each value, which says what was swept; resumed, drawn, or refused in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from test_commands import here, refused  # noqa: F401 here is a fixture

from sim.sweeps import pictures, pools

JOB = ["--protocol", "fmb", "--workload", "toy_fc", "--steps", "20", "--replications", "2"]
SWEEP = ["--sweep", "workers=1,2,4", "--sweep", "network.bandwidth=1 Gbit/s,10 Gbit/s"]


@pytest.fixture
def sweep(here, tmp_path, monkeypatch):  # noqa: F811
    """Runs the command in this process alone, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pools, "of_command", lambda _: pools.of_size(1))
    return lambda *words: here("sim.run", *JOB, *words)


def test_a_row_says_what_was_swept_and_is_what_the_job_alone_gives(sweep):
    done = sweep(*SWEEP, "-o", "grid.parquet")
    assert done.returncode == 0, done.stderr
    rows = pd.read_parquet("grid.parquet")
    assert list(rows["swept_workers"]) == ["1", "1", "2", "2", "4", "4"]
    assert list(rows["workers"]) == [1, 1, 2, 2, 4, 4]
    slow, fast = rows["samples_per_s"][4:6]
    assert slow < fast
    alone = json.loads(sweep("--workers", 4, "--what-if", "network.bandwidth=1 Gbit/s", "--json").stdout)
    assert slow == pytest.approx(alone["what_if"][0]["answer"]["samples_per_s"])
    assert "6 of 6 scenarios" in done.stdout


def test_rows_say_what_was_assumed(sweep, here):  # noqa: F811
    Path("mine.toml").write_text(
        'schema = "workload/1"\nname = "mine"\nparameters = 1000\nlayers = 1\nflops_per_sample = 1e9\nbatch = 8\n'
    )
    words = ["--protocol", "allreduce", "--workload", "mine.toml", "--cluster", "p3.8xlarge", "--replications", "1"]
    done = here("sim.run", *words, "--steps", "5", "--sweep", "hosts=1,2", "-o", "grid.parquet")
    assert done.returncode == 0, done.stderr
    rows = pd.read_parquet("grid.parquet")
    said = "assumed, as nobody said: --workers all ({}), --stragglers none"
    assert list(rows["assumed"]) == [said.format(4), said.format(8)]
    sweep("--sweep", "workers=1,2", "-o", "plain.parquet")
    assert pd.read_parquet("plain.parquet")["assumed"].isna().all()


def test_rows_need_no_file(sweep):
    done = sweep("--sweep", "workers=1,2")
    assert done.stdout.endswith("\n2 of 2 scenarios simulated\n")
    assert not list(Path().iterdir())


def test_it_goes_on_where_it_was(sweep):
    sweep("--sweep", "workers=1,2", "-o", "grid.parquet")
    first = pd.read_parquet("grid.parquet")
    again = sweep("--sweep", "workers=1,2", "-o", "grid.parquet", "--resume")
    assert again.returncode == 0
    assert pd.read_parquet("grid.parquet").equals(first)  # the seconds that it took too: nothing was simulated again
    assert "--resume" in refused(sweep("--sweep", "workers=1,2", "-o", "grid.parquet"))


def test_a_value_that_cannot_be_is_a_row_with_its_error(sweep):
    rows = json.loads(sweep("--sweep", "workers=2,-1", "-o", "grid.parquet", "--json").stdout)["rows"]
    assert rows[0]["error"] is None
    assert "--workers" in rows[1]["error"]


def test_throughput_and_efficiency_are_drawn(sweep):
    assert (
        sweep(
            "--sweep", "workers=1,2", "--sweep", "protocol=fmb,allreduce", "-o", "g.parquet", "--plot", "g.png"
        ).returncode
        == 0
    )
    assert Path("g.png").stat().st_size > 10_000
    line = pd.DataFrame({"samples_per_s": [100.0, 150.0], "workers": [1, 2]})
    assert list(pictures.efficiency(line)) == [1.0, 0.75]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sweep", "workers=1,2", "--resume"], "--output"),
        (
            ["--sweep", "workers=1,2", "--variable-partitions", "search"],
            "--variable-partitions: given 'search'; allowed: numbers",
        ),
        (["--sweep", "workers", "-o", "g.parquet"], "NAME=VALUE"),
        (["--sweep", "worker=1,2", "-o", "g.parquet"], "did you mean workers"),
        (["--sweep", "hosts.0.cuont=1,2", "-o", "g.parquet"], "count"),
        (["--sweep", "workers=1", "--sweep", "workers=2", "-o", "g.parquet"], "each name once"),
        (["--sweep", "workers=-1,-2", "-o", "g.parquet"], "possible scenarios"),
        (["--sweep", "workers=1", "-o", "g.csv"], ".parquet"),
        (["--sweep", "workers=1", "-o", "g.parquet", "--why"], "--why"),
        (["-o", "g.parquet"], "without --sweep"),
    ],
)
def test_what_is_wrong_is_one_line(sweep, words, said):
    assert said in refused(sweep(*words))
    assert not list(Path().iterdir())


def test_a_page_has_the_rows_and_says_which_is_the_fastest(sweep):
    words = ["--sweep", "workers=1,2,-1", "--sweep", "protocol=fmb,allreduce", "-o", "g.parquet", "--report", "g.html"]
    assert sweep(*words).returncode == 0
    text = Path("g.html").read_text()
    told = json.loads(text.partition('<script type="application/json" id="report">')[2].partition("</script>")[0])
    rows = pd.read_parquet("g.parquet")
    fastest = rows.loc[rows["samples_per_s"].idxmax()]
    assert [row["samples_per_s"] for row in told["rows"][:4]] == list(rows["samples_per_s"][:4])
    assert f"workers {fastest['swept_workers']}, protocol {fastest['swept_protocol']}" in text
    assert "2 could not be simulated" in text
    assert "--sweep workers=1,2,-1" in text
    assert "html" in refused(sweep("--sweep", "workers=1,2", "-o", "h.parquet", "--report", "h.txt"))
