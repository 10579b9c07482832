"""README.md and docs/ as text: commands have the options that pages name, and built pages have all of the code and kept results."""

import json
import re
import shlex
import subprocess
import sys
from datetime import date
from functools import cache
from importlib import import_module
from inspect import isfunction, ismodule
from pathlib import Path

import pytest
from documents import PAGES, ROOT, fences
from test_commands import COMMANDS

import trainsim
from experiments import run
from experiments.kit import kept, pages
from sim.base.errors import WrongSetting
from sim.language import collectives, verbs
from sim.protocols import PROTOCOLS
from sim.version import VERSION
from trainsim.commands import COMMANDS as OF_TRAINSIM

sys.path.append(str(ROOT / "docs" / "generating"))
import blocks
import results

KNOWN = {*COMMANDS, *(command.module for command in OF_TRAINSIM.values())}
MODULE = re.compile(r".*?\b(?:python (?:-m mpi4py )?-m (\S+)|trainsim (\S+))(.*)")
OTHERS = ("torchrun ", "cat ")  # commands of others
LINES = [
    (page, line)
    for page in PAGES
    for fence in fences(page)
    for line, _ in fence.commands()
    if not line.startswith(OTHERS)
]
DATA = sorted((ROOT / "docs" / "data").glob("*.json"))


@pytest.mark.parametrize(("page", "line"), LINES, ids=[line[:60] for _, line in LINES])
def test_a_command_has_the_options_that_a_page_names(page, line):
    module, name, words = MODULE.match(line).groups()
    module = module or OF_TRAINSIM[name].module
    assert module in KNOWN
    words = [word for word in shlex.split(words.partition(" > ")[0]) if word not in ("2>&1", "||", "true")]
    import_module(module).parser().parse_args(words)


def test_the_readme_is_short_and_has_the_table_of_the_results():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 130
    assert results.summary() in text, "python docs/generating/results.py prints it"


def test_package_citation_and_changelog_name_one_version():
    said = {
        "CITATION.cff": r"^version: (\S+)$",
        "CHANGELOG.md": r"^## (\d\S*)",
        "setup.cfg": r"^version = attr: sim\.version\.(VERSION)$",
    }
    found = {name: re.search(line, (ROOT / name).read_text(), re.MULTILINE)[1] for name, line in said.items()}
    assert found == {"CITATION.cff": VERSION, "CHANGELOG.md": VERSION, "setup.cfg": "VERSION"}
    dated = {"CITATION.cff": r"^date-released: (\S+)$", "CHANGELOG.md": rf"^## {re.escape(VERSION)} - (\S+)$"}
    days = [re.search(line, (ROOT / name).read_text(), re.MULTILINE)[1] for name, line in dated.items()]
    assert days[0] == days[1] == date.fromisoformat(days[0]).isoformat()


@pytest.mark.parametrize("path", DATA, ids=[path.stem for path in DATA])
def test_a_kept_result_says_what_was_run_when_and_on_what(path):
    found = kept.read(path)
    assert found.experiment == path.stem
    asked = {"evidence": " --held-out", "testbed": " --resume"}.get(
        path.stem, "" if path.stem in run.QUESTIONS else r" \(at commit \w{8}\)"
    )
    assert re.fullmatch(f"python -m experiments\\.run {path.stem}{asked}", found.command)
    assert path.stem not in run.QUESTIONS or found.fitted == run.QUESTIONS[path.stem].fitted
    assert all(len(row) == len(table.columns) for table in found.tables for row in table.rows)
    assert f"{found.date}" in results.page(path.stem)
    assert not re.search(r"(?<![\w.])/(home|root|tmp|work|usr|opt)/", path.read_text())  # a machine's own paths


@cache
def _built(name: str) -> str:
    """A page as Sphinx reads it."""
    return blocks.written((ROOT / "docs" / name).read_text())


def _headings(name: str) -> set[str]:
    """Names that a page has as it is built, without signatures."""
    return set(re.findall(r"^#+ `?([\w.-]+)", _built(name), re.MULTILINE))


def test_every_kept_result_and_every_protocol_has_its_place():
    assert {path.stem for path in DATA} <= _headings("results.md")
    assert set(PROTOCOLS) <= _headings("reference/protocols.md")


def test_every_command_has_its_place():
    assert all(f"| `{module}` |" in _built("reference/commands.md") for module in KNOWN)
    assert _built("reference/commands.md").count("\nusage: ") == len(OF_TRAINSIM)


def test_every_verb_and_every_public_name_has_its_place():
    public = {name for name in trainsim.__all__ if not ismodule(getattr(trainsim, name))}
    found = {
        name.removeprefix("trainsim.") for name in _headings("reference/python.md") | _headings("reference/files.md")
    }
    assert public <= found
    functions = {
        f"{of.__name__}.{name}" for of in (verbs, collectives) for name in dir(of) if isfunction(getattr(of, name))
    }
    assert functions <= _headings("reference/verbs.md")


def test_every_file_of_python_that_a_document_names_is_there_and_has_the_names_beside_it():
    here = [str(path) for pattern in ("*.py", "[!.]*/**/*.py") for path in ROOT.glob(pattern)]
    for page in {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "CHANGELOG.md"}:
        for name, beside in re.findall(r"`([\w./]+\.py)`(?: \(`(\w+)`)?", page.read_text()):
            files = [Path(path) for path in here if path.endswith(f"/{name}")]
            assert any(beside in path.read_text() for path in files), (page.name, name, beside)


def test_a_comment_that_no_writer_answers_is_refused():
    with pytest.raises(KeyError, match="tables"):
        blocks.written("<!-- tables -->\n")


def test_a_page_can_be_read_in_a_clone():
    directives = {
        name for page in PAGES for name in re.findall(r"^(?:```|:::)\{([\w-]+)\}", page.read_text(), re.MULTILINE)
    }
    assert directives <= {"toctree", "picture"}
    assert not [page for page in PAGES if re.search(r"\{(doc|ref|term)\}`", page.read_text())]


def test_what_is_shown_is_kept(tmp_path, monkeypatch, capsys):
    table = pages.table("Title", "one\nheading", "another")
    table.add_row("1.5%", "[2 of 3]")
    monkeypatch.setattr("experiments.seeds.run", lambda out, seed: pages.show(table, "a line", f"Files: {out}"))
    words = ["seeds", "--out", str(tmp_path / "out"), "--keep", str(tmp_path / "kept.json"), "--seed", "1"]
    assert run.main(words) == 0
    found = kept.read(tmp_path / "kept.json")
    assert found.command == "python -m experiments.run seeds --seed 1"
    assert found.shown == [
        kept.Table(title="Title", columns=["one heading", "another"], rows=[["1.5%", "[2 of 3]"]]),
        "a line",
        "Files: results/seeds",
    ]
    assert "a line" in capsys.readouterr().out


def test_a_result_with_a_key_too_many_is_refused(tmp_path):
    table = json.loads(DATA[0].read_text()) | {"fit": "all"}
    (tmp_path / "kept.json").write_text(json.dumps(table))
    with pytest.raises(WrongSetting, match="fit"):
        kept.read(tmp_path / "kept.json")


@pytest.mark.parametrize("fence", [one for page in PAGES for one in fences(page) if one.language == "bash"])
def test_a_script_can_be_read_by_bash(fence):
    done = subprocess.run(["bash", "-n"], input=fence.text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
