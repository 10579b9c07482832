"""Texts of nccl-tests with cells that do not belong, cut, or mixed."""

import sys
from collections.abc import Iterator
from pathlib import Path

from damage.base import Case, spoilt, texts_of

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from nccl_texts import text

CELLS = ("", "x", "nan", "inf", "-1", "0", "0.5", "1e300", str(10**18), str(10**400), "\0", "N/A")


def cases() -> Iterator[Case]:
    """Of a ring of four ranks."""

    case = texts_of("nccl-tests", "t.txt", "--from", "nccl-tests")
    whole = text(lambda size: 6 * (1e-5 + size / 4 / 1e10), sizes=[2**power for power in range(3, 24, 2)])
    yield case("as it is", whole)
    rows = [line for line in whole.splitlines() if not line.startswith("#")]
    for column in range(len(rows[0].split())):
        for cell in CELLS:
            for lines in ([rows[5]], rows):
                content = whole
                for line in lines:
                    cells = line.split()
                    content = content.replace(line, " ".join([*cells[:column], cell, *cells[column + 1 :]]))
                yield case(f"column {column} {cell[:8]!r} in {len(lines)}", content)
    others = {"doubled": whole * 2, "reversed": "\n".join(whole.splitlines()[::-1]), "none": ""}
    for name, content in (*spoilt(whole), *others.items()):
        yield case(name, content)
