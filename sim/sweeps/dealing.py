"""Jobs are dealt to a pool in chunks, and rows come back; a dead process's jobs are dealt again, one by one."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from itertools import islice

from sim.sweeps.jobs import Job
from sim.sweeps.pools import Given, Here, Own
from sim.sweeps.work import Task, said, work

CHUNK_S, MOST_IN_CHUNK = 0.5, 64  # duration of a chunk, and its scenarios
AHEAD = 2  # chunks in hand for each process, so that none waits for the next
KILLED = "its process died twice, the second time with nothing else to do: out of memory, or killed"


class Dealing:
    """All that is under way.

    Args:
        jobs: that have a scenario.
        pool: that simulates them, opened.
        left_s: says how many seconds are left, after which no row is waited for.
    """

    def __init__(self, jobs: Iterable[Job], pool: Here | Own | Given, left_s: Callable[[], float] = lambda: math.inf):
        self.pool, self._left_s = pool, left_s
        self._left, self._suspects = deque(jobs), deque[Job]()
        self._pending: dict[Future, list[Job]] = {}
        self._alone = False  # one suspect is under way, and nothing besides
        self._count, self._took_s = 0, 0.0

    def rows(self) -> Iterator[list[dict]]:
        """Rows as they come."""
        try:
            while (self._left or self._suspects or self._pending) and (left_s := self._left_s()):
                try:
                    self._deal()
                    longest_s = None if left_s == math.inf else left_s
                    for future in wait(self._pending, longest_s, FIRST_COMPLETED).done:
                        yield self._taken(future)
                except BrokenExecutor:
                    yield from self._after_a_death()
        finally:
            for future in self._pending:
                future.cancel()

    def _deal(self) -> None:
        """Submit as much as may be under way."""
        if self._suspects:
            if not self._pending:
                self._submit(self._suspects, 1)
                self._alone = True
        elif not (self._alone and self._pending):
            self._alone = False
            while self._left and len(self._pending) < self._window:
                self._submit(self._left, self._size())

    @property
    def _window(self) -> int:
        return AHEAD * self.pool.processes if self.pool.processes > 1 else 1

    def _size(self) -> int:
        """Jobs of the next chunk: fewer towards the end, so that all processes end together."""
        by_time = CHUNK_S * self._count / self._took_s if self._took_s else 1
        by_share = math.ceil(len(self._left) / (AHEAD * self.pool.processes))
        return max(1, min(MOST_IN_CHUNK, int(by_time), by_share))

    def _submit(self, jobs: deque[Job], count: int) -> None:
        """The next `count` of these jobs; one by one, if one of them cannot travel."""
        chunk = list(islice(jobs, count))
        try:
            packed = self.pool.pack([Task(job.digest, job.scenario, job.how) for job in chunk if job.scenario])
        except Exception as error:
            if len(chunk) > 1:
                self._submit(jobs, 1)
                return
            future: Future = Future()
            future.set_result(
                [{"digest": chunk[0].digest, "error": f"not to be sent to another process: {said(error)}"}]
            )
        else:
            future = self.pool.submit(work, [job.digest for job in chunk], packed)
        self._pending[future] = chunk
        for _ in chunk:
            jobs.popleft()

    def _taken(self, future: Future) -> list[dict]:
        """The rows of a chunk.

        Raises:
            BrokenExecutor: its process died.
        """
        try:
            rows = future.result()
        except BrokenExecutor:
            raise
        except Exception as error:  # of the executor's own, on the way there or back
            rows = [{"digest": job.digest, "error": said(error)} for job in self._pending[future]]
        del self._pending[future]
        self._count += len(rows)
        self._took_s += sum(row.get("wall_s", 0.0) for row in rows)
        return rows

    def _after_a_death(self) -> Iterator[list[dict]]:
        """Deal the interrupted jobs again, each alone; a job that was alone is the one that kills."""
        for future in [future for future in self._pending if future.done() and not future.exception()]:
            yield self._taken(future)
        lost = [job for chunk in self._pending.values() for job in chunk]
        self._pending.clear()
        self.pool.reopen()
        if self._alone:
            yield [{"digest": job.digest, "error": KILLED} for job in lost]
        elif lost:
            print(
                f"a process died; {len(lost)} scenarios are simulated again, one by one",
                file=sys.stderr,
            )
            self._suspects.extend(lost)
