"""A worker's record of its steps, as the activities of any other run, and the trace that the chief makes of all records."""

from __future__ import annotations

from collections import Counter

import numpy as np

from real.recording.recorder import Recorder
from sim.job.replay import protocol_of
from sim.job.scenario import Scenario
from sim.recording.traces import Activity, Trace


class Clocks:
    """Converts wall clocks of this host and of the servers to seconds since the start of the run.

    Args:
        begun_s: the start, by server 0's wall clock.
        offsets_s: from this host's wall clock to each server's, shape (servers,).
    """

    def __init__(self, begun_s: float, offsets_s: list[float]):
        self._start_s = begun_s - offsets_s[0]  # by this host's clock
        self._offsets_s = offsets_s

    def here(self, wall_s: float) -> float:
        """Seconds since the common start of a reading of this host's clock."""
        return float(wall_s) - self._start_s

    def there(self, server: int, wall_s: float) -> float:
        """Seconds since the common start of a reading of a server's clock."""
        return float(wall_s) - self._offsets_s[server] - self._start_s


class Transcript:
    """One worker's steps, and its observations of the servers, which keep no record themselves."""

    def __init__(self, scenario: Scenario, task: int, clocks: Clocks, recorder: Recorder):
        self.scenario, self.task, self.clocks, self.recorder = scenario, task, clocks, recorder
        self.rank = scenario.servers + task
        self._tokens = scenario.protocol.way == "synchronous"
        self._label = 0  # of its next gradient, if it takes tokens

    def add(self, step: int, start_s: float, slept_s: float | None, done: dict, end_s: float) -> None:
        """Keep a step.

        Args:
            start_s, slept_s, end_s: readings of this host's clock; slept_s is None without a sleep.
            done: what Replica.step gave.
        """
        here, batch, sizes = self.clocks.here, self.scenario.batch, self.scenario.traffic.server_bytes
        version, now_s = int(done["version"]), here(start_s)
        if slept_s is not None:
            now_s = self._row(step, "sleep", now_s, here(slept_s), version=version)
        now_s = self._row(step, "input", now_s, here(done["began"]), batch, version=version)
        for server in np.argsort(done["pulled"]):
            about = (0, sizes[server], int(server), version)
            now_s = self._row(step, "receive", now_s, here(done["pulled"][server]), *about)
        now_s = self._row(step, "compute", now_s, here(done["computed"]), batch, version=version)
        arrived_s = [self.clocks.there(k, s) for k, s in enumerate(done["arrived"])]
        for server in np.argsort(arrived_s):
            now_s = self._row(step, "send", now_s, arrived_s[server], 0, sizes[server], int(server), version)
        self._row(step, "wait", now_s, here(end_s), version=version)
        applied_s = [self.clocks.there(k, s) for k, s in enumerate(done["applied"])]
        self._served(int(done["after"]), version, arrived_s, applied_s)

    def evaluated(self, step: int, start_s: float, end_s: float, samples: int, version: int) -> None:
        """Keep an evaluation after a step; readings of this host's clock."""
        self._row(step, "evaluate", self.clocks.here(start_s), self.clocks.here(end_s), samples, version=version)

    def _served(self, after: int, version: int, arrived_s: list[float], applied_s: list[float]) -> None:
        """The treatment of the gradient by each server."""
        label, self._label = (self._label, after) if self._tokens else (version, 0)
        for server, (begin_s, end_s) in enumerate(zip(arrived_s, applied_s, strict=True)):
            about = (self.scenario.batch, self.scenario.traffic.server_bytes[server])
            reduced_s = end_s if self._tokens else begin_s  # an optimiser adds nothing up
            self._add(server, after, "reduce", begin_s, reduced_s, *about, self.rank, label)
            if not self._tokens:
                self._add(server, after, "update", begin_s, end_s, *about, self.rank, after)

    def updated(self, made: dict) -> None:
        """An update of all servers, of gradients that they had added up; what Replica.update gave."""
        samples = self.scenario.global_batch
        for server, (taken_s, updated_s) in enumerate(zip(made["taken"], made["updated"], strict=True)):
            times = self.clocks.there(server, taken_s), self.clocks.there(server, updated_s)
            self._add(server, 0, "update", *times, samples, self.scenario.traffic.server_bytes[server])

    def account(self) -> dict:
        """All rows of this process, for the chief, and its processor time."""
        self.recorder.close()
        return {"rank": self.rank, "rows": self.recorder.activities, "cpu_s": self.recorder.cpu_s}

    def _row(self, step: int, activity: str, start_s: float, end_s: float, *about, version: int | None = None) -> float:
        """Add a row of this worker's; its end, which is not before its start: clocks of several hosts differ a little."""
        end_s = max(start_s, end_s)
        named = {} if version is None else {"version": version}
        self.recorder.add(Activity(start_s, end_s, self.rank, step, activity, *about, **named))
        return end_s

    def _add(self, server: int, step: int, activity: str, start_s: float, end_s: float, *about) -> None:
        self.recorder.add(Activity(start_s, max(start_s, end_s), server, step, activity, *about))


def joined(scenario: Scenario, replication: int, accounts: list[dict], recorded: dict) -> Trace:
    """The trace of a run from the accounts of its processes, by rank.

    Args:
        recorded: what else its header holds.
    """
    rows = [Activity(*row) for account in accounts for row in account["rows"]]
    cpu_s = {str(account["rank"]): account["cpu_s"] for account in accounts}
    header = scenario.header("tensorflow", replication, cpu_s=cpu_s, **recorded)
    return Trace.of(header, _ordered(rows, scenario.servers, scenario.protocol.gradients_per_update(scenario.workers)))


def renumbered(trace: Trace) -> Trace:
    """A trace that was joined from workers' parts, with its servers' updates numbered."""
    rows = [Activity(*row) for row in trace.rows.itertuples(index=False, name=None)]
    needed = protocol_of(trace.header).gradients_per_update(trace.header.workers)
    return Trace.of(trace.header, _ordered(rows, trace.header.servers, needed))


def _ordered(rows: list[Activity], servers: int, needed: int) -> list[Activity]:
    numbered = [row for k in range(servers) for row in _numbered([row for row in rows if row.rank == k], needed)]
    return [row for row in rows if row.rank >= servers] + numbered


def _numbered(rows: list[Activity], needed: int) -> list[Activity]:
    """A server's rows, its updates numbered in order, without gradients that came too late.

    An accumulator does not report whether it took a gradient. It takes those of the step that its tokens are of, the first ones, as many
    as an update needs. Clocks do not tell: one may be read long after the gradient was taken.

    Args:
        needed: gradients that an accumulator takes for an update.
    """
    numbered, made, taken = [], 0, Counter[int]()
    tokens = any(row.activity == "reduce" and row.end_s > row.start_s for row in rows)
    for row in sorted(rows, key=lambda row: (row.end_s, 1) if row.activity == "update" else (row.start_s, 0)):
        if row.activity == "update":
            made += 1
            numbered.append(row._replace(step=made - 1, version=made))
        elif not tokens:
            numbered.append(row._replace(step=made))
        elif taken[row.version] < needed:
            taken[row.version] += 1
            numbered.append(row._replace(step=row.version))
    return numbered
