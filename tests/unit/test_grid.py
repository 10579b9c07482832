"""The scenarios of a sweep, from a file and from a command line."""

import pandas as pd
import pytest
from processes import ROOT

from sim import options, sweep
from sim.base.errors import WrongSetting
from sim.sweeps import grid, jobs

HEAD = 'schema = "sweep/1"\n'


@pytest.fixture
def read(tmp_path):
    """The options of the scenarios of a file, after its schema."""

    def read_text(text: str, head: str = HEAD):
        (tmp_path / "grid.toml").write_text(head + text)
        return grid.crossed(grid.read(str(tmp_path / "grid.toml")), options.Readers())

    return read_text


def on_line(*words):
    given = sweep.parser().parse_args([*words, "-o", "x.parquet"])
    return grid.crossed([grid.table_of(given)], options.Readers())


def test_lists_are_crossed(read):
    found = read('[options]\nprotocol = ["fmb", "amb"]\nworkers = [4, 8, 16]\nsteps = 7\n')
    assert [(one.protocol, one.workers) for one in found] == [(p, w) for p in ("fmb", "amb") for w in (4, 8, 16)]
    assert {one.steps for one in found} == {7}
    assert {one.warmup for one in found} == {10}


def test_each_scenario_is_crossed_with_the_options(read):
    text = '[options]\nworkers = [1, 2]\nseed = 3\n[[scenarios]]\nprotocol = "fmb"\nseed = 4\n'
    text += '[[scenarios]]\nprotocol = "amb"\nset.time_limit_s = ["60 ms", 0.1]\n'
    found = [(one.protocol, one.workers, one.seed, one.set) for one in read(text)]
    limits = [["time_limit_s=60 ms"], ["time_limit_s=0.1"]]
    assert found == [("fmb", w, 4, []) for w in (1, 2)] + [("amb", w, 3, limit) for w in (1, 2) for limit in limits]


def test_without_options_there_is_one_scenario(read):
    assert len(read("")) == len(on_line()) == 1


def test_a_command_line_is_crossed_as_a_file_is(read):
    text = (
        '[options]\nprotocol = ["fmb", "amb"]\nworkers = [4, 8]\nbatch = 64\nworld = "event"\nset.partitions = [2, 4]\n'
    )
    line = on_line(
        *["--workers", "4,8", "--batch=64", "--world", "event", "--set", "partitions=2,4", "--protocol", "fmb,amb"]
    )
    assert sorted(map(str, map(vars, line))) == sorted(map(str, map(vars, read(text))))


def test_a_command_line_goes_before_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = '[options]\nsteps = 3\nwarmup = 1\n[[scenarios]]\nworkers = [1, 2]\nworkload = "mlp"\n'
    (tmp_path / "grid.toml").write_text(HEAD + text)
    line = "grid.toml --workers 3,4,5 --protocol fmb -o x.parquet --workers-processes 1"
    assert sweep.main(line.split()) == 0
    rows = pd.read_parquet("x.parquet")
    assert rows["workers"].tolist() == [3, 4, 5]
    assert set(rows["workload"]) == {"mlp"}
    *_, last = capsys.readouterr().out.splitlines()
    assert last == "x.parquet: 3 of 3 scenarios simulated"


def test_a_table_names_what_differs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    line = ["--workers=2", "--protocol=fmb,amb", "--cluster=p3.8xlarge", "--network=1 Gbit/s,20 Gbit/s"]
    line += ["--steps=3", "--replications=2", "--workers-processes=1", "-o", "x.parquet"]
    assert sweep.main(line) == 0
    heading, *rows, last = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["protocol", "network", "samples/s"]
    assert [row.split()[:3] for row in rows] == [[p, b, "Gbit/s,"] for p in ("fmb", "amb") for b in ("1", "20")]
    assert last == "x.parquet: 4 of 4 scenarios simulated"


def test_the_grid_of_the_guide_is_one(read):
    text = (ROOT / "docs" / "choose.md").read_text().split('```toml grid.toml\nschema = "sweep/1"\n')[1].split("```")[0]
    found = read(text)
    assert len(found) == 2 * 2 + 2 * 2
    read_once = options.Readers()
    assert [one.error for one in (jobs.of_options(one, read_once) for one in found)] == [None] * 8


WRONG = {
    "schema": ("", "", ["schema", "missing", "sweep/1"]),
    "syntax": (HEAD, "options = [", ["TOML"]),
    "key": (HEAD, "[option]\nworkers = 1\n", ["option", "did you mean options?"]),
    "no table": (HEAD, "options = 3\n", ["options", "3", "a table"]),
    "no tables": (HEAD, "scenarios = 3\n", ["scenarios", "3", "[[scenarios]]"]),
    "no table among them": (HEAD, "scenarios = [3]\n", ["scenario 1", "3", "a table"]),
    "option": (HEAD, "[options]\nworker = 1\n", ["options: worker", "did you mean workers?"]),
    "option of files": (HEAD, '[options]\ntrace = "t.parquet"\n', ["options: trace"]),
    "settings": (HEAD, '[options]\nset = ["partitions=2"]\n', ["options: set", "a table"]),
    "type": (HEAD, '[options]\nworkers = "ten"\n', ["options: workers", "'ten'", "an integer"]),
    "type in a list": (HEAD, "[options]\nworkers = [1, 2.5]\n", ["options: workers", "2.5", "an integer"]),
    "list in a list": (HEAD, "[options]\nworkers = [[1]]\n", ["options: workers", "[1]", "a list"]),
    "nothing": (HEAD, "[options]\nworkers = []\n", ["options: workers", "one or more"]),
    "choice": (HEAD, '[options]\nworld = ["event", "mars"]\n', ["options: world", "mars", "engine"]),
    "search": (HEAD, '[options]\nvariable_partitions = "search"\n', ["variable_partitions", "numbers"]),
    "protocol": (HEAD, '[options]\nprotocol = ["amb", "fbm"]\n', ["--protocol", "fbm", "did you mean fmb?"]),
    "cluster": (HEAD, '[options]\ncluster = "nowhere.toml"\n', ["--cluster", "nowhere.toml"]),
    "number of the scenario": (HEAD, "[[scenarios]]\n[[scenarios]]\nseed = -0.5\n", ["scenario 2: seed", "-0.5"]),
    "too many": (HEAD, f"[options]\nseed = {list(range(1001))}\nsteps = {list(range(1, 1001))}\n", ["1,001,000"]),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_file_is_one_line(what, read):
    head, text, words = WRONG[what]
    with pytest.raises(WrongSetting) as refused:
        read(text, head)
    line = str(refused.value)
    assert all(word in line for word in words), line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "4,x"], "--workers: given 'x'; allowed: an integer"),
        (["--workers", "4,"], "--workers: given ''"),
        (["--world", "event,mars"], "--world: given 'mars'; allowed: auto, event, engine"),
        (["--variable-partitions", "search"], "--variable-partitions: given 'search'; allowed: numbers"),
    ],
)
def test_what_is_wrong_with_a_command_line_is_one_line(words, said, capsys):
    with pytest.raises(SystemExit):
        on_line(*words)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("given", [["partitions"], ["=2"], ["partitions=2", "partitions=3"]])
def test_settings_on_a_command_line_have_a_name_and_values_once(given):
    with pytest.raises(WrongSetting, match="--set"):
        on_line(*(word for one in given for word in ("--set", one)))
