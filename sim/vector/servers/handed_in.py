"""Verbs of the vector world of workers that send servers a gradient, and sum other variables among themselves before servers let them go.

What they do after their gradients are sent is only noted: messages of servers and of the allreduce pass the same ports, and are settled
together once all is known (sim.vector.servers.hybrid_round).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from sim import collectives
from sim.model.sizes import ITEM_BYTES
from sim.vector.calls import Calls, TooMany
from sim.vector.servers.barrier_round import Clocks
from sim.vector.servers.hybrid_round import Hybrid, Round, Sum, Workers
from sim.vector.servers.serving import Serving
from sim.vector.shared.mixed import Mixed, Noted
from sim.vector.shared.wires import same

ORDER = "the text does not hand in a gradient, sum and update the other variables once if there are any, and then collect notes"

UPDATE_ALONE = "servers do something else than update, between the last gradient and their notes"


class HandedIn(Serving):
    """Verbs of all workers, or of all servers; clocks have the shape (replications, ranks)."""

    arrived: deque[HandedIn]  # the workers whose gradients are on their way to these servers
    handed_in = False  # gradients are on their way, and nobody has been let go
    _algorithm: str | None = None  # of the allreduce, once the text is past it
    _updates = False  # and past the update
    sent_samples: np.ndarray  # of the gradients that were sent to servers
    _round: Round | None = None  # as it is foreseen

    def hand_in(self):
        """Send all servers the gradient, and go on."""
        if self.world.scenario.served:
            servers = self.world.master.ranks
            settles = self.world.crowd is None or self.world.mixed is not None
            self._only(self is self.world.workers and settles and self._has_computed(servers))
            self.handed_in, self._algorithm, self._updates = True, None, False
            self.sent_samples = self.samples
        self.at_hand.handed_on()
        yield from self._did()

    def allreduce(self, algorithm: str = "auto", fused: bool = True):
        """As without servers; or, where gradients were handed in, what is settled with these."""
        if not self.handed_in:
            yield from super().allreduce(algorithm, fused)
            return
        self.sum_later(algorithm, fused)
        yield from self._did()

    def sum_later(self, algorithm: str, fused: bool) -> None:
        """An allreduce before servers let workers go."""
        self._in_order(self._algorithm is None and fused and bool(self.world.scenario.summed))
        self.at_hand.begin_sum()
        self._algorithm = algorithm
        self._all_samples()

    def update_later(self) -> None:
        """Workers update what they have summed."""
        self._in_order(self.handed_in and self._algorithm is not None and not self._updates)
        self.at_hand.begin_update(self.samples, self.step, None)
        self._updates, self.samples = True, self._no_samples

    def collect(self, servers):
        """A note from each of all servers, to which gradients were handed in."""
        if not len(servers):
            return
        summed = self._updates or (self._algorithm is None and not self.world.scenario.summed)
        mixed = self.world.mixed
        all_of_them = mixed is not None or list(servers) == list(self.world.master.ranks)
        self._in_order(self.handed_in and summed and all_of_them)
        self.world.master.arrived.append(self)
        if mixed is not None:
            yield from self._note(mixed)
            return
        yield from self._did()
        yield from self._until_notes()
        self.notes.pop()
        assert self._round is not None  # or else there would be no note
        self.now_s, self._out_free_s, self._in_free_s = self._round.workers
        self._warm_s, self._last_reach_s = self._round.warm_s, self._round.last_reach_s
        self.pulled = self._computes = self.handed_in = False
        yield from self._did()

    def _note(self, mixed: Mixed):
        """Note the step, and go on to the next while servers have made all but this one."""
        mixed.noted.append(Noted(self.now_s, self.computing(self.step), self.updating(self.step)))
        self.now_s = np.zeros_like(self.now_s)  # since the last note, which is not here yet
        self.pulled = self._computes = self.handed_in = False
        yield from self._did()
        while mixed.is_ready(False) and self.step < self.world.rounds[-1]:
            yield

    def _settle_mixed(self, mixed: Mixed) -> None:
        """All gradients of a step are added."""
        others = self.arrived.popleft()
        steps = range(self.step, self.step + len(mixed.noted))
        found = self._settled(mixed.settle, [self.updating(step) for step in steps])
        self.now_s = found.added_s
        self._wait_each(found.waits)
        for wait in found.of_workers:
            others._wait(*wait)

    def _settle_hybrid(self) -> None:
        """All gradients are added; what servers do then is foreseen, for their notes meet messages of the allreduce."""
        others = self.arrived.popleft()
        serving = Clocks(self.now_s, self._out_free_s, self._in_free_s), self.speeds
        working = Clocks(others.now_s, others._out_free_s, others._in_free_s)
        last_s = np.broadcast_to(others._last_reach_s, others.now_s.shape)
        workers = Workers(working, others.speeds, last_s, others.requests_s, others.computed_s, others.sum_of())
        found = self._settled(Hybrid(self._sizes, serving, self.updated_s, workers).settle)
        self.now_s, self._out_free_s, self._in_free_s = found.served.clocks
        self._in_place, self._round, others._round = found.served.added, found, found
        self._wait_each(found.served.waits)
        for from_s, to_s, ranks in found.waits:
            others._wait(from_s, to_s, ranks)

    def _check_foreseen(self, notes_s: np.ndarray) -> None:
        """Servers post notes when that was foreseen."""
        if self._round is not None and not same(notes_s, self._round.notes_s):
            raise self.world.refuse(UPDATE_ALONE)

    def sum_of(self) -> Sum | None:
        """The allreduce that workers have noted."""
        if self._algorithm is None:
            return None
        costs, scenario = self.world.scenario.costs, self.world.scenario
        (whole,) = collectives.pieces(scenario.summed, True)
        assert isinstance(self.collectives, Calls)  # ranks that share hosts are settled by Mixed
        try:
            plan = self.collectives.plan(self.collectives.named(self._algorithm, whole), [whole])
        except TooMany as error:
            raise self.world.refuse(str(error)) from None
        core_s = (scenario.workers > 1) * costs.negotiate_s + costs.call(ITEM_BYTES * (whole.stop - whole.start))

        def begun_s(now_s: np.ndarray) -> np.ndarray:
            return now_s + costs.agree_s + self._seconds(core_s)

        def updated_s(now_s: np.ndarray) -> np.ndarray:
            return now_s + self._seconds(self._update_s(now_s, self._computed_s))

        return Sum(plan, scenario.network, costs.reduce(plan.size_bytes), costs.agree_s, begun_s, updated_s)

    def _in_order(self, does: bool) -> None:
        if not does:
            raise self.world.refuse(ORDER)
