"""Servers behind a barrier where ranks share hosts: rounds of requests, answers, gradients and notes, in every replication.

Ports of hosts serve messages of all their ranks. Notes of one round and requests of the next may be on their way at once; a round
here is therefore from when servers have posted notes until all gradients are added. Messages of the round before that come to ports
meanwhile are in it too, and so are its own notes where those of a fast server may come before gradients that a slower one waits for.
First nothing is known to come but notes; then all is reckoned anew with when messages came, until that stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sim.model.sparse_rows import HEADER_BYTES
from sim.platform.cluster import Link
from sim.vector.exchanges import Unsettled
from sim.vector.servers.barrier_round import Sizes, Wait, queue, travelling_bytes
from sim.vector.shared.rounds import BarrierRounds, Ranks
from sim.vector.shared.wires import Passed, Wires, same, settle
from sim.vector.ties import check_apart, in_order

KINDS = range(6)  # the last two: gradients of the round before, and notes of this one
NOTES, REQUESTS, ANSWERS, GRADIENTS, EARLIER, LATER = KINDS
DOWN = (NOTES, ANSWERS, LATER)  # from servers to workers


class Taken(NamedTuple):
    """Messages that ranks take one after another, shape (replications, ranks, messages).

    Args:
        place: of each in the order in which they come.
        begun_s, done_s: when it begins to take a core, and when that is over.
        waits: for them, in that order.
    """

    place: np.ndarray
    begun_s: np.ndarray
    done_s: np.ndarray
    waits: Wait

    @property
    def over_s(self) -> np.ndarray:
        """When the last is done, shape (replications, ranks)."""
        return self.done_s.max(axis=2)


def take(senders: np.ndarray, come_s: Sequence[np.ndarray], now_s: np.ndarray, core_s: np.ndarray) -> Taken:
    """Ranks take messages in the order in which these come; those that come together in the order of senders.

    Args:
        senders: shape (messages,).
        come_s: reach_s, pass_s and here_s of Passed; shape (replications, ranks, messages).
        now_s: where the ranks are, shape (replications, ranks).
        core_s: for which each message takes a core, likewise.
    """
    reach_s, pass_s, here_s = come_s
    if reach_s.shape[2] == 1:
        begun_s = np.maximum(here_s, now_s[:, :, None])
        return Taken(np.zeros(reach_s.shape, int), begun_s, begun_s + core_s, (now_s[:, :, None], pass_s))
    turn = in_order(reach_s, lambda: senders)
    core_s = np.take_along_axis(np.broadcast_to(core_s, turn.shape), turn, 2)
    begun_s = queue(np.take_along_axis(here_s, turn, 2), now_s, core_s)
    done_s = begun_s + core_s
    waits = np.concatenate([now_s[:, :, None], done_s[:, :, :-1]], axis=2), np.take_along_axis(pass_s, turn, 2)
    place, begun_in_place_s, done_in_place_s = np.empty_like(turn), np.empty_like(done_s), np.empty_like(done_s)
    for found, sorted_ in (
        (place, np.broadcast_to(np.arange(turn.shape[2]), turn.shape)),
        (begun_in_place_s, begun_s),
        (done_in_place_s, done_s),
    ):
        np.put_along_axis(found, turn, sorted_, 2)
    return Taken(place, begun_in_place_s, done_in_place_s, waits)


class Crowd(BarrierRounds):
    """Servers and workers of one scenario, of whom some share hosts.

    Args:
        scenario: the job.
        replications: how many there are.

    Attributes:
        posted_s: when the notes of a round come to ports, shape (replications, servers, workers); None before the first round.
    """

    first_leads = False

    def __init__(self, scenario, replications: int):
        hosts, servers, workers = np.array(scenario.hosts), scenario.servers, scenario.workers
        self._shape = replications, servers, workers
        serves, works = hosts[:servers], hosts[servers:]
        self._kinds = len(KINDS) if servers > 1 and np.isin(serves, works).any() else EARLIER
        self._away = serves[:, None] != works  # not on one host, shape (servers, workers)
        self._sizes = sizes = Sizes.of(scenario)
        self._link, local = scenario.network, scenario.cluster.local
        self._note_s = taken_s(self._away, self._link, local, HEADER_BYTES)
        self._request_s, self._answer_s, self._gradient_s = (
            taken_s(self._away, self._link, local, size_bytes[:, None], sizes.messages[:, None])
            for size_bytes in travelling_bytes(scenario)
        )
        ranks = (
            np.arange(servers)[:, None] + np.zeros((1, workers), int),
            np.arange(servers, len(hosts)) + np.zeros((servers, 1), int),
        )
        ends = [ranks if kind in DOWN else ranks[::-1] for kind in range(self._kinds)]
        senders, receivers = (np.stack([end[side] for end in ends]).ravel() for side in (0, 1))
        each = np.zeros_like(sizes.request_s) + sizes.note_s, sizes.request_s, sizes.answer_s, sizes.gradient_s
        port_s = np.stack([*each, sizes.gradient_s, each[0]][: self._kinds]).repeat(workers)
        self._wires = Wires(senders, receivers, hosts, port_s, self._link.latency_s, local.latency_s)
        self._leads_s = leads_s(self._link, local)
        self._leads_to_ranks_s = leads_to_ranks_s(self._away, self._link, local)
        self._free_s = (np.zeros((replications, hosts.max() + 1)),) * 2
        self._called_s, self._place = self._none(np.inf), self._none(0.0)
        self._place[:, [REQUESTS, GRADIENTS]] = np.arange(servers)[:, None]
        self._known_s, self._from_s = self._none(np.inf), np.zeros((replications, workers))
        self._warm_s = self._computed_s = np.zeros((replications, workers))
        self.posted_s: np.ndarray | None = None
        self.steps = 0

    def _none(self, value: float) -> np.ndarray:
        return np.full((self._shape[0], self._kinds, *self._shape[1:]), value)

    def settle(self, servers: Ranks, workers: Ranks):
        """A round until all servers have added all gradients; see sim.vector.shared.rounds."""
        self._compute = workers.then_s(self.steps)

        def go_on(passed: Passed, called_s: np.ndarray, place: np.ndarray):
            return self._go_on(passed, called_s, place, servers, workers)

        before = self._called_s, self._place, self._free_s, self._known_s
        called_s, place, passed, (served, worked) = settle(self._wires, *before, go_on)
        self._check(called_s, passed.reach_s)
        self._passed, self._all_called_s, self._all_place = passed, called_s, place
        taken_s = served.begun_s[:, :, self._shape[2] :] + self._gradient_s / servers.speeds[:, :, None]
        left_s = np.where(self._away, passed.leave_s[:, GRADIENTS], taken_s)
        self._from_s = np.maximum(called_s[:, GRADIENTS, -1], left_s.max(axis=1))
        return served.over_s, served.waits, worked

    def _go_on(self, passed: Passed, called_s: np.ndarray, place: np.ndarray, servers: Ranks, workers: Ranks):
        """When messages come to ports, and their places, where they pass ports so; what servers take, and waits of workers."""
        worked, requests_s, gradients_s = self._work(passed, workers)
        served = self._serve(passed, servers)
        of_servers = served.place[:, :, : self._shape[2]], served.place[:, :, self._shape[2] :]
        found_s, in_place = called_s.copy(), place.copy()
        found_s[:, REQUESTS], found_s[:, GRADIENTS] = requests_s, gradients_s
        found_s[:, ANSWERS], in_place[:, ANSWERS] = served.done_s[:, :, : self._shape[2]], of_servers[0]
        self._order = np.argsort(of_servers[1], axis=2)
        if self._kinds > LATER:
            found_s[:, LATER], in_place[:, LATER] = self._notes(servers.then_s(served.over_s), servers.speeds)
        return found_s, in_place, (served, worked)

    def _work(self, passed: Passed, workers: Ranks):
        """Workers take notes, ask, take up parameters, compute, and send gradients: waits, and when requests and gradients are posted."""
        begun_s, waits = np.zeros_like(workers.now_s), []
        if self.posted_s is not None:
            notes = self._collect(passed, NOTES, self._from_s, self._note_s, workers.speeds)
            begun_s, waits = notes.over_s, [notes.waits]
        requests_s = self._sent(begun_s + workers.now_s, workers.speeds)
        take_up_s = self._answer_s + self._sizes.take_up_s[:, None]
        answers = self._collect(passed, ANSWERS, requests_s[:, -1], take_up_s, workers.speeds)
        self._computed_s = self._compute(answers.over_s, self._warm_s)
        gradients_s = self._sent(self._computed_s, workers.speeds)
        return [*waits, answers.waits], requests_s, gradients_s

    def _collect(self, passed: Passed, kind: int, now_s: np.ndarray, core_s: np.ndarray, speeds: np.ndarray) -> Taken:
        """Each worker takes a message from each server."""
        by_worker_s = [one[:, kind].swapaxes(1, 2) for one in passed[1:]]
        return take(np.arange(self._shape[1]), by_worker_s, now_s, core_s.T / speeds[:, :, None])

    def _sent(self, now_s: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """When workers have called the port for a message to each server, shape (replications, servers, workers)."""
        before_s = np.cumsum(self._away * self._sizes.load_overhead_s[:, None], axis=0)
        return now_s[:, None] + before_s / speeds[:, None]

    def _serve(self, passed: Passed, servers: Ranks) -> Taken:
        """Servers take requests, which they answer at once, and gradients, which they add; requests are first."""
        answered_s = self._request_s + self._away * self._sizes.load_overhead_s[:, None]
        added_s = self._gradient_s + self._sizes.reduce_s[:, None]
        core_s = np.concatenate([answered_s, added_s], axis=1) / servers.speeds[:, :, None]
        come_s = [np.concatenate([one[:, REQUESTS], one[:, GRADIENTS]], axis=2) for one in passed[1:]]
        return take(np.tile(np.arange(self._shape[2]), 2), come_s, servers.now_s, core_s)

    def _notes(self, now_s: np.ndarray, speeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """When servers have called the port for notes, in the order in which they added gradients, and the place of each."""
        posted_s, place = np.empty(self._shape), np.empty(self._shape)
        away = np.take_along_axis(np.broadcast_to(self._away, self._shape), self._order, 2)
        in_turn_s = now_s[:, :, None] + self._sizes.overhead_s / speeds[:, :, None] * np.cumsum(away, axis=2)
        np.put_along_axis(posted_s, self._order, in_turn_s, 2)
        np.put_along_axis(place, self._order, np.broadcast_to(np.arange(self._shape[2], dtype=float), place.shape), 2)
        return posted_s, place

    def let_go(self, now_s: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """Servers post notes to all workers."""
        posted_s, place = self._notes(now_s, speeds)
        called_s, passed = self._all_called_s, self._passed
        if self._kinds > LATER and not same(posted_s, called_s[:, LATER]):
            raise Unsettled
        first_s = posted_s.min(axis=(1, 2))[:, None, None, None]
        gone = called_s < first_s, passed.reach_s < first_s
        self._free_s = self._wires.free_s(passed, gone, self._free_s)
        self._called_s, self._place = self._none(np.inf), self._all_place
        self._called_s[:, NOTES], self._place[:, NOTES] = posted_s, place
        if self._kinds > EARLIER:
            first_s, gradients_s, reach_s = first_s[:, 0], called_s[:, GRADIENTS], passed.reach_s[:, GRADIENTS]
            late = gradients_s >= first_s
            self._called_s[:, EARLIER] = np.where(late, gradients_s, np.inf)
            self._known_s[:, EARLIER] = np.where(~late & (reach_s >= first_s), reach_s, np.inf)
        self.posted_s, self._warm_s, self.steps = posted_s, self._computed_s, self.steps + 1
        return posted_s.max(axis=2)

    def end(self, servers: Ranks, workers: Ranks):
        """See sim.vector.shared.rounds."""
        never = workers._replace(now_s=np.full_like(workers.now_s, np.inf), then_s=lambda _step: _at_once)
        _, waits, of_workers = self.settle(servers._replace(then_s=_at_once), never)
        return waits, of_workers

    def _check(self, called_s: np.ndarray, reach_s: np.ndarray) -> None:
        """What comes to a port or a rank together is on its way before."""
        self._wires.check_apart(called_s, reach_s, self._leads_s)
        workers = np.arange(self._shape[2])
        come_s = np.concatenate([reach_s[:, REQUESTS], reach_s[:, GRADIENTS]], axis=2)
        of_workers_s, answers_s, notes_s = self._leads_to_ranks_s
        check_apart(come_s, np.tile(workers, 2), np.tile(of_workers_s, 2))
        for kind, lead_s in ((NOTES, notes_s), (ANSWERS, answers_s)):
            check_apart(reach_s[:, kind].swapaxes(1, 2), np.arange(self._shape[1]), lead_s.T)


def _at_once(begun_s: np.ndarray, _warm_s: np.ndarray | None = None) -> np.ndarray:
    return begun_s


def taken_s(away: np.ndarray, link: Link, local: Link, size_bytes, messages=1) -> np.ndarray:
    """Seconds of a core of speed 1 to take messages, so many together: from away, or by copying them within a host."""
    return np.where(away, messages * link.overhead_s, messages * local.overhead_s + local.occupancy_s(size_bytes))


def leads_s(link: Link, local: Link) -> tuple[float, float]:
    """For how long things are on their way at least: ranks to a port, and messages to a port."""
    return woken_s(link, local) + link.overhead_s, link.latency_s


def leads_to_ranks_s(away: np.ndarray, link: Link, local: Link) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For how long messages are on their way at least to ranks: of workers, answers and notes of servers; shape (servers, workers).

    A rank that has sent one to another host, when its turn at the port had come, may send one to a neighbour at that moment.
    """
    behind_one = np.cumsum(away, axis=0) > away, np.zeros_like(away), np.any(away, axis=1, keepdims=True)
    local_s = (np.where(behind, 0.0, woken_s(link, local)) + local.latency_s for behind in behind_one)
    of_workers, answers, notes = (np.where(away, link.latency_s, one) for one in local_s)
    return of_workers, answers, notes


def woken_s(link: Link, local: Link) -> float:
    """For how long what wakes a rank takes a port or a core, before the rank comes to a port."""
    return min(link.occupancy_s(HEADER_BYTES), local.overhead_s + local.occupancy_s(HEADER_BYTES))
