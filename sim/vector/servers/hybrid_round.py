"""One round of servers for some variables and an allreduce of the others, as arrays; each rank has a host of its own.

A worker's port serves answers, notes and messages of the allreduce in the order in which they come, and each may hold up the others: a
neighbour that has computed begins the allreduce while this worker still waits for answers, and servers send notes while it goes on. First
nothing is known to come but requests; then everything is reckoned anew with when messages came, until nothing changes.
What is reckoned at a moment depends on what came before it alone, so that each time more of it is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sim.collectives.schedule import Schedule
from sim.platform.cluster import Link
from sim.vector.exchanges import MOST_ROUNDS, Ports, Unsettled, play_among
from sim.vector.servers.barrier_round import Clocks, Served, Sizes, Wait, let_go, posted_of, queue, serve
from sim.vector.shared.wires import same
from sim.vector.ties import check_apart, sorted_by_turn

NEVER_S = -np.inf
# From when ranks begin something to when it is over, shape (replications, ranks)
Clock = Callable[[np.ndarray], np.ndarray]


class Sum(NamedTuple):
    """The allreduce of a round.

    Args:
        plan: its messages.
        link: between hosts.
        add_s: seconds of a core of speed 1 for adding up each message, shape (messages,).
        agree_s: for which a library sleeps before it.
        begun_s: from when workers begin the verb to when they begin its exchanges.
        updated_s: from when they have the sum to when they have updated their parameters.
    """

    plan: Schedule
    link: Link
    add_s: np.ndarray
    agree_s: float
    begun_s: Clock
    updated_s: Clock


class Workers(NamedTuple):
    """Workers, once their requests are on their way.

    Args:
        clocks, speeds: shape (replications, workers).
        last_reach_s: when the last message of earlier rounds came to each one's port, likewise.
        requests_s: when requests reach servers, shape (replications, servers, workers).
        compute: from when workers have all parameters to when they have their gradients.
        sums: their allreduce; None without.
    """

    clocks: Clocks
    speeds: np.ndarray
    last_reach_s: np.ndarray
    requests_s: np.ndarray
    compute: Clock
    sums: Sum | None


class Come(NamedTuple):
    """When messages come to the workers' ports: answers and notes, (replications, servers, workers); (most, workers, replications)."""

    answers_s: np.ndarray
    notes_s: np.ndarray
    pieces_s: np.ndarray


class Passed(NamedTuple):
    """When those begin to pass the ports, and before when pieces do not, each likewise; and when the ports are free after all."""

    answers_s: np.ndarray
    notes_s: np.ndarray
    floors_s: np.ndarray
    free_s: np.ndarray


class Round(NamedTuple):
    """A round is over.

    Args:
        served: the state of servers once they have added all gradients.
        workers: clocks of workers once they have taken the last notes.
        warm_s: where workers had computed or updated last, shape (replications, workers).
        last_reach_s: when the last message came to each one's port, likewise.
        notes_s: when notes come to workers, shape (replications, servers, workers).
        waits: of workers, (from, to) one after another, shape (replications, some workers), and which these are.
    """

    served: Served
    workers: Clocks
    warm_s: np.ndarray
    last_reach_s: np.ndarray
    notes_s: np.ndarray
    waits: list[tuple[np.ndarray, np.ndarray, np.ndarray | slice]]


class Hybrid:
    """A round of one scenario.

    Args:
        sizes: what servers and workers send to one another.
        serving: clocks and speeds of servers.
        then_s: from when servers have added all gradients to when they send notes.
        workers: as they are when their requests are on their way.
    """

    def __init__(self, sizes: Sizes, serving: tuple[Clocks, np.ndarray], then_s: Clock, workers: Workers):
        self._sizes, self._serving, self._then_s, self._workers = sizes, serving, then_s, workers
        servers, several = workers.requests_s.shape[1:]
        sources = np.empty((0, several), int) if workers.sums is None else workers.sums.plan.sources
        of_servers = np.broadcast_to(np.arange(servers), (several, servers))
        # of each message that comes to a worker, shape (workers, messages)
        self._senders = np.concatenate([of_servers, of_servers, servers + sources.T], axis=1)
        self._port_s = np.concatenate(
            [
                np.broadcast_to(sizes.answer_s, of_servers.shape),
                np.full(of_servers.shape, sizes.note_s),
                self._pieces_s(several),
            ],
            axis=1,
        )

    def _pieces_s(self, workers: int) -> np.ndarray:
        """For which pieces take the ports of workers, shape (workers, most); 0 for none."""
        if self._workers.sums is None:
            return np.empty((workers, 0))
        plan, link = self._workers.sums.plan, self._workers.sums.link
        return np.append(np.ravel(link.occupancy_s(plan.size_bytes)), 0.0)[plan.order]

    def settle(self) -> Round:
        """The round, until all workers have their notes.

        Raises:
            Unsettled: two messages come so near to one another that rounding may decide which is first, or one of this round before
                those of the last are over.
        """
        replications, servers, workers = self._workers.requests_s.shape
        gradients_s = np.full((replications, servers, workers), np.inf)
        pieces_s = np.full((self._port_s.shape[1] - 2 * servers, workers, replications), np.inf)
        before = None
        for _ in range(MOST_ROUNDS):
            served, notes_s = self._serve(gradients_s)
            come = Come(served.answers_s, notes_s, pieces_s)
            passed = self._pass(come)
            found, gradients_s, pieces_s = self._work(served, come, passed)
            now = (gradients_s, notes_s, pieces_s, *passed)
            if before is not None and all(map(same, now, before)):
                self._check(served, gradients_s, come)
                return found
            before = now
        raise Unsettled

    def _serve(self, gradients_s: np.ndarray) -> tuple[Served, np.ndarray]:
        """What servers do, and when their notes come to workers."""
        clocks, speeds = self._serving
        served = serve(self._sizes, clocks, speeds, self._workers.requests_s, gradients_s)
        then = served.clocks._replace(now_s=self._then_s(served.clocks.now_s))
        return served, let_go(self._sizes, then, speeds, served.added)[1]

    def _pass(self, come: Come) -> Passed:
        """Messages pass the ports of workers one after another."""
        servers, each = come.answers_s.shape[1], self._of_workers(come)
        turn, in_turn_s = sorted_by_turn(each, lambda: self._senders)
        port_s = np.take_along_axis(np.broadcast_to(self._port_s, turn.shape), turn, 2)
        pass_s = queue(in_turn_s, self._workers.clocks.in_free_s, port_s)
        over_s = pass_s + port_s
        others_s = np.maximum.accumulate(np.where(turn < 2 * servers, over_s, NEVER_S), axis=2)
        others_s = np.where(in_turn_s < np.inf, others_s, NEVER_S)  # of pieces that are not known yet nothing is
        floors_s, begin_s = np.empty_like(each), np.empty_like(each)
        np.put_along_axis(floors_s, turn, others_s, 2)  # of a piece: when the last before it that is none has passed
        np.put_along_axis(begin_s, turn, pass_s, 2)
        free_s = np.where(in_turn_s < np.inf, over_s, NEVER_S).max(axis=2)
        answers_s, notes_s = begin_s[:, :, :servers], begin_s[:, :, servers : 2 * servers]
        return Passed(answers_s, notes_s, floors_s[:, :, 2 * servers :].transpose(2, 1, 0), free_s)

    def _of_workers(self, come: Come) -> np.ndarray:
        """All messages of each worker, shape (replications, workers, messages)."""
        of_servers = (one.swapaxes(1, 2) for one in come[:2])
        return np.concatenate([*of_servers, come.pieces_s.transpose(2, 1, 0)], axis=2)

    def _work(self, served: Served, come: Come, passed: Passed) -> tuple[Round, np.ndarray, np.ndarray]:
        """What workers do; when their gradients come to servers, and their pieces to one another."""
        of, sizes = self._workers, self._sizes
        core_s = np.multiply.outer(1 / of.speeds, sizes.load_overhead_s + sizes.take_up_s)
        now_s, waits = take(come.answers_s, passed.answers_s, of.clocks.now_s, sizes.answer_s, core_s)
        computed_s = of.compute(now_s)
        posted_s = posted_of(sizes, computed_s, of.speeds)
        begin_s = queue(posted_s, of.clocks.out_free_s, np.broadcast_to(sizes.gradient_s, posted_s.shape))
        out_free_s = begin_s[:, :, -1] + sizes.gradient_s[-1]
        now_s, warm_s, pieces_s = np.maximum(posted_s[:, :, -1], out_free_s), computed_s, come.pieces_s
        told = _each(waits)
        if of.sums is not None:
            ports = Ports(of.sums.begun_s(now_s), out_free_s, of.clocks.in_free_s, np.full_like(now_s, NEVER_S))
            told.append((now_s, now_s + of.sums.agree_s, slice(None)))
            played, arrivals = play_among(
                of.sums.plan, ports, of.sums.link, of.speeds, of.sums.add_s, None, passed.floors_s
            )
            pieces_s, out_free_s = arrivals.reach_s, played.ports.out_free_s
            told += [(from_s, to_s, ranks) for ranks, from_s, to_s in played.waits]
            now_s = warm_s = of.sums.updated_s(played.ports.now_s)
        core_s = np.broadcast_to(sizes.overhead_s / of.speeds[:, :, None], passed.notes_s.shape)
        now_s, waits = take(come.notes_s, passed.notes_s, now_s, sizes.note_s, core_s)
        each = self._of_workers(come)
        last_s = np.where(each < np.inf, each, NEVER_S).max(axis=2)
        clocks = Clocks(now_s, out_free_s, passed.free_s)
        found = Round(served, clocks, warm_s, last_s, come.notes_s, [*told, *_each(waits)])
        return found, (begin_s + sizes.latency_s).swapaxes(1, 2), pieces_s

    def _check(self, served: Served, gradients_s: np.ndarray, come: Come) -> None:
        requests_s, sizes = self._workers.requests_s, self._sizes
        to_servers_s, workers = np.concatenate([requests_s, gradients_s], axis=2), np.arange(requests_s.shape[2])
        check_apart(to_servers_s, np.tile(workers, 2), sizes.lead_s)
        each = self._of_workers(come)
        check_apart(each, self._senders, sizes.latency_s)
        if (each.min(axis=2) <= self._workers.last_reach_s).any():
            raise Unsettled


def take(
    reach_s: np.ndarray, pass_s: np.ndarray, now_s: np.ndarray, port_s, core_s: np.ndarray
) -> tuple[np.ndarray, Wait]:
    """Each worker takes a message from each server, in order of arrival: its clock, and its waits.

    Args:
        reach_s: when they come to its port, shape (replications, servers, workers).
        pass_s: when they begin to pass it, shape (replications, workers, servers).
        now_s: its clock, shape (replications, workers).
        port_s: for which they take it, shape (servers,) or a number.
        core_s: for which they take its core, as `pass_s`.
    """
    turn, _ = sorted_by_turn(reach_s.swapaxes(1, 2))
    core_s, pass_s = np.take_along_axis(core_s, turn, 2), np.take_along_axis(pass_s, turn, 2)
    port_s = np.broadcast_to(port_s, turn.shape[2:])[turn]
    done_s = queue(pass_s + port_s, now_s, core_s) + core_s
    return done_s[:, :, -1], (np.concatenate([now_s[:, :, None], done_s[:, :, :-1]], axis=2), pass_s)


def _each(waits: Wait) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | slice]]:
    return [(waits[0][:, :, turn], waits[1][:, :, turn], slice(None)) for turn in range(waits[0].shape[2])]
