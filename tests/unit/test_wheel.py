"""The wheel's one package: what its build writes into sources, and the names of `trainsim` for modules of `sim`."""

import ast
import runpy
import sys
from importlib import import_module
from itertools import pairwise

import pytest
import setuptools
from processes import ROOT

from sim.base import own

INNER = {"sim", "real", "calibration", "experiments"}


@pytest.fixture(scope="module")
def build():
    """The names of setup.py, which is run without its last call."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(setuptools, "setup", lambda **_: None)
        return runpy.run_path(str(ROOT / "setup.py"))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("from sim.x import y", "from trainsim.sim.x import y"),
        ("import sim  # é", "from trainsim import sim  # é"),
        ("import sim.x as y, os, real as z", "import trainsim.sim.x as y, os, trainsim.real as z"),
        ("é = 1; from  real import x", "é = 1; from  trainsim.real import x"),
        (
            "def f():\n    from sim import (\n        x,\n    )",
            "def f():\n    from trainsim.sim import (\n        x,\n    )",
        ),
        ("from simpy import x", "from simpy import x"),
        ("from .sim import x", "from .sim import x"),
        ("'''\nfrom sim import x\n'''", "'''\nfrom sim import x\n'''"),
    ],
)
def test_imports_are_written_anew(build, text, written):
    assert build["moved"](text.encode()).decode() == written


@pytest.mark.parametrize("text", ["import sim.x", "import os, sim"])
def test_an_import_that_would_give_another_name_is_refused(build, text):
    with pytest.raises(ValueError, match="line 1: import sim"):
        build["moved"](text.encode())


@pytest.mark.slow
def test_every_source_can_be_moved(build):
    """Its imports are of the forms that are moved, and no string names a module of ours that is imported or run."""
    assert set(build["INNER"]) == INNER
    for path in [path for package in INNER for path in (ROOT / package).rglob("*.py")]:
        text = path.read_text()
        build["moved"](text.encode())
        if any(word in text for word in ("import_module(", '"-m"', "startswith(", "files(")):
            assert unmoved(text) == [], path


def unmoved(text: str) -> list[str]:
    """Names of modules in strings, which would be others in a wheel."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "startswith", "files")):
            found += [ast.unparse(one).lstrip("f").strip("'\"") for one in node.args[:1]]
        if isinstance(node, ast.List):
            words = [one.value if isinstance(one, ast.Constant) else "" for one in node.elts]
            found += [str(after) for word, after in pairwise(words) if word == "-m"]
    return [name for name in found if "." in name and name.partition(".")[0] in INNER and name.islower()]


@pytest.mark.parametrize("text", ['x.startswith("sim.")', 'import_module("real.run")', '[python, "-m", "real.run"]'])
def test_a_name_in_a_string_is_found(text):
    assert unmoved(text)


@pytest.mark.parametrize("name", ["protocols", "protocols.check", "language.text", "texts.ddp", "laws", "base.ranges"])
def test_names_of_trainsim_are_the_same_modules(name):
    found, ours = import_module(f"trainsim.{name}"), import_module(f"sim.{name}")
    assert found is ours is sys.modules[f"trainsim.{name}"]
    assert ours.__spec__.name == ours.__name__ == f"sim.{name}"


@pytest.mark.parametrize("name", ["trainsim.laws.nothing", "trainsim.event", "trainsim.basement"])
def test_there_are_no_others(name):
    with pytest.raises(ModuleNotFoundError):
        import_module(name)


def test_a_file_for_the_source_tree_is_told_where_to_import_from(monkeypatch):
    error = ModuleNotFoundError("No module named 'sim'", name="sim")
    assert own._moved(error) == ""
    monkeypatch.setattr(own, "PACKAGE", "trainsim.")
    assert "trainsim.language" in own._moved(error)
    assert own._moved(ModuleNotFoundError("No module named 'sin'", name="sin")) == ""
