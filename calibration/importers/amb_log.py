"""The AMB repository's log lines (T. Adikari, 2019): one `Sending [...]` a worker and round.

    21:30:05---|dstr.wk5|Sending [242] examples, sleep_time [0], compute_time [5.3], last_idle [0.35], last_send [0.91]

The prefix and sleep_time may be missing. compute_time has the sleep in it. last_send (until the reduction has taken the
gradient) and last_idle (until the new parameters are there) are of the round before, -1 in the first. Hence the length
of a round: compute_time + the next line's last_send + last_idle, the median over the workers; the last round, whose
end is not logged, is left out. The rank is in the prefix; without one, a file is one worker, and a folder of such
files one run. All other lines are passed over.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import NamedTuple

from calibration.importers import rounds
from sim.errors import WrongSetting
from sim.files import reading
from sim.traces import Trace

MARK = "Sending ["
NUMBER = r"\[(-?[\d.]+(?:e[+-]?\d+)?)\]"
LINE = re.compile(
    rf"(?:wk(?P<rank>\d+)\|)?Sending {NUMBER} examples, (?:sleep_time {NUMBER}, )?"
    rf"compute_time {NUMBER}, last_idle {NUMBER}, last_send {NUMBER}"
)
FORM = "Sending [samples] examples, compute_time [s], last_idle [s], last_send [s]"


class Sent(NamedTuple):
    """One line: samples; seconds of sleep (None if not logged), of sleep and computation, and of the round before."""

    samples: int
    sleep_s: float | None
    busy_s: float
    last_idle_s: float
    last_send_s: float


def read(path: str | Path, workload: str, stragglers: str) -> list[Trace]:
    """The one run in a log file, or in a folder of log files.

    Raises:
        WrongSetting: no such file, no complete round in it, or a malformed line, named with its file.
    """
    path = Path(path)
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    sent = defaultdict(list)
    for number, file in enumerate(files, start=1):
        for rank, line in _lines(file):
            sent[rank or number].append(line)
    return [_run(sent, workload, stragglers, path.name)]


def _lines(path: Path):
    with reading("--from amb-log", path):
        text = path.read_text(errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        if MARK in line:
            yield _line(line, f"{path}: line {number}")


def _line(line: str, where: str) -> tuple[int | None, Sent]:
    match = LINE.search(line)
    try:
        rank, samples, sleep_s, *seconds = match.groups()
        return rank and int(rank), Sent(int(samples), sleep_s and float(sleep_s), *map(float, seconds))
    except (AttributeError, ValueError) as error:
        raise WrongSetting(where, line.strip(), FORM) from error


def _run(sent: dict[int, list[Sent]], workload: str, stragglers: str, source: str) -> Trace:
    complete = min((len(lines) for lines in sent.values()), default=0) - 1
    if complete < 1:
        raise WrongSetting(source, f"{sum(map(len, sent.values()))} lines {MARK}...]", "at least two of each worker")
    work = [
        rounds.Work(rank, step, line.samples, line.busy_s, line.sleep_s)
        for rank, lines in sorted(sent.items())
        for step, line in enumerate(lines[:complete])
    ]
    lengths_s = [_length_s([lines[step : step + 2] for lines in sent.values()]) for step in range(complete)]
    return rounds.trace(work, list(accumulate(lengths_s)), workload, stragglers, source)


def _length_s(pairs: list[list[Sent]]) -> float:
    """Of the round of the first lines, seconds; not less than its slowest worker, for the first round starts ragged."""
    typical_s = median(this.busy_s + after.last_send_s + after.last_idle_s for this, after in pairs)
    return max(typical_s, *(this.busy_s for this, _ in pairs)) if len(pairs) > 1 else typical_s
