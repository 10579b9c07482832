"""How servers and workers meet and part: parameters pulled, gradients pushed, notes, and the last messages.

Every gradient is owed exactly one acknowledgement, every request the parameters. The first server, the chief, counts
updates; when training is over it tells every worker, a worker that is told says good-bye to all servers, and each server
listens until all have, answering what it owes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sim.errors import WrongText

if TYPE_CHECKING:
    from sim.scenario import Groups

ENDLESS = math.inf
NO_PARAMETERS_COME = "me.receive takes up parameters: a master has me.gather, or me.take and me.add, for gradients"
NOTHING_TO_UPDATE = "me.update is for ranks that hold parameters: the master, servers, or workers that sum them"
CLOCK_S = 1e-9  # time left counts as none below the clock's resolution, so that all worlds round alike


class Serving:
    """Verbs of a rank that may be a server or its worker. The world gives `arrival`, `post_note`, `begin_update` and
    what `me` has."""

    def begin_serving(self, updates: float) -> None:
        """Set up; `updates` is how many the chief makes, infinite for the others."""
        self.updates_left, self.staleness = updates, 0
        self.over, self.let_go_at = False, 0
        self._rounds_begun = 0
        self._owed: set[int] = set()
        self._gone: set[int] = set()

    def begin_aggregating(self, groups: Groups) -> None:
        """Set up who sends for whom."""
        mine = groups.of.get(self.rank, [self.rank])
        self.senders, self.leader = groups.senders, mine[0]
        self.neighbours = mine[1:] if self.rank == self.leader else []
        self.aggregators = self.servers if self.rank == self.leader else [self.leader]

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

    def number_update(self) -> None:
        """An update is about to be made; where the order of arrival matters, updates number the steps.

        Raises:
            WrongText: this rank has nothing to update, or not now.
        """
        if not self.scenario.updated_bytes(self.rank):
            raise WrongText(NOTHING_TO_UPDATE)
        by_arrival = self.scenario.protocol.arrival_order_matters
        self.begin_update(self.samples, self.step, None if by_arrival or self.rank else self.version)
        if by_arrival:
            self.step = self.version

    def updated(self) -> None:
        """An update has been made."""
        self.updates_left -= 1

    def receive(self, peers):
        """Wait for the parameters that each of `peers` holds, and take them up; whether training goes on.

        Raises:
            WrongText: this rank is a server.
        """
        if self.rank in self.servers:
            raise WrongText(NO_PARAMETERS_COME)
        self.begin_round()
        yield from self._collect([peers] if isinstance(peers, int) else peers)
        return not self.over

    def let_go(self, workers, version: int | None = None):
        """Acknowledge gradients of `workers`, who go on; `version` is the token that each gets."""
        for worker in self.to_answer(workers):
            yield from self.post_note(worker, version=version)

    def pull(self, servers):
        """Ask each of `servers` for its parameters, and take them up as they come."""
        for server in servers:
            yield from self.post_note(server)
        yield from self._collect(servers)

    def push(self, servers, version: int | None = None):
        """Send the gradient and wait until each of `servers` has let this worker go; whether training goes on.

        Args:
            version: of the parameters that the gradient counts as made on, if not of those that were pulled.
        """
        if not self.over:
            self.version = self.version if version is None else version
            yield from self.send(servers)
            yield from self._collect(servers)
        self.step += 1
        return not self.over

    def hand_in(self):
        """Send the gradient, added to those of the neighbours, to the servers, or to the one who sends for this rank; then the
        gradient at hand is this rank's own again."""
        own, missing = (self.samples, self.minibatches), set(self.neighbours)
        while missing:  # who has handed in goes on, and may send pieces of an allreduce already
            missing.remove((yield from self.take(missing)))
            yield from self.add()
        yield from self.send(self.aggregators)
        self.samples, self.minibatches = own

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
        """One answer from each of `servers`: parameters, which are taken up, or a note; the chief's last ends training."""
        missing = set(servers)
        while missing:
            message = yield from self.arrival(missing)
            missing.remove(message.sender)
            is_chief = message.sender == self.servers[0]
            if message.last and is_chief:
                self.over = True
                for server in self.servers:
                    yield from self.post_note(server, last=True)
            elif not message.note:
                yield from self.take_up(message)
            elif is_chief:
                self.let_go_at = message.version

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
