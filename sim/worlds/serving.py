"""How servers and workers meet and part: gradients taken, parameters collected, notes, and the last messages.

Every gradient is owed exactly one answer. The first server, the chief, counts updates; when training is over it tells every
worker, a worker that is told says good-bye to all servers, and each server listens until all have, answering what it owes.
"""

from __future__ import annotations

import math

ENDLESS = math.inf
CLOCK_S = 1e-9  # time left counts as none below the clock's resolution, so that all worlds round alike


class Serving:
    """Verbs of a rank that may be a server or its worker. The world gives `arrival`, `post_note` and what `me` has."""

    def begin_serving(self, updates: float) -> None:
        """Set up; `updates` is how many the chief makes, infinite for the others."""
        self.updates_left, self.staleness, self.taken = updates, 0, None
        self._rounds_begun = 0
        self._owed: set[int] = set()
        self._gone: set[int] = set()

    def begin_round(self) -> None:
        """A worker's next step begins."""
        self.step, self._rounds_begun = self._rounds_begun, self._rounds_begun + 1

    def take(self, workers, until_s: float = ENDLESS):
        """The next gradient that comes from one of `workers`: its sender, and None once training is over for all.

        None too when `until_s` has come, even if more gradients have. A worker that asks for parameters meanwhile is
        answered at once.
        """
        if self.updates_left <= 0:
            yield from self._dismiss(workers)
        while len(self._gone) < len(workers) and until_s - self.now_s > CLOCK_S:
            message = yield from self.incoming(workers, until_s)
            if message is None:
                return None
            if message.last:
                yield from self._part(message.sender)
            elif message.note:
                yield from self.answer(message.sender)
            else:
                self._owed.add(message.sender)
                self.taken, self.staleness = message, self.version - message.version
                return message.sender
        return None

    def to_answer(self, workers) -> list[int]:
        """Those of `workers` that have not left, who are then owed nothing more."""
        staying = [w for w in ([workers] if isinstance(workers, int) else workers) if w not in self._gone]
        self._owed.difference_update(staying)
        return staying

    def updated(self) -> None:
        """An update has been made."""
        self.updates_left -= 1

    def receive(self, peers):
        """Wait for the parameters that each of `peers` holds, and take them up; whether training goes on."""
        self.begin_round()
        return (yield from self._collect([peers] if isinstance(peers, int) else peers))

    def let_go(self, workers, version: int | None = None):
        """The first server has `workers` go on at its version, or at `version`; a single one hands them its parameters too."""
        if len(self.servers) == 1:
            yield from self.answer(workers, version)
            return
        for worker in self.to_answer(workers):
            yield from self.post_note(worker, version=version)

    def pull(self, servers):
        """Wait until the first of `servers` lets this worker go on, then read from all; whether training goes on."""
        if len(servers) == 1:
            return (yield from self.receive(servers))
        self.begin_round()
        if not (yield from self._collect(servers[:1])):
            yield from self._collect(servers[1:])
            return False
        let_go_at = self.version
        for server in servers:
            yield from self.post_note(server)
        goes_on = yield from self._collect(servers)
        self.version = let_go_at
        return goes_on

    def tell(self, peer: int):
        """Give a server a note, which carries nothing."""
        yield from self.post_note(peer)

    def hear(self, peers):
        """Wait for a note from each of `peers`."""
        missing = set(peers)
        while missing:
            note = yield from self.arrival(missing)
            missing.remove(note.sender)

    def _collect(self, servers):
        """One answer from each of `servers`; whether training goes on, which the chief says."""
        missing, goes_on = set(servers), True
        while missing:
            message = yield from self.arrival(missing)
            missing.remove(message.sender)
            if message.last and message.sender == self.servers[0]:
                goes_on = False
                for server in self.servers:
                    yield from self.post_note(server, last=True)
            elif message.note and not message.last:
                self.version = message.version
            elif not message.note:
                yield from self.take_up(message)
        return goes_on

    def _dismiss(self, workers):
        """Tell all workers that training is over, and drop what they send until each has said good-bye."""
        for worker in workers:
            yield from self.post_note(worker, last=True)
        while len(self._gone) < len(workers):
            message = yield from self.arrival(workers)
            if message.last:
                self._gone.add(message.sender)

    def _part(self, worker: int):
        """Answer what is owed to a worker that has said good-bye."""
        self._gone.add(worker)
        if worker in self._owed:
            self._owed.remove(worker)
            yield from self.post_note(worker, last=True)
