"""The AMB repository's log lines (T. Adikari, 2019): one `Sending [...]` a worker and round.

    21:30:05---|dstr.wk5|Sending [242] examples, sleep_time [0], compute_time [5.3], last_idle [0.35], last_send [0.91]

The prefix and sleep_time may be missing. compute_time has the sleep in it. last_send (until the reduction has taken the
gradient) and last_idle (until the new parameters are there) are of the round before, -1 in the first. Hence the length
of a round: compute_time + the next line's last_send + last_idle, the median over the workers; the last round, whose
end is not logged, is left out. The rank is in the prefix; without one, a file is one worker, and a folder of such
files one run. All other lines are passed over; so is a last line that was cut.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import NamedTuple

from calibration.importers import logs, rounds
from calibration.importers.about import About
from sim.base.errors import WrongSetting
from sim.base.files import MOST_LOG_BYTES
from sim.recording.traces import Trace

MARK = "Sending ["
NUMBER = r"\[(-?[\d.]+(?:e[+-]?\d+)?)\]"
LINE = re.compile(
    rf"(?:wk(?P<rank>\d+)\|)?Sending {NUMBER} examples, (?:sleep_time {NUMBER}, )?"
    rf"compute_time {NUMBER}, last_idle {NUMBER}, last_send {NUMBER}"
)
NONE_BEFORE = (-1.0, -1.0)  # of the round before the first
MOST = 1e9  # of seconds, samples and ranks
FORM = "Sending [samples] examples, compute_time [s], last_idle [s], last_send [s]"


class Sent(NamedTuple):
    """One line: samples; seconds of sleep (None if not logged), of sleep and computation, and of the round before."""

    samples: int
    sleep_s: float | None
    busy_s: float
    last_idle_s: float
    last_send_s: float


def read(path: str | Path, about: About) -> list[Trace]:
    """The one run in a log file, or in a folder of log files.

    Raises:
        WrongSetting: no such file, no complete round in it, or a malformed line, named with its file.
    """
    path = Path(path)
    sent = defaultdict(list)
    for number, file in enumerate(_files(path), start=1):
        lines = list(_lines(file))
        _check_alike(lines, str(file))
        for rank, line in lines:
            sent[number if rank is None else rank].append(line)
    return [_run(sent, about, path.name)]


def _files(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]


def _check_alike(lines: list[tuple[int | None, Sent]], where: str) -> None:
    """Refuse a file in which some lines name the rank, or the sleep, and some do not."""
    for name, said in (("rank", [rank for rank, _ in lines]), ("sleep_time", [line.sleep_s for _, line in lines])):
        missing = sum(value is None for value in said)
        if 0 < missing < len(said):
            raise WrongSetting(
                f"{where}: {name}", f"missing in {missing} of {len(said)} lines", "in all lines, or in none"
            )


def _lines(path: Path):
    whole, _ = _whole_lines(path)
    for number, line in enumerate(whole, start=1):
        if MARK in line:
            yield _line(line, f"{path}: line {number}")


def _whole_lines(path: Path) -> tuple[list[str], bool]:
    """The lines of a file without a last one that was cut, and whether there was one."""
    found = logs.lines(path, "--from amb-log", f"lines {FORM}", MOST_LOG_BYTES, ends=True)
    cut = bool(found) and not found[-1].endswith(("\n", "\r")) and not LINE.search(found[-1])
    return (found[:-1] if cut else found), cut and MARK in found[-1]


def left_out(path: str | Path) -> list[str]:
    """What a log has beside what is read, in lines."""
    cut = sum(_whole_lines(file)[1] for file in _files(Path(path)))
    said = [rounds.FIRST, "the last round is left out: its end is not logged"]
    return said + [f"{cut} last line{'s' * (cut > 1)} left out: cut"] * (cut > 0)


def _line(line: str, where: str) -> tuple[int | None, Sent]:
    match = LINE.search(line)
    try:
        rank, samples, sleep_s, *seconds = match.groups()
        rank, sent = rank and int(rank), Sent(int(samples), sleep_s and float(sleep_s), *map(float, seconds))
    except (AttributeError, ValueError) as error:
        raise WrongSetting(where, line.strip()[:200], FORM) from error
    of_before = (sent.last_idle_s, sent.last_send_s)
    known = all(0 <= number <= MOST for number in (rank or 0, sent.samples, sent.sleep_s or 0.0, sent.busy_s))
    if not (known and (of_before == NONE_BEFORE or all(0 <= number <= MOST for number in of_before))):
        raise WrongSetting(
            where, line.strip()[:200], f"numbers from 0 to {MOST:g}; last_idle and last_send are both -1 at first"
        )
    if (sent.sleep_s or 0.0) > sent.busy_s:
        raise WrongSetting(where, line.strip()[:200], "a sleep_time that is in the compute_time")
    return rank, sent


def _run(sent: dict[int, list[Sent]], about: About, source: str) -> Trace:
    complete = min((len(lines) for lines in sent.values()), default=0) - 1
    if complete < 1:
        raise WrongSetting(source, f"{sum(map(len, sent.values()))} lines {MARK}...]", "at least two of each worker")
    work = [
        rounds.Work(rank, step, line.samples, line.busy_s, line.sleep_s)
        for rank, lines in sorted(sent.items())
        for step, line in enumerate(lines[:complete])
    ]
    for rank, lines in sent.items():
        late = [line for line in lines[1:] if (line.last_idle_s, line.last_send_s) == NONE_BEFORE]
        if late:
            raise WrongSetting(
                f"{source}: worker {rank}", "last_idle [-1] after the first round", "seconds of the round before"
            )
    lengths_s = [_length_s([lines[step : step + 2] for lines in sent.values()]) for step in range(complete)]
    return rounds.trace(work, list(accumulate(lengths_s)), about.workload, about.stragglers, source)


def _length_s(pairs: list[list[Sent]]) -> float:
    """Seconds of the round of the first lines; at least its slowest worker's, because workers do not begin the first round together."""
    typical_s = median(this.busy_s + after.last_send_s + after.last_idle_s for this, after in pairs)
    return max(typical_s, *(this.busy_s for this, _ in pairs)) if len(pairs) > 1 else typical_s
