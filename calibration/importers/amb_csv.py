"""The AMB repository's statistics (T. Adikari, 2019): pairs NAME_worker_stats.csv and NAME_master_stats.csv.

Worker columns used: step, rank (both from 1), num_samples, compute_time (seconds; the induced sleep is in it). Worker
`time` is the moment when the master had all of the round's statistics, on a clock that starts with the first of them.
`compute_time_master` is the microseconds that it took to note them. Neither is needed. Master columns used: step and time (seconds at
the end of the round). The master's clock starts with the session, and only differences count.
"""

from __future__ import annotations

from pathlib import Path

from calibration.importers import rounds
from calibration.importers.about import About
from sim.base import tables
from sim.base.errors import WrongSetting
from sim.recording.traces import Trace

WHOLE = ("step", "rank", "num_samples")
MOST = 1e9  # of seconds, samples, ranks and steps
WORKER, MASTER = "_worker_stats.csv", "_master_stats.csv"


def read(path: str | Path, about: About) -> tuple[list[Trace], list[str]]:
    """The runs in a folder, or the one run that a file of a pair belongs to; and what is left out, in lines.

    Raises:
        WrongSetting: no pair there, or a malformed file, named with its row.
    """
    path = Path(path)
    files = sorted(path.glob(f"*{WORKER}")) if path.is_dir() else [path.with_name(path.name.replace(MASTER, WORKER))]
    if not files or not files[0].name.endswith(WORKER):
        raise WrongSetting("--from amb-csv", str(path), f"a folder of *{WORKER} and *{MASTER}, or one of these files")
    runs, notes = [], [rounds.FIRST]
    for file in files:
        trace, later = _run(file, about)
        runs.append(trace)
        notes += [f"{file.name}: {later} rows left out, of rounds past the last one of the master"] * (later > 0)
    return runs, notes


def _run(path: Path, about: About) -> tuple[Trace, int]:
    """A run, and the number of rows past its last round."""
    worker = _table(path, ("step", "rank", "num_samples", "compute_time"))
    master_path = path.with_name(path.name.replace(WORKER, MASTER))
    times_s = _table(master_path, ("step", "time")).set_index("step")["time"]
    if list(times_s.index) != list(range(1, len(times_s) + 1)) or (times_s.diff() <= 0).any():
        raise WrongSetting(f"{master_path}: step", "steps or times out of order", "steps 1, 2, 3, ... at rising times")
    work = worker[worker["step"] <= len(times_s)].rename(columns={"num_samples": "samples", "compute_time": "busy_s"})
    first_s = work["busy_s"][work["step"] == 1].max()  # when the session began to train is not logged
    ends_s = (times_s - times_s.min() + first_s).tolist()
    trace = rounds.trace(work, ends_s, about.workload, about.stragglers, path.name.removesuffix(WORKER))
    return trace, len(worker) - len(work)


def _table(path: Path, columns: tuple[str, ...]):
    table = tables.read(path, "--from amb-csv", columns)
    if missing := set(columns) - set(table.columns):
        raise WrongSetting(f"{path}: columns", ", ".join(missing), f"each of {', '.join(columns)}")
    allowed = f"numbers from 0 to {MOST:g}, of which {', '.join(WHOLE)} are whole: {', '.join(columns)}"
    return tables.whole_table(table[list(columns)], path, allowed, MOST, WHOLE)
