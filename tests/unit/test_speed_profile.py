"""The profile of the event world: its parts are files that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import speed_profile

ROOT = Path(__file__).parents[2]
OURS = [name for names in speed_profile.PARTS.values() for name in names if name.startswith(("sim/", "event/"))]


@pytest.mark.parametrize("name", OURS)
def test_a_part_is_of_files_that_there_are(name):
    """Or a file that was moved would count as nothing, or as another part."""
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "sim").rglob("*.py")]
    assert any(name in file for file in files)
