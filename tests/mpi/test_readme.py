"""The README's commands, run as written in an empty folder, one after another."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def commands() -> list[str]:
    """Of the section on use, each line of its first block."""
    block = README.split("## Use it")[1].split("```")[1]
    return [line.partition("#")[0].strip() for line in block.strip().splitlines()]


def run(line: str, folder: Path) -> subprocess.CompletedProcess:
    words = [sys.executable, *shlex.split(line)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment, timeout=300, check=False)


def test_the_commands_of_the_readme_work(tmp_path):
    lines = commands()
    assert len(lines) >= 8
    for line in lines:
        done = run(line, tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr}"
    assert {"run.json", "run.png", "probe.json", "profile.toml"} <= {path.name for path in tmp_path.iterdir()}


def test_the_first_screen_is_what_the_command_prints(tmp_path):
    """But for the seconds that it took."""
    shown = README.split("$ python -m sim.run --protocol amb\n")[1].split("```")[0]
    printed = run("python -m sim.run --protocol amb", tmp_path).stdout
    assert _timeless(shown) == _timeless(printed)


def _timeless(text: str) -> list[str]:
    return [" ".join(line.split()) for line in re.sub(r"wall time.*", "wall time", text).strip().splitlines()]
