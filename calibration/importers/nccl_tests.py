"""The text that nccl-tests print (all_reduce_perf and its like; RCCL's are equal): sizes, and the seconds of a call.

A run has lines `# Rank 0 ... on HOST device ...`, a heading `# size count type redop root time algbw busbw ...`, out of place and in place,
and a row for each size: bytes, microseconds, and GB/s (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md). Newer versions name the
collective. For older ones it follows from the command's name, where the log has it, or from busbw / algbw, which is 2 (n - 1) / n for an
allreduce among n ranks.

A log may have several tables, other lines between their rows, and what a launcher puts before each line (mpirun --tag-output, srun -l).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibration.importers import link_tests, logs
from sim.base.errors import WrongSetting
from sim.base.ranges import LONGEST_S, MOST_BYTES, check_integer

SOURCE, OF_HOST = "--from nccl-tests", "--gpus-per-host"
ALLOWED = "the text that all_reduce_perf and its like print, or OSU's, Intel's MPI Benchmarks, perftest or iperf3"
MOST_TEXT, MOST_ROWS, MOST_TESTED = 2**24, 10**5, 10**5  # bytes of text, rows of it, ranks
LONGEST_LINE = 2000  # characters; a row has about 150
MICRO, GIGA = 1e-6, 1e9
STARTING = re.compile(r"Collective test starting:\s*(\w+?)_perf")
COMMAND = re.compile(r"(?<!concluded: )\b([a-z_]+?)_perf\b")
RANK = re.compile(
    r"\bRank\s+(?P<rank>\d+)\b.*?\bPid\s+(?P<process>\d+)\s+on\s+(?P<host>\S+)\s+device\s+\S+\s*(?:\[[^\]]*\])?\s*(?P<device>.*)"
)
# The ranks if none is listed.
JOINED = re.compile(r"(?P<host>[^\s>]+?):\d+:\d+ \[\d+\] NCCL INFO .*\brank (?P<rank>\d+) n[rR]anks \d+\b")
HEADING = re.compile(r"\b(size\s+count\s+type\b.*)")
ROW = re.compile(r"(?<![\w.,-])(\d+\s+\d+\s+[a-z]\w*\s.*)")
AVERAGE = re.compile(r"#\s*Avg bus bandwidth")
TIMES = ("time", "algbw", "busbw")
SUMS = ("sum", "prod", "max", "min", "avg", "mulsum")
OF_SUMS, OF_ROOT = ("all_reduce", "reduce_scatter", "reduce"), ("broadcast", "reduce")
CLOSE, SEEN_GB_S = 0.1, 0.1  # how far size / time may be from algbw, where that has digits enough


class Measured(NamedTuple):
    """The tests of one collective on the same ranks.

    Args:
        collective: all_reduce, all_gather, reduce_scatter, alltoall, broadcast, reduce or sendrecv; another that the text names.
        hosts: of each rank, in order.
        device: the ranks' device; "" if the text does not name it.
        sizes, seconds: of each row, by size; shape (rows,).
        whole: whether the text has the end of each test.
        wrong: results that the tests found wrong.
        left_out: rows that were cut, or have other text within them.
        notes: caveats, in lines.
    """

    collective: str
    hosts: tuple[str, ...]
    device: str
    sizes: np.ndarray
    seconds: np.ndarray
    whole: bool
    wrong: int
    left_out: int
    notes: tuple[str, ...] = ()


class _Table(NamedTuple):
    """A heading's columns, the lines since the table before, and those after it; without what a launcher puts before them.

    Args:
        speaker: the rank that a launcher says has written them; "" if it says none.
    """

    columns: list[str]
    before: list[str]
    after: list[tuple[int, str]]  # with their numbers
    speaker: str


class _Row(NamedTuple):
    size: int
    redop: str
    rooted: bool | None  # whether it has a root; None if the text does not say
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


def read(path: str | Path, ranks: int | None = None, each: int | None = None) -> list[Measured]:
    """The tests in a log of nccl-tests. Calls in place are taken where there are any, because training makes those.

    Args:
        ranks, each: of the run, and of a host, where the text does not list them.

    Raises:
        WrongSetting: the text is not of nccl-tests, or has an impossible row, or does not give the number of ranks.
    """
    lines = logs.lines(Path(path), SOURCE, ALLOWED, MOST_TEXT)
    short = [line for line in lines if len(line) <= LONGEST_LINE]  # a search takes as long as a line's length squared
    tables, joined = _tables(short), [found for line in short if (found := JOINED.search(line))]
    if not tables:
        return _of_others(lines, (ranks, each), str(path))
    _check_together(tables, str(path))
    alike = defaultdict[tuple[str, int, int], list[Measured]](list)
    for table in tables:
        if test := _measured(table, joined, (ranks, each), str(path)):
            alike[test.collective, len(test.hosts), len(set(test.hosts))].append(test)
    tests = [_together(several) for several in alike.values()]
    if max((len(np.unique(test.sizes)) for test in tests), default=0) < 2:
        raise WrongSetting(f"{path}: rows", sum(len(test.sizes) for test in tests), "of 2 sizes or more")
    return tests


def _of_others(lines: list[str], given: tuple[int | None, int | None], path: str) -> list[Measured]:
    """The tests of other tools."""
    found = []
    for collective, ranks, sizes, seconds, notes in link_tests.read(lines, path):
        hosts, device = _hosts([], ranks or given[0], given[1], path)
        parts = len(hosts) if collective in link_tests.OF_EACH else 1
        found.append(Measured(collective, hosts, device, sizes * parts, seconds, True, 0, 0, notes))
    if not found:
        raise WrongSetting(f"{SOURCE}: {path}", "no heading `# size count type ...`", f"{ALLOWED}: one test")
    return found


def _check_together(tables: Sequence[_Table], path: str) -> None:
    """Refuse what several programs printed that each tested alone: nothing passed between them.

    Raises:
        WrongSetting: a listing has a rank twice, or ranks that print beside one another list others.
    """
    listings = [[found for line in table.before if (found := RANK.search(line))] for table in tables]
    apart = {table.speaker: of for table, of in zip(tables, listings, strict=True)}
    for of in (*listings, [one for each in apart.values() for one in each] if len(apart) > 1 else []):
        processes = defaultdict[str, dict[tuple[str, str], str]](dict)  # of each rank the hosts, by process
        for one in of:
            processes[one["rank"]][one["host"], one["process"]] = one["host"]
        for rank, hosts in processes.items():
            if len(hosts) > 1:
                where = " and ".join(dict.fromkeys(hosts.values()))
                allowed = "one program of all ranks: each tested its own GPUs, and nothing passed between them; build nccl-tests with MPI=1"
                raise WrongSetting(f"{path}: rank {rank}", f"listed {len(hosts)} times, on {where}", allowed)


def _together(tests: Sequence[Measured]) -> Measured:
    """Tests of the same ranks as one, by size."""
    sizes = np.concatenate([test.sizes for test in tests])
    order = np.argsort(sizes, kind="stable")
    return tests[0]._replace(
        sizes=sizes[order],
        seconds=np.concatenate([test.seconds for test in tests])[order],
        whole=all(test.whole for test in tests),
        wrong=sum(test.wrong for test in tests),
        left_out=sum(test.left_out for test in tests),
    )


def _tables(lines: list[str]) -> list[_Table]:
    """The tables of each rank that prints, in order."""
    spoken = defaultdict[str, list[tuple[int, str]]](list)
    for number, line in enumerate(lines, 1):
        spoken[logs.speaker(line)].append((number, line))
    found: list[_Table] = []
    for speaker, said in spoken.items():
        at = [place for place, (_, line) in enumerate(said) if HEADING.search(line)]
        for here, last, following in zip(at, [0, *at], [*at[1:], len(said)], strict=False):
            heading = HEADING.search(said[here][1])
            assert heading is not None  # that is how it was found
            before = [line for _, line in said[last:here]]
            if found and not any(RANK.search(line) for line in before):  # another test of the same launch
                before += [line for line in found[-1].before if RANK.search(line)]
            found.append(_Table(heading[1].split(), before, said[here + 1 : following], speaker))
    return found


def _measured(
    table: _Table, joined: list[re.Match], given: tuple[int | None, int | None], path: str
) -> Measured | None:
    """The test of a table; None if it has no row of any bytes."""
    listed = [found for line in table.before if (found := RANK.search(line))]
    hosts, device = _hosts(listed or joined, *given, path)
    like = [(number, found[1]) for number, line in table.after if (found := ROW.search(line))]
    read = [_row(line, table.columns, f"{path}: line {number}") for number, line in like]
    rows = [row for row in read if row and row.size > 0]
    if len(rows) > MOST_ROWS:
        raise WrongSetting(f"{path}: rows", len(rows), f"up to {MOST_ROWS:,}")
    if not rows:
        return None
    return Measured(
        _collective(table.before, rows, len(hosts), path),
        hosts,
        device,
        np.array([row.size for row in rows], float),
        np.array([row.seconds for row in rows]),
        any(AVERAGE.search(line) for _, line in table.after),
        sum(row.wrong for row in rows),
        read.count(None),
    )


def _hosts(listed: list[re.Match], ranks: int | None, each: int | None, path: str) -> tuple[tuple[str, ...], str]:
    """The host of each rank, and their device."""
    said = {int(one["rank"]): (one["host"], one.groupdict().get("device", "").strip()) for one in listed}
    if ranks is not None and not 2 <= ranks <= MOST_TESTED:
        raise WrongSetting("--ranks", ranks, f"an integer from 2 to {MOST_TESTED:,}")
    if not said:
        if ranks is None:
            raise WrongSetting("--ranks", None, f"a number: {path} does not list its ranks")
        each = 1 if each is None else each
        check_integer(OF_HOST, each, 1, ranks)
        return tuple(f"host{rank // each}" for rank in range(ranks)), ""
    if ranks is not None and len(said) != ranks:
        raise WrongSetting("--ranks", ranks, f"{len(said)}, the ranks that {path} lists")
    if set(said) != set(range(len(said))) or len(said) < 2:
        raise WrongSetting(f"{path}: ranks", len(said), "0, 1, 2, ..., each of them, and two at least")
    several = set(Counter(host for host, _ in said.values()).values())
    if each is not None and several != {each}:
        raise WrongSetting(OF_HOST, each, f"{' or '.join(map(str, sorted(several)))}, as {path} lists the ranks")
    devices = {device for _, device in said.values()}
    return tuple(said[rank][0] for rank in range(len(said))), devices.pop() if len(devices) == 1 else ""


def _row(line: str, columns: list[str], where: str) -> _Row | None:
    """A row of numbers; None of one that was cut, or that has other text in it.

    Raises:
        WrongSetting: numbers that cannot be, or bytes and seconds that do not make the bandwidth that it says.
    """
    cells = line.split()
    if columns[3:4] == ["redop"] and len(cells) == len(columns) - 1 and not cells[3][:1].isalpha():
        cells.insert(3, "")  # which old tests of all-to-all leave out
    if len(cells) != len(columns):
        return None
    first: dict[str, str] = {}
    for name, cell in zip(columns, cells, strict=True):  # of columns that are there twice the last, which are in place
        first |= {name: cell} if cell != "N/A" or name not in first else {}
    try:
        microseconds, algbw, busbw = (float(first[name]) for name in TIMES)
        wrong = int(first["#wrong"]) if first.get("#wrong", "N/A") != "N/A" else 0
        rooted = int(first["root"]) >= 0 if "root" in first else None
        found = _Row(int(first["size"]), first.get("redop", "none"), rooted, MICRO * microseconds, algbw, busbw, wrong)
    except (ValueError, KeyError):
        return None
    if found.size == 0:
        return found
    possible = 0 < found.size <= MOST_BYTES and 0 < found.seconds <= LONGEST_S
    if not (possible and 0 <= algbw < np.inf and 0 <= busbw < np.inf):
        raise WrongSetting(where, line.strip()[:80], f"{' '.join(columns)}; bytes and microseconds above 0")
    made = found.size / found.seconds / GIGA
    if max(algbw, made) > SEEN_GB_S and abs(algbw - made) > CLOSE * max(algbw, made):
        given = f"{found.size} bytes in {microseconds:g} us, algbw {algbw:g}"
        raise WrongSetting(where, given, f"algbw {made:.4g} GB/s")
    return found


def _collective(lines: list[str], rows: list[_Row], ranks: int, path: str) -> str:
    """The collective that was called, by the text or by its bandwidths.

    Raises:
        WrongSetting: it is unknown.
    """
    known = factors(ranks)
    if said := next((found[1] for line in lines if (found := STARTING.search(line))), None):
        return said
    commands = {found for line in lines for found in COMMAND.findall(line) if found in known}
    if len(commands) == 1:
        return commands.pop()
    fastest = max(rows, key=lambda row: row.algbw)
    if not fastest.algbw:
        raise WrongSetting(f"{path}: algbw", 0, "a size that moves enough bytes to tell which collective it is")
    ratio, sums = fastest.busbw / fastest.algbw, fastest.redop in SUMS
    able = [name for name in known if (name in OF_SUMS) == sums and fastest.rooted in (None, name in OF_ROOT)]
    best = min(able, key=lambda name: abs(known[name] - ratio))
    if not abs(known[best] - ratio) <= CLOSE * ratio:
        allowed = ", ".join(f"{name} {known[name]:.3f}" for name in able)
        given = f"{ratio:.3g}"
        raise WrongSetting(f"{path}: busbw / algbw", given, f"that of a collective of {ranks} ranks: {allowed}")
    return best if fastest.redop or best != "all_gather" else "alltoall"
