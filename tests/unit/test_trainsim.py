"""The command `trainsim`: its table, its lists, whose packages it loads, and what is said where a library is not installed."""

import configparser
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from processes import ROOT

from experiments.run import QUESTIONS
from sim import command, stragglers
from sim.base import home
from sim.language.collectives import NAMES
from sim.laws import KINDS as LAWS
from sim.protocols import PROTOCOLS
from sim.version import VERSION
from trainsim import listing, main
from trainsim.commands import COMMANDS

DRAWING = ("plot", "timeline")  # whose modules are made of arrays
REGISTRIES = {
    "protocols": PROTOCOLS,
    "laws": [*stragglers.NAMED, *stragglers.RECORDED, *LAWS],
    "collectives": NAMES,
    "experiments": QUESTIONS,
}
QUICK = ("run", "--protocol", "fmb", "--workers", "2", "--steps", "3", "--warmup", "1", "--replications", "1")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """What the command leaves there for processes that it starts goes when a test ends."""
    for name in (command.CALLED, "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, "")


def said(capsys, *words: str, code: int = 0) -> str:
    """What the command says in this process."""
    with pytest.raises(SystemExit) as ended:
        command.run(main.program(list(words)), lambda: main.main(list(words)))
    out, err = capsys.readouterr()
    assert ended.value.code == code, err
    return err if code else out


def started(*words: str, folder: Path, options: tuple[str, ...] = ("-m", "trainsim")) -> subprocess.CompletedProcess:
    """The command in a process of its own, whose current folder is another one."""
    line = [sys.executable, *options, *words]
    known = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": ""}
    return subprocess.run(line, cwd=folder, env=known, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_there(name, capsys):
    module = import_module(COMMANDS[name].module)
    assert callable(module.main)
    assert said(capsys, name, "--help").startswith(f"usage: trainsim {name}")
    assert name in said(capsys, "--help")


def test_without_a_command_it_lists_them(capsys):
    assert all(f"  {name} " in said(capsys) for name in COMMANDS)
    assert said(capsys, "--version") == f"trainsim {VERSION}\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("rum",), "trainsim: COMMAND: given 'rum'"),
        (("run", "--protocol", "abm"), "trainsim run: --protocol: given 'abm'"),
        (("run", "--protcol", "amb"), "trainsim run: '--protcol' is no option"),
        (("list", "protocol"), "trainsim list: kind: given 'protocol'"),
        (("list", "protocols", "abm"), "trainsim list: protocols: given 'abm'"),
    ],
)
def test_complaints_are_one_line_under_the_name_that_was_typed(words, line, capsys):
    complaint = said(capsys, *words, code=2)
    assert complaint.startswith(line)
    assert "did you mean " in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("kind", REGISTRIES)
def test_lists_have_all_that_has_a_name(kind, capsys):
    lines = [line for line in said(capsys, "list", kind).splitlines() if not line.startswith(" ")]
    names = list(REGISTRIES[kind])
    assert len(lines) == len(names)
    for line, name in zip(lines, names, strict=True):
        assert line.startswith(f"{name} ")
        assert line.removeprefix(name).strip()
    assert said(capsys, "list", kind, names[-1]).startswith(names[-1])


def test_each_kind_is_listed(capsys):
    assert listing.KINDS.keys() == REGISTRIES.keys()
    assert [line.split()[0] for line in said(capsys, "list").splitlines()] == list(listing.KINDS)


def test_settings_are_those_that_can_be_set(capsys):
    assert "time_limit_s=0.06, partitions=16" in said(capsys, "list", "protocols")
    assert "seconds that a worker computes in each step" in said(capsys, "list", "protocols", "amb")


@pytest.mark.processes
def test_packages_of_the_user_do_not_hide_ours(tmp_path):
    for name in ("sim", "real", "trainsim_user"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    found = started("list", "collectives", folder=tmp_path)
    assert "halving-doubling" in found.stdout, found.stderr


@pytest.mark.processes
def test_a_module_of_the_current_folder_is_found(tmp_path):
    """By a console script too, for which Python does not look there."""
    (tmp_path / "mine.py").write_text(
        "from sim.texts import FixedMinibatch\n\n\nclass Mine(FixedMinibatch):\n    name = 'mine'\n"
    )
    script = "from trainsim.main import entry; entry()"
    words = [word if word != "fmb" else "mine:Mine" for word in QUICK]
    found = started(*words, folder=tmp_path, options=("-P", "-c", script))
    assert found.stdout.startswith("mine:Mine, toy_fc"), found.stderr


def test_processes_that_it_starts_load_ours(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said(capsys, "list")
    assert os.environ["PYTHONSAFEPATH"] == "1"
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    monkeypatch.chdir(ROOT)
    said(capsys, "list")
    assert not os.environ["PYTHONSAFEPATH"]  # the checkout is where ours are


@pytest.mark.processes
def test_help_loads_no_arrays():
    names = [name for name in COMMANDS if name not in DRAWING]
    script = (
        "import contextlib, io, sys\n"
        "from trainsim.main import main\n"
        f"for name in {names}:\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "        main([name, '--help'])\n"
        "    if 'numpy' in sys.modules:\n"
        "        sys.exit(name)\n"
    )
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


WITHOUT = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {gone!r}:
            raise ModuleNotFoundError(name, name=name.partition(".")[0])
sys.meta_path.insert(0, Gone())
from trainsim.main import main
from sim import command
for words in {lines!r}:
    try:
        command.run("trainsim", lambda: main(words))
    except SystemExit as end:
        print(end.code)
"""


@pytest.mark.processes
def test_what_is_not_installed_is_one_line_with_its_extra(tmp_path):
    """The core answers without it, and a first answer without SciPy, which takes longer to load than the answer."""
    asked = {("run", "--trace", "x.parquet"): "tables", ("sweep", "--workers", "2,3", "-o", "x.parquet"): "tables"}
    gone = {"pyarrow", "matplotlib", "scipy"}
    script = WITHOUT.format(gone=gone, lines=[list(QUICK), *map(list, asked)])
    found = started(folder=tmp_path, options=("-c", script))
    assert found.stdout.splitlines()[-len(asked) - 1 :] == ["0", *["2"] * len(asked)]
    lines = found.stderr.splitlines()
    assert len(lines) == len(asked)
    for line, extra in zip(lines, asked.values(), strict=True):
        assert re.fullmatch(rf"trainsim: this needs \w+: pip install 'anytime-trainsim\[{extra}\]'", line)
    assert not list(tmp_path.iterdir())


def test_extras_are_those_of_the_package():
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    modules = {"scikit-learn": "sklearn", "tensorflow-cpu": "tensorflow"}
    named = {
        (modules.get(name, name), extra)
        for extra, wanted in settings["options.extras_require"].items()
        for name in re.findall(r"^([a-z0-9_-]+)(?=[>=])", wanted.replace(" ", ""), re.MULTILINE)
    }
    assert set(home.EXTRAS.items()) <= named
    core = settings["options"]["install_requires"]
    assert not [name for name in home.EXTRAS if f"\n{name}" in core]
    assert settings["metadata"]["name"] == home.DISTRIBUTION
