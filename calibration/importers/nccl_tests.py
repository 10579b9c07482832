"""The text that nccl-tests print (all_reduce_perf and its like; RCCL's are equal): sizes, and the seconds of a call.

A run has lines `# Rank 0 ... on HOST device ...`, a heading `# size count type redop root time algbw busbw ...`, out of place and in place,
and a row for each size: bytes, microseconds, and GB/s (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md). Newer versions name the
collective. For older ones it follows from busbw / algbw, which is 2 (n - 1) / n for an allreduce among n ranks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sim.base.errors import WrongSetting
from sim.base.files import reading
from sim.base.ranges import LONGEST_S, MOST_BYTES

SOURCE = "--from nccl-tests"
ALLOWED = "the text that all_reduce_perf and its like print"
MOST_TEXT, MOST_ROWS, MOST_TESTED = 2**24, 10**5, 10**5  # bytes of text, rows of it, ranks
MICRO, GIGA = 1e-6, 1e9
STARTING = re.compile(r"#\s*Collective test starting:\s*(\w+?)_perf")
RANK = re.compile(r"#\s*Rank\s+(\d+)\b.*?\bon\s+(\S+)\s+device\s+\S+\s*(?:\[[^\]]*\])?\s*(.*)")
HEADING = re.compile(r"#\s*(size\s+count\s+type\b.*)")
AVERAGE = re.compile(r"#\s*Avg bus bandwidth")
TIMES = ("time", "algbw", "busbw")
SUMS = ("sum", "prod", "max", "min", "avg", "mulsum")
CLOSE, SEEN_GB_S = 0.1, 0.1  # how far size / time may be from algbw, where that has digits enough


class Measured(NamedTuple):
    """The contents of a text.

    Args:
        collective: all_reduce, all_gather, reduce_scatter, alltoall, broadcast, reduce or sendrecv.
        hosts: of each rank, in order.
        device: the ranks' device; "" if the text does not name it.
        sizes, seconds: of each row, by size; shape (rows,).
        whole: whether the text has its end.
        wrong: results that the tests found wrong.
    """

    collective: str
    hosts: tuple[str, ...]
    device: str
    sizes: np.ndarray
    seconds: np.ndarray
    whole: bool
    wrong: int


@dataclass(frozen=True)
class _Row:
    size: int
    redop: str
    root: int | None
    seconds: float
    algbw: float
    busbw: float
    wrong: int


def factors(ranks: int) -> dict[str, float]:
    """Busbw / algbw, as the tests print them, of each collective."""
    share = (ranks - 1) / ranks
    return {
        "all_reduce": 2 * share,
        **dict.fromkeys(("all_gather", "reduce_scatter", "alltoall"), share),
        **dict.fromkeys(("broadcast", "reduce", "sendrecv"), 1.0),
    }


def read(path: str | Path, ranks: int | None = None) -> Measured:
    """The contents of a text of nccl-tests. Calls in place are taken where there are any, because training makes those.

    Args:
        ranks: of the run, where the text does not list them.

    Raises:
        WrongSetting: the text is not of nccl-tests, has several tests or an impossible row, or does not give the number of ranks.
    """
    lines = _text(Path(path)).splitlines()
    headings = [number for number, line in enumerate(lines) if HEADING.match(line.strip())]
    if len(headings) != 1:
        given = f"{len(headings)} tables" if headings else "no heading `# size count type ...`"
        raise WrongSetting(f"{SOURCE}: {path}", given, f"{ALLOWED}: one test")
    hosts, device = _hosts(lines, ranks, str(path))
    columns = lines[headings[0]].strip("# \n").split()
    rows = [
        _row(line, columns, f"{path}: line {number}")
        for number, line in enumerate(lines[headings[0] + 1 :], headings[0] + 2)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    rows = [row for row in rows if row.size > 0]
    if len({row.size for row in rows}) < 2 or len(rows) > MOST_ROWS:
        raise WrongSetting(f"{path}: rows", len(rows), f"of 2 sizes or more, and up to {MOST_ROWS:,}")
    rows.sort(key=lambda row: row.size)
    return Measured(
        _collective(lines, rows, len(hosts), str(path)),
        hosts,
        device,
        np.array([row.size for row in rows], float),
        np.array([row.seconds for row in rows]),
        any(AVERAGE.match(line.strip()) for line in lines),
        sum(row.wrong for row in rows),
    )


def _text(path: Path) -> str:
    with reading(SOURCE, path), open(path, "rb") as file:
        found = file.read(MOST_TEXT + 1)
    if len(found) > MOST_TEXT:
        raise WrongSetting(SOURCE, str(path), f"{ALLOWED}, of at most {MOST_TEXT // 2**20} MiB")
    return found.decode(errors="replace")


def _hosts(lines: list[str], ranks: int | None, path: str) -> tuple[tuple[str, ...], str]:
    """The host of each rank, and their device."""
    said = {int(found[1]): (found[2], found[3].strip()) for line in lines if (found := RANK.match(line.strip()))}
    if ranks is not None and not 2 <= ranks <= MOST_TESTED:
        raise WrongSetting("--ranks", ranks, f"an integer from 2 to {MOST_TESTED:,}")
    if not said:
        if ranks is None:
            raise WrongSetting("--ranks", None, f"a number: {path} does not list its ranks")
        return tuple(f"host{rank}" for rank in range(ranks)), ""
    if ranks is not None and len(said) != ranks:
        raise WrongSetting("--ranks", ranks, f"{len(said)}, the ranks that {path} lists")
    if set(said) != set(range(len(said))) or len(said) < 2:
        raise WrongSetting(f"{path}: ranks", len(said), "0, 1, 2, ..., each of them, and two at least")
    devices = {device for _, device in said.values()}
    return tuple(said[rank][0] for rank in range(len(said))), devices.pop() if len(devices) == 1 else ""


def _row(line: str, columns: list[str], where: str) -> _Row:
    """A row of numbers.

    Raises:
        WrongSetting: cells are missing, or not what their column has, or bytes and seconds do not make the bandwidth that it says.
    """
    cells = line.split()
    allowed = f"{len(columns)} cells: {' '.join(columns)}"
    if len(cells) != len(columns):
        raise WrongSetting(where, line.strip()[:80], allowed)
    first = dict(zip(columns, cells, strict=True))  # of columns that are there twice the last, which are in place
    try:
        size, root = int(first["size"]), first.get("root")
        microseconds, algbw, busbw = (float(first[name]) for name in TIMES)
        wrong = int(first["#wrong"]) if first.get("#wrong", "N/A") != "N/A" else 0
        found = _Row(
            size,
            first.get("redop", "none"),
            None if root is None else int(root),
            MICRO * microseconds,
            algbw,
            busbw,
            wrong,
        )
    except (ValueError, KeyError) as error:
        raise WrongSetting(where, line.strip()[:80], allowed) from error
    if size == 0:
        return found
    if not (0 < size <= MOST_BYTES and 0 < found.seconds <= LONGEST_S and 0 <= algbw < np.inf and 0 <= busbw < np.inf):
        raise WrongSetting(where, line.strip()[:80], f"{allowed}; bytes and microseconds above 0")
    made = size / found.seconds / GIGA
    if max(algbw, made) > SEEN_GB_S and abs(algbw - made) > CLOSE * max(algbw, made):
        raise WrongSetting(where, f"{size} bytes in {microseconds:g} us, algbw {algbw:g}", f"algbw {made:.4g} GB/s")
    return found


def _collective(lines: list[str], rows: list[_Row], ranks: int, path: str) -> str:
    """The collective that was called, by the text or by its bandwidths.

    Raises:
        WrongSetting: it is unknown.
    """
    known = factors(ranks)
    for line in lines:
        if found := STARTING.match(line.strip()):
            if found[1] not in known:
                raise WrongSetting(f"{path}: collective", found[1], ", ".join(known))
            return found[1]
    fastest = max(rows, key=lambda row: row.algbw)
    if not fastest.algbw:
        raise WrongSetting(f"{path}: algbw", 0, "a size that moves enough bytes to tell which collective it is")
    ratio, sums = fastest.busbw / fastest.algbw, fastest.redop in SUMS
    rooted = fastest.root is not None and fastest.root >= 0
    able = [name for name in known if (name in ("all_reduce", "reduce_scatter", "reduce")) == sums]
    if fastest.root is not None:
        able = [name for name in able if (name in ("broadcast", "reduce")) == rooted]
    best = min(able, key=lambda name: abs(known[name] - ratio))
    if abs(known[best] / ratio - 1) > CLOSE if ratio else True:
        allowed = ", ".join(f"{name} {known[name]:.3f}" for name in able)
        raise WrongSetting(
            f"{path}: busbw / algbw", f"{ratio:.3g}", f"that of a collective of {ranks} ranks: {allowed}"
        )
    return best
