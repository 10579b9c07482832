"""A server that takes the first gradients and drops late ones: from one update to the next, in every replication.

Each worker does one thing after another, whatever the update. When the server updates, a worker's gradient is among those added, or it
is on its way, or a request is. So a worker has at most one of each in a round: a late gradient of older parameters, a note, a request,
an answer, a gradient of the newest parameters. The round ends when enough of the last are added. All is reckoned anew with when messages
came, until that stays (sim.vector.shared.wires); what a server would do after the round is left to the next one.

All that workers send is to one server. So it takes the messages of a host in the order in which they leave, and those that it has not
taken are played again in the next round, behind what a neighbour has sent meanwhile.
"""

from __future__ import annotations

import numpy as np

from sim.model.sparse_rows import HEADER_BYTES
from sim.vector.barrier_round import Sizes
from sim.vector.shared.barrier import Ranks, Taken, leads_s, take, taken_s
from sim.vector.shared.wires import Passed, Wires, settle
from sim.vector.ties import check_apart

KINDS = range(5)
NOTE, LATE, REQUEST, ANSWER, GRADIENT = KINDS
UP = [LATE, REQUEST, GRADIENT]  # from workers to the server
DOWN = [NOTE, ANSWER]


class Backup:
    """A server and workers of one scenario.

    Args:
        scenario: of one server, that holds dense variables.
        replications: how many there are.

    Attributes:
        steps: the number of each worker's minibatch, from 0, shape (replications, workers).
    """

    def __init__(self, scenario, replications: int):
        hosts, workers = np.array(scenario.hosts), scenario.workers
        self._needed = scenario.protocol.gradients_per_update(workers)
        self._workers, self._hosts, self._shape = workers, hosts, (replications, workers)
        self._away = hosts[1:] != hosts[0]
        self._sizes, self._link, local = Sizes.of(scenario), scenario.network, scenario.cluster.local
        load = scenario.traffic.loads(0)[0]
        sizes_bytes = HEADER_BYTES, load.request_bytes, load.answer_bytes, load.gradient_bytes
        self._note_s, self._request_s, self._answer_s, self._gradient_s = (
            taken_s(self._away, self._link, local, size_bytes) for size_bytes in sizes_bytes
        )
        server, each = np.zeros(workers, int), np.arange(1, workers + 1)
        senders, receivers = (
            np.concatenate([one if kind in DOWN else other for kind in KINDS])
            for one, other in ((server, each), (each, server))
        )
        of_kind = {NOTE: HEADER_BYTES, REQUEST: load.request_bytes, ANSWER: load.answer_bytes}
        port_s = [self._link.occupancy_s(of_kind.get(kind, load.gradient_bytes)) for kind in KINDS]
        self._wires = Wires(
            senders, receivers, hosts, np.repeat(port_s, workers), self._link.latency_s, local.latency_s
        )
        self._leads_s = leads_s(self._link, local)
        self._free_s = (np.zeros((replications, hosts.max() + 1)),) * 2
        self._never_s = np.full((replications, len(KINDS), workers), np.inf)
        self._called_s = self._never_s  # of what has been sent before the round
        self._place = np.zeros(self._never_s.shape)
        self._from_s = np.zeros(self._shape)  # since when workers wait
        self._begins = np.ones(self._shape, bool)  # workers whose first request is still to come
        self.steps = np.zeros(self._shape, int)

    def settle(self, servers: Ranks, workers: Ranks):
        """A round until enough gradients are added; see sim.vector.shared.barrier.Crowd.

        Raises:
            Unsettled: two messages come at one instant, and which is first cannot be told.
        """

        def go_on(passed: Passed, _called_s: np.ndarray, _place: np.ndarray):
            served, taken = self._serve(passed, servers)
            found_s, in_place = self._after(served, taken)
            return found_s, in_place, (served, taken, *self._work(passed, served, servers.speeds, workers, found_s))

        before = self._called_s, self._place, self._free_s, self._never_s
        called_s, _, passed, (served, taken, notes, answers, left_s) = settle(self._wires, *before, go_on)
        self._check(called_s, passed.reach_s)
        over_s = np.where(taken, served.done_s, -np.inf).max(axis=2)
        in_turn = np.arange(served.place.shape[2]) < np.count_nonzero(taken, axis=2)[:, :, None]
        waits = tuple(np.where(in_turn, one, 0.0) for one in served.waits)
        by_kind = taken.reshape(len(taken), len(UP), -1)
        self._carry_on(passed, called_s, by_kind, left_s)
        self._added_place = np.where(by_kind[:, 2], served.place[:, 0, -self._workers :], len(UP) * self._workers)
        return over_s, waits, [self._waits(*one) for one in (notes, answers)]

    def _serve(self, passed: Passed, servers: Ranks) -> tuple[Taken, np.ndarray]:
        """The server takes what comes, and what of that it takes before enough gradients are added; those of workers in UP's order."""
        overhead_s = self._away * self._sizes.overhead_s
        core_s = [self._gradient_s + overhead_s, self._request_s + overhead_s, self._gradient_s + self._sizes.reduce_s]
        come_s = [one[:, UP].reshape(len(one), 1, -1) for one in passed[1:]]
        core_s = np.concatenate(core_s) / servers.speeds[:, :, None]
        served = take(np.tile(np.arange(self._workers), len(UP)), come_s, servers.now_s, core_s)
        gradients = np.sort(served.place[:, :, -self._workers :], axis=2)
        counts = served.done_s[:, :, -self._workers :] < np.inf
        last = np.take_along_axis(gradients, np.full((len(gradients), 1, 1), self._needed - 1), 2)
        enough = np.count_nonzero(counts, axis=2)[:, :, None] >= self._needed
        taken = (served.place <= np.where(enough, last, served.place.shape[2])) & (served.done_s < np.inf)
        return served, taken

    def _after(self, served: Taken, taken: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """When what is sent in the round comes to ports, as far as the server sends it, and its place among what it sends."""
        found_s, place = self._called_s.copy(), self._place.copy()
        done_s = np.where(taken, served.done_s, np.inf).reshape(len(taken), len(UP), -1)
        in_place = (served.place + self._workers).reshape(done_s.shape)  # behind the notes before
        late = self._called_s[:, LATE] < np.inf
        found_s[:, NOTE] = np.where(late, done_s[:, 0], found_s[:, NOTE])
        place[:, NOTE] = np.where(late, in_place[:, 0], place[:, NOTE])
        found_s[:, ANSWER], place[:, ANSWER] = done_s[:, 1], in_place[:, 1]
        return found_s, place

    def _work(self, passed: Passed, served: Taken, server_speeds: np.ndarray, workers: Ranks, found_s: np.ndarray):
        """Workers go on with what comes; `found_s` gets when they send.

        Returns:
            Waits for notes and answers: from, to, and whether there are any; when the gradient has left, and the late one.
        """
        speeds, overhead_s = workers.speeds, self._away * self._sizes.overhead_s / workers.speeds
        begun_s = served.begun_s.reshape(len(speeds), len(UP), -1)
        late_s, gradient_s = (
            np.where(self._away, passed.leave_s[:, kind], begun_s[:, row] + self._gradient_s / server_speeds)
            for kind, row in ((LATE, 0), (GRADIENT, 2))
        )
        late_s = np.maximum(late_s, found_s[:, LATE])
        notes_from_s = np.where(found_s[:, LATE] < np.inf, late_s, self._from_s)
        told_s = np.maximum(notes_from_s, passed.here_s[:, NOTE]) + self._note_s / speeds
        asks = self._called_s[:, REQUEST] == np.inf
        begun_s = np.where(self._begins, 0.0, told_s) + workers.now_s + overhead_s
        found_s[:, REQUEST] = np.where(asks, begun_s, found_s[:, REQUEST])
        answered_s = np.maximum(found_s[:, REQUEST], passed.here_s[:, ANSWER])
        answered_s = answered_s + (self._answer_s + self._sizes.take_up_s) / speeds
        found_s[:, GRADIENT] = workers.then_s(answered_s) + overhead_s
        notes = notes_from_s, passed.pass_s[:, NOTE], found_s[:, NOTE] < np.inf
        answers = found_s[:, REQUEST], passed.pass_s[:, ANSWER], found_s[:, ANSWER] < np.inf
        return notes, answers, np.maximum(found_s[:, GRADIENT], gradient_s)

    def _carry_on(self, passed: Passed, called_s: np.ndarray, taken: np.ndarray, left_s: np.ndarray) -> None:
        """What is on its way at the end of the round, and when ports are free of what is not.

        Args:
            taken: by the server, shape (replications, kinds of UP, workers).
            left_s: when gradients have left, shape (replications, workers).
        """
        late_stays, answered = (called_s[:, LATE] < np.inf) & ~taken[:, 0], called_s[:, ANSWER] < np.inf
        self._added = taken[:, 2]
        gone = called_s < np.inf
        gone[:, UP] = taken
        self._free_s = self._wires.free_s(passed, (gone, gone), self._free_s)
        own_s = np.where(self._away, passed.leave_s[:, LATE], np.inf)
        left_s = np.where(self._added | self._away, left_s, np.inf)
        self._from_s = np.where(late_stays, own_s, np.where(answered, left_s, called_s[:, REQUEST]))
        self._called_s = self._never_s.copy()
        late_s = np.where(answered & ~self._added, called_s[:, GRADIENT], np.inf)
        self._called_s[:, LATE] = np.where(late_stays, called_s[:, LATE], late_s)
        self._called_s[:, REQUEST] = np.where(late_stays | answered, np.inf, called_s[:, REQUEST])
        self.steps, self._begins = self.steps + answered, np.zeros(self._shape, bool)

    def let_go(self, now_s: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """The server posts notes to those whose gradients it has added: when it has, shape (replications, 1)."""
        order = np.argsort(self._added_place, axis=1)
        away = np.take_along_axis(self._away & self._added, order, 1)
        in_turn_s, posted_s = now_s + self._sizes.overhead_s / speeds * np.cumsum(away, axis=1), np.empty(self._shape)
        np.put_along_axis(posted_s, order, in_turn_s, 1)
        self._called_s[:, NOTE] = np.where(self._added, posted_s, np.inf)
        self._place[:, NOTE] = np.argsort(order, axis=1)
        return in_turn_s[:, -1:]

    def end(self, servers: Ranks, _workers: Ranks):
        """Waits that go on at the end of the run: of the server, and of workers."""
        never_s = np.full((*self._shape, 1), np.inf)
        return (servers.now_s[:, :, None], never_s[:, :1]), [(self._from_s[:, :, None], never_s)]

    @staticmethod
    def _waits(from_s: np.ndarray, to_s: np.ndarray, there: np.ndarray):
        return tuple(np.where(there, one, 0.0)[:, :, None] for one in (from_s, to_s))

    def _check(self, called_s: np.ndarray, reach_s: np.ndarray) -> None:
        """What comes to a port or to the server together is on its way before."""
        self._wires.check_apart(called_s, reach_s, self._leads_s)
        senders = np.tile(np.arange(self._workers), len(UP))
        check_apart(reach_s[:, UP].reshape(len(reach_s), -1), senders, self._leads_s[2])
