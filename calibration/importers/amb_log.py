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
from pathlib import Path

import pandas as pd

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
NONE_BEFORE = [-1.0, -1.0]  # of the round before the first
MOST = 1e9  # of seconds, samples and ranks
COLUMNS = ["rank", "samples", "sleep_time", "busy_s", "last_idle", "last_send"]  # numbers of a line; seconds
FORM = "Sending [samples] examples, compute_time [s], last_idle [s], last_send [s]"


def read(path: str | Path, about: About) -> tuple[list[Trace], list[str]]:
    """The one run in a log file, or in a folder of log files; and what is left out, in lines.

    Raises:
        WrongSetting: no such file, no complete round in it, or a malformed line, named with its file.
    """
    path = Path(path)
    files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    of_files, cut = [], 0
    for number, file in enumerate(files, start=1):
        whole, is_cut = _whole_lines(file)
        cut += is_cut
        rows = [_line(line, f"{file}: line {at}") for at, line in enumerate(whole, start=1) if MARK in line]
        lines = pd.DataFrame(rows, columns=COLUMNS)
        for name in ("rank", "sleep_time"):
            if 0 < (missing := lines[name].isna().sum()) < len(lines):
                given = f"missing in {missing} of {len(lines)} lines"
                raise WrongSetting(f"{file}: {name}", given, "in all lines, or in none")
        of_files.append(lines.fillna({"rank": number}))
    notes = [rounds.FIRST, "the last round is left out: its end is not logged"]
    notes += [f"{cut} last line{'s' * (cut > 1)} left out: cut"] * (cut > 0)
    return [_run(pd.concat(of_files, ignore_index=True), about, path.name)], notes


def _whole_lines(path: Path) -> tuple[list[str], bool]:
    """The lines of a file without a last one that was cut, and whether there was one."""
    found = logs.lines(path, "--from amb-log", f"lines {FORM}", MOST_LOG_BYTES, ends=True)
    cut = bool(found) and not found[-1].endswith(("\n", "\r")) and not LINE.search(found[-1])
    return (found[:-1] if cut else found), cut and MARK in found[-1]


def _line(line: str, where: str) -> list[float]:
    """The numbers of COLUMNS; NaN for what a line does not say."""
    match = LINE.search(line)
    try:
        numbers = [float("nan") if one is None else float(one) for one in match.groups()]
        rank, samples, sleep_s, busy_s, *of_before = numbers
        int(match[2])
    except (AttributeError, ValueError) as error:
        raise WrongSetting(where, line.strip()[:200], FORM) from error
    known = not any(number < 0 or number > MOST for number in (rank, samples, sleep_s, busy_s))
    if not (known and (of_before == NONE_BEFORE or all(0 <= number <= MOST for number in of_before))):
        allowed = f"numbers from 0 to {MOST:g}; last_idle and last_send are both -1 at first"
        raise WrongSetting(where, line.strip()[:200], allowed)
    if sleep_s > busy_s:
        raise WrongSetting(where, line.strip()[:200], "a sleep_time that is in the compute_time")
    return numbers


def _run(lines: pd.DataFrame, about: About, source: str) -> Trace:
    complete = int(lines.groupby("rank").size().min()) - 1 if len(lines) else 0
    if complete < 1:
        raise WrongSetting(source, f"{len(lines)} lines {MARK}...]", "at least two of each worker")
    lines = lines.assign(step=lines.groupby("rank").cumcount())
    none = (lines["last_idle"] == NONE_BEFORE[0]) & (lines["step"] > 0)
    if none.any():
        where = f"{source}: worker {lines['rank'][none].iloc[0]:g}"
        raise WrongSetting(where, "last_idle [-1] after the first round", "seconds of the round before")
    after = lines.groupby("rank")[["last_idle", "last_send"]].shift(-1).sum(axis=1)
    work = lines.assign(length_s=lines["busy_s"] + after)[lines["step"] < complete]
    by_round = work.groupby("step")
    lengths_s = by_round["length_s"].median()
    if work["rank"].nunique() > 1:  # the slowest worker's at least: workers do not begin the first round together
        lengths_s = lengths_s.clip(lower=by_round["busy_s"].max())
    work = work.rename(columns={"sleep_time": "sleep_s"}).dropna(axis="columns")
    return rounds.trace(work, lengths_s.cumsum().tolist(), about.workload, about.stragglers, source)
