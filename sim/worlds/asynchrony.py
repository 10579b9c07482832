"""Ranks that wait for nobody: gradients posted while computing goes on, the newest parameters taken up, delayed messages."""

from __future__ import annotations

import heapq

from sim.worlds.serving import CLOCK_S, ENDLESS


class Asynchrony:
    """Verbs for every world in which messages come one by one. The world gives `arrival`, `hold`, `begin_minibatch`,
    `compute_partition`, `run_out` and what `me` has."""

    def begin_asynchrony(self, delays) -> None:
        """Set up; `delays` are the induced ones of messages in order of arrival, seconds, or None."""
        self._delays, self._delayed, self._came = delays, [], 0
        self._over = False
        self.oldest = 0  # version of the parameters that the gradient was begun on

    def newest(self, peer: int):
        """Take up the last of the parameters that have come from `peer`, if any have; whether training goes on.

        Only the first are waited for.
        """
        wait = self._rounds_begun == 0
        self.begin_round()
        yield from self._renew(peer, wait)
        if self._over:
            yield from self.post_note(peer, last=True)
        return not self._over

    def compute_renewing(self, deadline_s: float, partitions: int, peer: int):
        """Partitions while there is time, at least one, each on the newest parameters that have come from `peer`."""
        yield from self.begin_minibatch()
        for done in range(partitions):
            if done and deadline_s - self.now_s <= CLOCK_S:
                return
            if done:
                yield from self._renew(peer)
            yield from self.compute_partition(done, partitions)
        if deadline_s - self.now_s > CLOCK_S:
            self.run_out()

    def incoming(self, peers, until_s: float = ENDLESS):
        """The next message from one of `peers` whose induced delay is over; None if there is none by `until_s`.

        As in the AMB repository, the delay begins when the message is received, and they come in the order in which they
        expire. The last message is not delayed.
        """
        if self._delays is None:
            return (yield from self.arrival(peers, until_s))
        while True:
            due_s = self._delayed[0][0] if self._delayed else ENDLESS
            if due_s - self.now_s <= CLOCK_S:
                return heapq.heappop(self._delayed)[-1]
            message = yield from self.arrival(peers, min(due_s, until_s))
            if message is None and until_s - self.now_s <= CLOCK_S:
                return None
            if message is not None and message.last:
                return message
            if message is not None:
                heapq.heappush(self._delayed, (self.now_s + self._delays[self._came], self._came, self.hold(message)))
                self._came += 1

    def _renew(self, peer: int, wait: bool = False):
        """Take up the last of the parameters that have come, if any have; or wait for some."""
        news = None
        while not self._over:
            message = yield from self.incoming([peer], until_s=ENDLESS if wait else self.now_s)
            if message is None:
                break
            wait, self._over = False, message.last
            news = news if message.last else message
        if news is not None:
            yield from self.take_up(news)
