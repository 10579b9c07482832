"""Every example is run, and prints what stands beside it; run as a program, this writes it there."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sim import run

MODULE = "-m sim.run "
FOLDER = Path(__file__).parents[2] / "examples"
BLOCKS = re.findall(r"```\n(\$ python (.*?)\n)(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("line", "printed"),
    [block[1:] for block in BLOCKS],
    ids=[line.partition(" --stragglers")[0] for _, line, _ in BLOCKS],
)
def test_an_example_prints_what_stands_beside_it(line, printed, capsys, monkeypatch):
    """But for the seconds that it took."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("COLUMNS", "80")
    if line.startswith(MODULE):
        assert run.main(line.removeprefix(MODULE).split()) == 0
    else:
        runpy.run_path(line, run_name="__main__")
    assert timeless(capsys.readouterr().out) == timeless(printed)


def timeless(text: str) -> list[str]:
    return [" ".join(line.split()) for line in re.sub(r"wall time.*", "wall time", text).strip().splitlines()]


def test_every_file_is_in_an_example_and_has_five_lines():
    files = sorted(FOLDER.glob("*.toml"))
    shown = "".join(line for _, line, _ in BLOCKS)
    schemas = [tomllib.loads(path.read_text())["schema"] for path in files]
    assert sorted(schemas) == ["cluster/1"] * 4 + ["workload/1"] * 4
    for path in files:
        assert path.name in shown
        assert len(path.read_text().splitlines()) == 5
    programs = sorted(path.stem for path in FOLDER.glob("*.py"))
    assert programs == [name for name in programs if name in shown]
    text = "".join(printed for *_, printed in BLOCKS)
    assert [path.name for path in FOLDER.glob("laws/*.toml") if path.name not in text] == []


def write() -> None:
    """Put beside each example what it prints now."""
    text, environment = (
        (FOLDER / "README.md").read_text(),
        os.environ | {"COLUMNS": "80", "PYTHONPATH": str(FOLDER.parent)},
    )
    for command, line, before in BLOCKS:
        words = [sys.executable, *line.split()]
        done = subprocess.run(words, cwd=FOLDER, env=environment, capture_output=True, text=True, check=True)
        after = "".join(f"{one.rstrip()}\n" for one in done.stdout.splitlines())
        text = text.replace(f"{command}{before}", f"{command}{after}")
    (FOLDER / "README.md").write_text(text)


if __name__ == "__main__":
    write()
