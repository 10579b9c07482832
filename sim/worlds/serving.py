"""How a server ends: the verb `take` and the last messages, for every world in which messages come one by one.

Every gradient is owed exactly one answer. The first server, the chief, counts updates; when training is over it answers
with a last message, and a worker that gets one says good-bye to the other servers, which answer what they still owe.
"""

from __future__ import annotations

import math


class Serving:
    """Verbs of a rank that may be a server or its worker. The world gives `arrival`, `post_last` and what `me` has."""

    def begin_serving(self, updates: float) -> None:
        """Set up; `updates` is how many the chief makes, infinite for the others."""
        self.updates_left, self.staleness, self.taken = updates, 0, None
        self._owed: set[int] = set()
        self._gone: set[int] = set()

    def take(self, workers):
        """The next gradient that comes from one of `workers`: its sender, and None once training is over for all."""
        if self.updates_left <= 0:
            yield from self._dismiss(workers)
            return None
        while len(self._gone) < len(workers):
            message = yield from self.arrival(workers)
            if not message.last:
                self._owed.add(message.sender)
                self.taken, self.staleness = message, self.version - message.version
                return message.sender
            yield from self._part(message.sender)
        return None

    def to_answer(self, workers) -> list[int]:
        """Those of `workers` that have not left, who are then owed nothing more."""
        staying = [w for w in ([workers] if isinstance(workers, int) else workers) if w not in self._gone]
        self._owed.difference_update(staying)
        return staying

    def updated(self) -> None:
        """An update has been made."""
        self.updates_left -= 1

    def collect(self, servers):
        """One answer from each of `servers`; whether training goes on, which the first of them says."""
        missing, goes_on = set(servers), True
        while missing:
            message = yield from self.arrival(missing)
            missing.remove(message.sender)
            if message.last and message.sender == servers[0]:
                goes_on = False
                for other in servers[1:]:
                    yield from self.post_last(other)
            elif not message.last:
                yield from self.take_up(message)
        return goes_on

    def _dismiss(self, workers):
        """Tell all workers that training is over: who waits at once, who computes when its gradient comes."""
        for worker in sorted(self._owed):
            yield from self._part(worker)
        while len(self._gone) < len(workers):
            message = yield from self.arrival(workers)
            self._owed.add(message.sender)
            yield from self._part(message.sender)

    def _part(self, worker: int):
        self._gone.add(worker)
        if worker in self._owed:
            self._owed.remove(worker)
            yield from self.post_last(worker)


ENDLESS = math.inf
