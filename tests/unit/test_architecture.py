"""Rules that hold for all files: who imports whom, what loads lightly, names, nothing left to do."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from processes import ROOT

MAY_IMPORT = {
    "sim": set(),
    "real": {"sim"},
    "calibration": {"sim"},
    "experiments": {"sim", "real", "calibration"},
    "trainsim": {"sim", "real", "calibration", "experiments"},
}
SOURCES = sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))
# Of sim/, folders and modules beside them. Each imports from floors before its own; those of one floor know nothing of one another. Others
# are commands, above them all.
FLOORS = [
    rooms.split()
    for rooms in (
        "base version",
        "command efficiency inline laws zoo",
        "model",
        "platform",
        "language",
        "texts",
        "protocols",
        "job",
        "needs recording",
        "answers stragglers timeline",
        "options plot report runs",
        "simulated_options simulation",
        "__init__ sweeps",
        "studies",
        "plans",
    )
]
COMMANDS = {"sim.protocols.check"}  # that stand in a folder
LIGHT = ("sim.recording.traces", "sim.platform.cluster", "sim.protocols", "sim.model.workload", "sim.answers.outcome")
LIGHT += ("sim.answers.summary", "sim.timeline", "sim.sweep")
HEAVY = ("simpy", "mpi4py", "tensorflow", "pandas", "matplotlib", "scipy", "rich", "pint", "pyarrow", "asyncio")
UNFINISHED = ("TO" + "DO", "FIX" + "ME")  # in two parts, or this file would be found


def imported(text: str) -> set[str]:
    """The top-level names that a module imports, inside functions too."""
    return {name.partition(".")[0] for name in modules(text)}


def forbidden(package: str, text: str) -> set[str]:
    """The imports of ours that a module of `package` must not make."""
    others = set(MAY_IMPORT) - MAY_IMPORT[package] - {package}
    named = re.search(rf"^\s*(import|from) ({'|'.join(others)})\b", text, re.MULTILINE)  # or there is nothing to parse
    return imported(text) & others if named else set()


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


SIM = {name: path for path in SOURCES if (name := dotted(path)).partition(".")[0] == "sim"}


def place(module: str) -> tuple[int, str]:
    """The floor of a module of sim/, and its room there."""
    room = module if module in COMMANDS else [*module.split("."), "__init__"][1]
    return next((floor for floor, rooms in enumerate(FLOORS) if room in rooms), len(FLOORS)), room


def upward(module: str, text: str) -> set[tuple[str, str]]:
    """The imports of a module of sim/ from its own floor or one above, but from its own room; inside functions and for types too."""
    asked = {one if one in SIM else named for named, several in imports(text).items() for one in several}
    floor, room = place(module)
    return {(module, one) for one in asked & SIM.keys() if place(one)[0] >= floor and place(one)[1] != room}


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_import_arrows():
    wrong = {path: forbidden(path.relative_to(ROOT).parts[0], path.read_text()) for path in SOURCES}
    assert {str(path): imports for path, imports in wrong.items() if imports} == {}


@pytest.mark.parametrize(
    ("package", "text"),
    [
        ("sim", "import real.run"),
        ("sim", "def f():\n    from calibration.fit import main"),
        ("calibration", "from real import probe"),
        ("real", "if True:\n    import experiments"),
    ],
)
def test_a_wrong_arrow_is_found(package, text):
    assert forbidden(package, text)


def test_no_import_goes_up():
    assert {pair for module, path in SIM.items() for pair in upward(module, path.read_text())} == set()


def test_every_folder_has_a_floor():
    folders = {path.parent.name for path in (ROOT / "sim").glob("*/__init__.py")}
    assert folders <= {room for rooms in FLOORS for room in rooms}


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("sim.laws.base", "def f():\n    from sim.job.scenario import Scenario"),
        ("sim.base.files", "import sim.model.costs"),
        ("sim.runs.job", "from sim import simulate"),
        ("sim.platform.cluster", "from sim.language.job import Job"),
        ("sim.protocols", "if TYPE_CHECKING:\n    from sim.protocols.check import parser"),
    ],
)
def test_an_import_that_goes_up_is_found(module, text):
    assert upward(module, text)


@pytest.mark.processes
def test_the_words_load_without_what_is_heavy():
    code = f"import sys, {', '.join(LIGHT)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert not set(HEAVY).intersection(loaded.split())


def test_the_worlds_are_run_by_one_function():
    """Commands, experiments and calibration simulate by `sim.simulation.simulate`."""
    running = {
        str(p.relative_to(ROOT))
        for p in SOURCES
        if "runs" not in p.parts
        and "Replications" in (text := p.read_text())  # or there is nothing to parse
        and "sim.runs.replications.Replications" in modules(text)
    }
    assert running == {"sim/simulation.py"}


@cache
def imports(text: str) -> dict[str, list[str]]:
    """The modules that a module imports, inside functions too; and of `from a import b` also a.b, which may be one."""
    found = defaultdict(list)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.name].append(alias.name)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found[node.module] += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def modules(text: str) -> set[str]:
    return {one for named, several in imports(text).items() for one in (named, *several)}


def test_mpi_is_imported_where_it_is_needed_only():
    """The simulator loads without it."""
    for path in (path for path in (ROOT / "sim").rglob("*.py") if "mpi4py" in path.read_text()):
        outside = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert "mpi4py" not in imported("\n".join(map(ast.unparse, outside))), path


def test_no_module_shadows_the_standard_library():
    assert not {path.stem for path in SOURCES}.intersection(sys.stdlib_module_names)


def test_nothing_is_left_to_do():
    files = {path: path.read_bytes() for path in tracked()}
    unfinished = [str(p.relative_to(ROOT)) for p, text in files.items() for word in UNFINISHED if word.encode() in text]
    assert not unfinished


def test_every_package_is_installed():
    """An editable install works without; another would miss the folder."""
    import configparser

    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    folders = {path.parent.relative_to(ROOT) for top in MAY_IMPORT for path in (ROOT / top).rglob("__init__.py")}
    assert set(settings["options"]["packages"].split()) == {".".join(folder.parts) for folder in folders}


def test_every_data_file_is_installed():
    """Those that are read: workloads and figures."""
    import configparser
    from fnmatch import fnmatch

    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    patterns = [
        f"{package.replace('.', '/')}/{pattern}"
        for package, several in settings["options.package_data"].items()
        for pattern in several.strip().splitlines()  # as setuptools reads them: a blank is part of a pattern
    ]
    files = [
        str(p.relative_to(ROOT))
        for top in MAY_IMPORT
        for end in ("toml", "csv")
        for p in (ROOT / top).rglob(f"*.{end}")
    ]
    files += [f"{top}/py.typed" for top in MAY_IMPORT] + ["real/libraries/horovod.sh"]
    files += [str(p.relative_to(ROOT)) for p in ROOT.glob("experiments/**/*.?pp")]
    assert len(files) > 15
    assert not [name for name in files if not any(fnmatch(name, pattern) for pattern in patterns)]
