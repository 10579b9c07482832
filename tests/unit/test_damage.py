"""Damaged and odd files given to calibration.fit: one line and exit 2 or 1, or a profile whose every number is finite.

Every eighth case of some 2,500; TRAINSIM_DAMAGE=1 in the environment runs all of them, in two to four minutes. What can be told from no
file is fitted as it is: rows that are missing but could have been none, seconds that are long but not impossible.
"""

import contextlib
import io
import math
import os
from functools import cache

import damage
import pytest

from calibration import fit
from sim import command
from sim.platform import cluster

pytestmark = pytest.mark.slow

EVERY = int(os.environ.get("TRAINSIM_DAMAGE", "8"))
SHARES = 8
FREE = "bandwidth_bytes_per_s"  # of a link that costs nothing it is infinite
LONGEST_LINE = 2000


@cache
def cases() -> list:
    """Those that are run: names, and what writes their files."""
    return list(damage.cases())[::EVERY]


def numbers(value):
    if isinstance(value, dict):
        for name, item in value.items():
            yield from () if name == FREE else numbers(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, float):
        yield value


def complaint(folder, write) -> str | None:
    """What is wrong with how a case ended, if anything is."""
    profile, said = folder / "p.toml", io.StringIO()
    arguments = [*write(folder), "-o", str(profile)]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            command.run("calibration.fit", lambda: fit.main(arguments))
    except SystemExit as ended:
        code = ended.code
    lines = said.getvalue().splitlines()
    if code:
        alright = code in (1, 2) and len(lines) == 1 and len(lines[0]) < LONGEST_LINE and not profile.exists()
        return None if alright else f"exit {code}, {len(lines)} lines: {said.getvalue()[:300]}"
    made = cluster.read(str(profile)).model_dump()
    odd = [number for number in numbers(made) if not math.isfinite(number)]
    return f"a profile with {odd[0]}" if odd else f"exit 0 and {lines[0]}" if lines else None


KINDS = ["texts:", "servers:", "library:", "header", "column", ".parquet", ".jsonl", "part", "probe:", "csv:", "log:"]
KINDS += ["timeline:", "nccl-tests:", "torch:"]


def test_there_are_cases_of_every_kind():
    names = [name for name, _ in cases()]
    assert len(names) >= 300
    for kind in KINDS:
        assert any(name.startswith(kind) for name in names), kind


@pytest.mark.parametrize("share", range(SHARES))
def test_a_damaged_file_is_refused_in_one_line_or_fitted_with_finite_numbers(share, tmp_path):
    found = {}
    for number, (name, write) in enumerate(cases()[share::SHARES]):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            found[name] = complaint(folder, write)
        except Exception as error:  # whatever it is, it is a traceback to a user
            found[name] = f"a traceback: {error!r:.200}"
    assert not {name: why for name, why in found.items() if why}


@pytest.mark.parametrize(
    "name", ["texts: shuffled", "parts as they are", "probe: as it is", "csv: as it is", "log: as it is"]
)
def test_what_is_whole_is_fitted(name, tmp_path):
    """Or the test above would hold of a command that refuses everything."""
    write = next(write for other, write in damage.cases() if other == name)
    assert complaint(tmp_path, write) is None
    assert (tmp_path / "p.toml").exists()
