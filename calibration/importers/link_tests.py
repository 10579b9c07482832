"""Links as other tools than nccl-tests measure them: OSU Micro-Benchmarks, Intel MPI Benchmarks, perftest (ib_write_bw) and iperf3.

The first two print a table of bytes and microseconds for each operation, which is read as a test of the same collective. The others, and
OSU's bandwidths, tell what a wire passes while many messages are on their way: a bandwidth, and no latency.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from sim.platform.cluster import ASSUMED

TITLE = re.compile(
    r"#\s*OSU.*? (?P<osu>[\w -]+?)(?: Latency| Bandwidth)? Test|#\s*Benchmarking (?P<imb>\w+)|^\s*(?P<perftest>[\w /-]+ Test)\s*$"
)
PROCESSES = re.compile(r"#\s*#processes\s*=\s*(\d+)")
HEADING = re.compile(r"^\s*#\s*(?:Size|bytes)\b")
NAME = re.compile(
    r"(?:BW \w+|[\d.]+% percentile) ?\[[^\]]+\]|(?:\w+ )?(?:Latency|Bandwidth) ?\([^)]*\)|#?[\w%/]+(?:\[[^\]]*\])?"
)
IPERF = re.compile(r"([\d.]+) ([KMG]?)bits/sec.*\breceiver")
NAMES = "all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce"
COLLECTIVES = {"bcast": "broadcast"} | {name.replace("_", ""): name for name in NAMES}
POINT_TO_POINT = ("pingpong", "pingping", "mpi", "latency", "")
OF_EACH = ("all_gather", "alltoall")  # whose bytes are those of one rank's part
BYTES = {"MB/sec": 2**20, "MiB/sec": 2**20, "Gb/sec": 1e9 / 8, "MB/s": 1e6}  # a second; perftest's MB are MiB
WIRE_BYTES = np.array([1e6, 1e9])


def read(lines: Sequence[str], path: str) -> list[tuple[str, int | None, np.ndarray, np.ndarray, tuple[str, ...]]]:
    """Of each test its collective, ranks (None if it does not say them), bytes, seconds, and notes; empty if there is none.

    Of a wire the seconds are those of single messages with the usual latency.
    """
    columns: list[str] = []
    rows: list[list[float]] = []
    found, title, ranks = [], "", None
    fastest = [bits / 8 for bits in _iperf(lines)]
    for line in [*lines, "# Benchmarking end"]:
        if (named := TITLE.search(line)) or HEADING.search(line):
            timed, passed = _values(columns, rows, title)
            fastest += passed
            if timed is not None and (collective := _collective(title)):
                times = ranks if collective != "sendrecv" else 2
                found.append((collective, times, *timed.T, ()))
            rows = []
            columns = NAME.findall(line.strip().removeprefix("# ")) if not named else []
            title, ranks = (next(filter(None, named.groups())), None) if named else (title, ranks)
        elif of := PROCESSES.search(line):
            ranks = int(of[1])
        elif columns and re.match(r"\s*\d+(\s+[\d.]+)+\s*$", line):
            rows.append([float(cell) for cell in line.split()])
    if fastest and not found:
        said = "a wire's bandwidth, which collectives do not reach: their tests, such as all_reduce_perf, tell what they do"
        seconds = ASSUMED.latency_s + WIRE_BYTES / max(fastest)
        found.append(
            ("sendrecv", 2, WIRE_BYTES, seconds, (said, "its latency was not measured: the usual one is taken"))
        )
    return found


def _iperf(lines: Sequence[str]) -> list[float]:
    """Bits a second that the receiver of iperf3 took, of all streams."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        return [float(json.loads("\n".join(lines))["end"]["sum_received"]["bits_per_second"])]
    taken = [(line, found) for line in lines if (found := IPERF.search(line))]
    sums = [pair for pair in taken if "[SUM]" in pair[0]] or taken
    return [float(found[1]) * {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}[found[2]] for _, found in sums]


def _values(columns: list[str], rows: list[list[float]], title: str) -> tuple[np.ndarray | None, list[float]]:
    """Bytes and seconds of a table, shape (rows, 2), None if it has no times; and bytes a second that it has."""
    rows = [row for row in rows if len(row) == len(columns) and row[0] > 0]
    times = [at for at, name in enumerate(columns) if "us" in re.split(r"[\[(]", name)[-1]]
    usual = [at for at in times if re.search("avg|typical", columns[at], re.IGNORECASE)] or times
    speeds = [at for at, name in enumerate(columns) if re.match(r"BW average|Bandwidth", name)]
    if not rows:
        return None, []
    if usual:
        return np.array([(row[0], row[usual[0]] * 1e-6) for row in rows]), []
    unit = next((BYTES[one] for at in speeds for one in BYTES if one in columns[at]), 0.0)
    both = 0.5 if re.search("bi-?dir", title, re.IGNORECASE) else 1.0
    return None, [both * unit * row[at] for row in rows for at in speeds if row[at] > 0]


def _collective(title: str) -> str | None:
    plain = re.sub(r"mpi|cuda|rocm|test|[^a-z]", "", title.lower())
    if plain in COLLECTIVES:
        return COLLECTIVES[plain]
    return "sendrecv" if plain in POINT_TO_POINT or plain.endswith("latency") else None
