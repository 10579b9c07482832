"""What commands write: a file or a stdout that does not take it is one line, and nothing half-written is left."""

import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from processes import ROOT

from sim import command
from sim.base import files
from sim.recording import traces

QUICK = ("--steps", "2", "--replications", "1", "--stragglers", "none")
WRITES = {  # by command and option: the words around a file's name, and its ending
    ("sim.run", "--trace"): ([], ".jsonl"),
    ("sim.run", "--report"): ([], ".html"),
    ("sim.sweep", "--output"): ([], ".parquet"),
    ("sim.plan", "--output"): (["--samples-per-s", "10"], ".csv"),
    ("sim.plan", "--report"): (["--samples-per-s", "10"], ".html"),
    ("real.run", "--trace"): ([], ".jsonl"),
    ("real.run", "--parameters"): ([], ".npz"),
    ("real.probe", "--output"): ([], ".json"),
    ("real.campaign", "--probe"): (["cells.json"], ".json"),
    ("calibration.fit", "--output"): (["t.jsonl"], ".toml"),
    ("real.calibrate", "--output"): ([], ".toml"),
    ("sim.timeline", "--output"): (["t.jsonl"], ".json"),
    ("sim.plot", "--output"): (["t.jsonl"], ".png"),
    ("sim.workloads", "--output"): (["from", "config.json"], ".toml"),
    ("calibration.laws", "--output"): (["t.jsonl"], ".toml"),
    ("experiments.run", "--out"): (["seeds"], ""),
    ("experiments.run", "--keep"): (["seeds"], ".json"),
}
PLACES = {
    "no folder": "no/where/x{ending}",
    "folder": "folder{ending}",
    "device": "/dev/full",
    "folder that takes no file": "/proc/file{ending}",
    "no name": "",
    "long name": "n" * 300 + "{ending}",
    "file in a file": "cells.json/file{ending}",
}


@pytest.fixture
def folder(tmp_path, monkeypatch, trace):
    """A working folder with a trace and a campaign."""
    monkeypatch.chdir(tmp_path)
    trace.write("t.jsonl")
    Path("cells.json").write_text(json.dumps([["--trace", "real.parquet"]]))
    return tmp_path


def end(module: str, *words: str) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        command.run(module, lambda: import_module(module).main([*words]))
    return ended.value.code


def refused(module: str, words: list[str], capsys) -> str:
    assert end(module, *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{module}: ")
    assert err.count("\n") == 1, err
    return err


FOLDER = ("experiments.run", "--out")  # which is made
OPTIONS = [
    (option, what) for option in WRITES for what in ("no folder", "device") if (option, what) != (FOLDER, "no folder")
]
OPTIONS += [(option, what) for option in (("sim.run", "--trace"), ("real.calibrate", "--output")) for what in PLACES]


@pytest.mark.parametrize(("option", "what"), dict.fromkeys(OPTIONS), ids=str)
def test_what_cannot_be_written_is_refused_before_any_work(option, what, folder, capsys):
    (module, name), (words, ending) = option, WRITES[option]
    path = PLACES[what].format(ending=ending)
    if what == "folder":
        Path(path).mkdir()
    before = sorted(folder.rglob("*"))
    line = refused(module, [*words, name, path], capsys)
    assert name in line
    assert what != "no folder" or "a folder that exists" in line
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        ["sim.run", "--trace", "a.jsonl", "--report", "link/a.jsonl"],
        ["sim.run", "--cluster", "t.jsonl", "--trace", "t.jsonl"],
        ["sim.sweep", "t.jsonl", "-o", "link/t.jsonl"],
        ["real.run", "--trace", "a.jsonl", "--parameters", "./a.jsonl"],
        ["real.campaign", "cells.json", "--probe", "cells.json"],
        ["real.campaign", "cells.json", "--probe", "real.parquet"],
        ["calibration.fit", "t.jsonl", "-o", "t.jsonl"],
        ["sim.timeline", "t.jsonl", "-o", "link/t.jsonl"],
    ],
    ids=" ".join,
)
def test_no_file_is_written_over_another_of_the_same_command(words, folder, capsys):
    Path("link").symlink_to(folder)
    assert "otherwise" in refused(words[0], words[1:], capsys)


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet", "t.html"])
def test_a_full_disk_is_one_line_and_leaves_nothing(name, tmp_path, monkeypatch, capsys):
    """A limit on the size of files stands for a disk that is full."""
    monkeypatch.chdir(tmp_path)
    option = "--report" if name == "t.html" else "--trace"
    with limited(1000):
        assert end("sim.run", *QUICK, option, name) == 1
    assert capsys.readouterr().err == f"sim.run: {name} could not be written (File too large)\n"
    assert list(tmp_path.iterdir()) == []


@contextmanager
def limited(most: int) -> Iterator[None]:
    """Within it, no file of this process and of those that begin in it grows larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def child(*words, stdout=subprocess.PIPE, **settings) -> subprocess.CompletedProcess:
    """A process whose stdout is buffered, as users' are."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environment["PYTHONPATH"] = str(ROOT)
    line, pipe = [sys.executable, "-m", *map(str, words)], subprocess.PIPE
    return subprocess.run(line, stdout=stdout, stderr=pipe, text=True, env=environment, check=False, **settings)


SPEAKS = {
    "an answer": ("sim.run", *QUICK, "--json"),
    "a page": ("sim.run", *QUICK),
    "help": ("sim.run", "--help"),
    "all commands": ("trainsim.main", "--help"),
    "a version": ("trainsim.main", "--version"),
    "a list": ("experiments.run",),
    "what was fitted": ("calibration.fit", "t.jsonl", "-o", "p.toml"),
}


@pytest.mark.parametrize("what", SPEAKS)
@pytest.mark.parametrize(("stdout", "said"), [("full", "stdout: No space left on device"), ("closed", "")])
def test_a_full_stdout_is_one_line_and_a_closed_pipe_ends_quietly(what, stdout, said, folder, monkeypatch, capsys):
    if what == "what was fitted":
        write_fitted()
    capsys.readouterr()
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "w") as full, open(writer, "w") as closed:
        monkeypatch.setattr(sys, "stdout", {"full": full, "closed": closed}[stdout])
        assert end(*SPEAKS[what]) == 1
        monkeypatch.undo()
    assert capsys.readouterr().err == (f"{SPEAKS[what][0]}: {said}\n" if said else "")


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_files_are_written_though_the_reader_has_gone(words, tmp_path, monkeypatch, capsys):
    """As of `sim.plan ... -o a.csv --report a.html | head -2`, which wrote neither."""
    from sim.plans import plan, show

    def prints(found):
        from rich.console import Console

        for _ in range(3):  # a page's lines
            Console().print("x")

    found = SimpleNamespace(met=True, to_json=lambda: "x", to_frame=lambda: pd.DataFrame([{"batch": 3}]))
    monkeypatch.setattr(plan, "answer", lambda *given: found)
    monkeypatch.setattr(show, "show", prints)
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert end("sim.plan", "--samples-per-s", "1", *words, "-o", str(tmp_path / "a.csv")) == 1
        monkeypatch.undo()
    assert (tmp_path / "a.csv").read_text() == "batch\n3\n"
    assert capsys.readouterr().err == ""


def test_a_current_folder_that_is_gone_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert end("sim.run", "--steps", "2", "--trace", "t.jsonl") != 0
    assert "the current folder" in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.parametrize("stdout", ["full", "closed"])
def test_python_itself_says_nothing_more_as_the_process_ends(stdout, tmp_path):
    """Of a stdout that has not taken all."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed, open("/dev/full", "w") as full:
        done = child(*SPEAKS["an answer"], stdout={"full": full, "closed": closed}[stdout], cwd=tmp_path)
    said = {"full": "sim.run: stdout: No space left on device\n", "closed": ""}[stdout]
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.processes
@pytest.mark.parametrize("closed", [1, 2])
def test_a_stream_that_is_closed(closed, tmp_path):
    """Nobody gets an answer where stdout is closed; without stderr nobody is told how far it has come."""
    done = child(*SPEAKS["an answer"], cwd=tmp_path, preexec_fn=lambda: os.close(closed))
    if closed == 1:
        assert (done.returncode, done.stderr) == (1, "sim.run: stdout: Bad file descriptor\n")
    else:
        assert (done.returncode, json.loads(done.stdout)["schema"]) == (0, "answer/1")


def test_a_character_that_a_terminal_does_not_have_is_a_question_mark(tmp_path, monkeypatch):
    Path(tmp_path / "c.toml").write_text('schema = "cluster/1"\nname = "\u2603"\nhosts = [{ count = 4 }]\n')
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
    assert end("sim.run", *QUICK, "--cluster", str(tmp_path / "c.toml")) == 0
    assert b"no stragglers; ?; " in written.getvalue()


@pytest.mark.parametrize(
    ("name", "given"), [("COLUMNS", "\xb2"), ("COLUMNS", "0"), ("LINES", "\xb2"), ("MPLBACKEND", "x")]
)
def test_a_variable_that_libraries_choke_on(name, given, tmp_path, monkeypatch):
    from sim.base import terminal

    monkeypatch.setenv(name, given)
    terminal.prepare()
    assert os.environ.get(name) == ("agg" if name == "MPLBACKEND" else None)


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_a_new_file_has_the_mode_that_the_umask_leaves(umask, mode, tmp_path):
    before = os.umask(umask)
    try:
        files.write_text(tmp_path / "a.txt", "a")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == mode


def test_an_old_file_keeps_its_mode(tmp_path):
    (tmp_path / "a.txt").touch()
    (tmp_path / "a.txt").chmod(0o640)
    files.write_text(tmp_path / "a.txt", "new")
    assert ((tmp_path / "a.txt").read_text(), (tmp_path / "a.txt").stat().st_mode & 0o777) == ("new", 0o640)


def test_a_file_that_may_not_be_written_stays(folder, monkeypatch, capsys):
    """As `open` refuses it; a user protects results so. Root may write all."""
    Path("x.jsonl").touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "this one is read-only" in refused("sim.run", [*QUICK, "--trace", "x.jsonl"], capsys)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_file_is_written(there, tmp_path, monkeypatch):
    """Users keep links to the latest results, and results on another disk."""
    monkeypatch.chdir(tmp_path)
    Path("disk").mkdir()
    Path("latest.jsonl").symlink_to("disk/t.jsonl")
    if there:
        Path("disk/t.jsonl").write_text("old")
    assert end("sim.run", *QUICK, "--json", "--trace", "latest.jsonl") == 0
    assert Path("latest.jsonl").is_symlink()
    assert traces.read("disk/t.jsonl").header.steps == 2
    assert sorted(path.name for path in Path("disk").iterdir()) == ["t.jsonl"]


def test_text_is_written_whatever_the_locale(tmp_path, monkeypatch):
    """As UTF-8; a name that is no text, of a file that is named by other bytes, has question marks."""
    monkeypatch.setattr("locale.getencoding", lambda: "ascii")
    files.write_text(tmp_path / "a.txt", "\u2603 \udcff")
    assert (tmp_path / "a.txt").read_bytes() == "\u2603 ?".encode()


@pytest.mark.parametrize("option", [one for one in WRITES if one != FOLDER], ids=" ".join)
def test_another_ending_is_refused_before_any_work(option, folder, capsys):
    (module, name), (words, _) = option, WRITES[option]
    assert "a name that ends in ." in refused(module, [*words, name, "x.other"], capsys)


@pytest.mark.processes
def test_a_refusal_is_said_though_stdout_is_full():
    with open("/dev/full", "w") as full:
        done = child("sim.run", "--protocol", "abm", stdout=full, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.startswith("sim.run: --protocol: given 'abm'")


def write_fitted() -> None:
    """t.jsonl becomes a trace that can be fitted."""
    job = ("--protocol", "fmb", "--workload", "mlp", "--workers", "1", "--stragglers", "none", "--steps", "9")
    assert end("sim.run", *job, "--replications", "1", "--json", "--trace", "t.jsonl") == 0
    assert traces.read("t.jsonl").header.steps == 9
