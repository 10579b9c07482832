"""Servers that take the first gradients and drop late ones: from one update of the first server to the next, in every replication.

Each worker does one thing after another, whatever the updates: it asks, is answered, sends gradients, and waits for notes. Only the first
server's note for a gradient that it has added waits for its update. So a worker ends the turn in which it is, and goes through at
most one more, before it waits for that note. All is reckoned anew with when messages came, until that stays (sim.vector.shared.wires).

When the first server posts its notes, nothing that was before can change; that is final. What comes after is reckoned anew in the next
round, with what those notes bring about. The other servers let each worker go at once. They may have made their update before the
first has, or drop a gradient that the first adds; their own updates are as many as the first's whenever it posts notes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.model.sparse_rows import HEADER_BYTES
from sim.vector.servers.barrier_round import Sizes, Wait, queue, travelling_bytes
from sim.vector.shared.barrier import Taken, leads_s, leads_to_ranks_s, take, taken_s
from sim.vector.shared.rounds import BarrierRounds, Ranks
from sim.vector.shared.wires import Passed, Wires, settle
from sim.vector.ties import check_apart, in_order
from sim.verbs.book import TIE_S

REQUEST, ANSWER, GRADIENT, NOTE = range(4)  # of one turn of a worker
TURN, TURNS = 4, 2  # the one in which a worker is, and the next
TELL = TURN * TURNS  # a note for the first server that another has made its update; of the first worker's place
KINDS = TELL + 1
UP = [REQUEST, GRADIENT, TURN + REQUEST, TURN + GRADIENT]  # from workers to servers
DOWN = [ANSWER, NOTE, TURN + ANSWER, TURN + NOTE]


class Served(NamedTuple):
    """What servers do in a round with messages in the order in which they take them, shape (replications, servers, messages).

    Args:
        turn: the numbers of these messages, of the kinds of UP.
        reach_s, done_s: when they come to the server, and when it is done with them.
        waits: for them.
        taken: whether the first server takes them before it has added enough gradients; all that come to others.
        added: whether they are added.
        over_s: when servers have added enough gradients, shape (replications, servers).
        copied_s: when they have taken gradients of their own host, shape (replications, TURNS, servers, workers).
    """

    turn: np.ndarray
    reach_s: np.ndarray
    done_s: np.ndarray
    waits: Wait
    taken: np.ndarray
    added: np.ndarray
    over_s: np.ndarray
    copied_s: np.ndarray


class Worked(NamedTuple):
    """What workers do in a round.

    Args:
        computed_s: when they have the gradient of each turn, shape (replications, workers).
        waits: for messages from servers, shape (replications, workers, messages).
    """

    computed_s: list[np.ndarray]
    waits: Wait


class Round(NamedTuple):
    """A round; `passed` and `called_s`, when messages come to ports, have the shape (replications, kinds, servers, workers)."""

    passed: Passed
    called_s: np.ndarray
    served: Served
    worked: Worked


class Backup(BarrierRounds):
    """Servers and workers of one scenario.

    Args:
        scenario: the job.
        replications: how many there are.
    """

    first_leads = True

    def __init__(self, scenario, replications: int):
        hosts, servers, workers = np.array(scenario.hosts), scenario.servers, scenario.workers
        self._needed = scenario.protocol.gradients_per_update(workers)
        self._servers, self._shape = servers, (replications, workers)
        self._away = hosts[:servers, None] != hosts[servers:]  # not on one host, shape (servers, workers)
        self._tells_away = hosts[:servers] != hosts[0]
        self._sizes = sizes = Sizes.of(scenario)
        link, local = scenario.network, scenario.cluster.local
        self._note_s = taken_s(self._away, link, local, HEADER_BYTES)
        self._request_s, self._answer_s, self._gradient_s = (
            taken_s(self._away, link, local, size_bytes[:, None], sizes.messages[:, None])
            for size_bytes in travelling_bytes(scenario)
        )
        self._told_s = taken_s(self._tells_away, link, local, HEADER_BYTES)
        self._overhead_s = self._away * sizes.overhead_s
        self._load_overhead_s = self._away * sizes.load_overhead_s[:, None]
        self._wires = self._between(hosts, link, local)
        self._leads_s, self._leads_to_ranks_s = leads_s(link, local), leads_to_ranks_s(self._away, link, local)
        self._tells_lead_s = np.where(self._tells_away, link.latency_s, local.latency_s)
        self._free_s = (np.zeros((replications, hosts.max() + 1)),) * 2
        shape = replications, KINDS, servers, workers
        self._called_s, self._place = np.full(shape, np.inf), np.zeros(shape)
        self._place[:, UP] = np.arange(servers)[:, None]
        self._final = Passed(*(np.full(shape, np.inf) for _ in Passed._fields))
        self._left, self._arrived = np.zeros(shape, bool), np.zeros(shape, bool)
        self._taken = np.zeros((replications, len(UP), servers, workers), bool)  # by servers, for good
        self._copied_s = np.full((replications, TURNS, servers, workers), np.inf)
        self._warm_s = np.zeros(self._shape)  # when workers had computed before their turn
        self._begins = np.ones(self._shape, bool)  # workers that have had no turn yet
        self._late = np.zeros(self._shape, bool)  # workers whose turn is on older parameters
        self._updating_s = np.zeros((replications, servers))
        self._cut_s = np.full((replications, 1, 1), -np.inf)  # all that was before is final
        self._known = _none(replications, servers), [_none(replications, workers)]  # waits
        self.steps = np.zeros(self._shape, int)

    def _between(self, hosts: np.ndarray, link, local) -> Wires:
        servers, workers, sizes = self._servers, self._shape[1], self._sizes
        of_servers, of_workers = np.broadcast_arrays(np.arange(servers)[:, None], np.arange(servers, servers + workers))
        ends = [(of_servers, of_workers) if kind in DOWN else (of_workers, of_servers) for kind in range(TELL)]
        ends.append((of_servers, np.zeros_like(of_servers)))
        senders, receivers = (np.stack([end[side] for end in ends]).ravel() for side in (0, 1))
        note_s = np.full(servers, sizes.note_s)
        turn_s = sizes.request_s, sizes.answer_s, sizes.gradient_s, note_s
        port_s = np.stack([*turn_s * TURNS, note_s]).repeat(workers)
        return Wires(senders, receivers, hosts, port_s, link.latency_s, local.latency_s)

    # ---- a round

    def settle(self, servers: Ranks, workers: Ranks):
        """A round until enough gradients are added; see sim.vector.shared.rounds. The waits are those that have become known."""
        computing = [workers.then_s(step) for step in (np.maximum(self.steps - 1, 0), self.steps)]

        def go_on(passed: Passed, open_s: np.ndarray, place: np.ndarray):
            passed, called_s = self._with_final(passed, open_s)
            found_s, in_place = called_s.copy(), place.copy()
            served = self._serve(passed, servers, found_s, in_place)
            worked = self._work(passed, workers, computing, served.copied_s, found_s)
            return np.where(self._left, np.inf, found_s), in_place, Round(passed, called_s, served, worked)

        open_s = np.where(self._left, np.inf, self._called_s)
        known_s = np.where(self._left & ~self._arrived, self._final.reach_s, np.inf)
        _, self._place, _, self._round = settle(self._wires, open_s, self._place, self._free_s, known_s, go_on)
        self._begun_s = servers.now_s
        return self._round.served.over_s, *self._known

    def _with_final(self, passed: Passed, open_s: np.ndarray) -> tuple[Passed, np.ndarray]:
        """When messages pass ports, and come to them, those too that have done so before."""
        flags = self._left, self._left, self._arrived, self._arrived
        each = (np.where(*three) for three in zip(flags, self._final, passed, strict=True))
        return Passed(*each), np.where(self._left, self._called_s, open_s)

    def _serve(self, passed: Passed, servers: Ranks, found_s: np.ndarray, place: np.ndarray) -> Served:
        """Servers take what comes; `found_s` and `place` get when they send, and in which order."""
        workers, speeds, first = self._shape[1], servers.speeds[:, :, None], np.arange(self._servers)[:, None] == 0
        gone = self._by_server(self._taken)
        reach_s, pass_s, here_s = (np.where(gone, np.inf, self._by_server(one[:, UP])) for one in passed[1:])
        turn = in_order(reach_s, lambda: np.tile(np.arange(workers), len(UP)))

        def in_turn(values):
            return np.take_along_axis(np.broadcast_to(values, turn.shape), turn, 2)

        reach_s, pass_s, here_s = in_turn(reach_s), in_turn(pass_s), in_turn(here_s)
        asks, comes = (turn // workers) % 2 == 0, reach_s < np.inf
        fresh = comes & ~asks & ((turn >= 2 * workers) | ~np.take_along_axis(self._late[:, None], turn % workers, 2))
        count = np.cumsum(fresh, axis=2)
        added, last = fresh & (count <= self._needed), fresh & (count == self._needed)
        taken = comes & ~(first & (count - fresh >= self._needed))
        take_s = in_turn(np.tile(np.concatenate([self._request_s, self._gradient_s], axis=1), TURNS))
        replies = asks | ~first | ~fresh
        reply_s = in_turn(np.tile(np.concatenate([self._load_overhead_s, self._overhead_s], axis=1), TURNS))
        replied_s = (take_s + replies * reply_s) / speeds
        core_s = replied_s + added * (self._sizes.reduce_s[:, None] / speeds)
        begun_s = queue(here_s, servers.now_s, core_s + last * self._updating_s[:, :, None])
        over_s = np.where(last, begun_s + core_s, np.inf).min(axis=2)
        done_s = begun_s + core_s + last * self._updating_s[:, :, None]

        def in_place(values):
            found = np.empty(turn.shape)
            np.put_along_axis(found, turn, np.broadcast_to(values, turn.shape), 2)
            return found.reshape(len(found), self._servers, len(UP), workers).swapaxes(1, 2)

        posted_s = in_place(np.where(taken & replies, begun_s + replied_s, np.inf))
        number = np.arange(workers, workers + turn.shape[2])  # behind the notes of the round before
        found_s[:, DOWN] = np.where(self._taken, found_s[:, DOWN], posted_s)
        place[:, DOWN] = np.where(self._taken, place[:, DOWN], in_place(number))
        self._tell(servers, over_s, found_s, place, np.where(last, number, 0).max(axis=2))
        taken_s = in_place(np.where(taken, begun_s + take_s / speeds, np.inf))[:, [1, 3]]
        copied_s = np.where(self._taken[:, [1, 3]], self._copied_s, taken_s)
        waits = np.concatenate([servers.now_s[:, :, None], done_s[:, :, :-1]], axis=2), pass_s
        return Served(turn, reach_s, done_s, waits, taken, added, over_s, copied_s)

    def _tell(
        self, servers: Ranks, over_s: np.ndarray, found_s: np.ndarray, place: np.ndarray, last: np.ndarray
    ) -> None:
        """All servers but the first update as soon as they have added enough gradients, and tell the first."""
        with np.errstate(invalid="ignore"):  # of what never comes
            updating_s = servers.then_s(over_s) - over_s + self._tells_away * self._sizes.overhead_s / servers.speeds
        self._updating_s = np.where(over_s < np.inf, updating_s, 0.0)
        self._updating_s[:, 0] = 0.0
        found_s[:, TELL, 1:, 0] = (over_s + self._updating_s)[:, 1:]
        place[:, TELL, :, 0] = last + 0.5  # behind the note for the gradient

    def _work(self, passed: Passed, workers: Ranks, computing, copied_s: np.ndarray, found_s: np.ndarray) -> Worked:
        """Workers go on with what comes; `found_s` gets when they send."""
        all_computed_s, before_s = [], self._warm_s
        taken: list[Taken] = []
        for number in range(TURNS):
            first = TURN * number
            requests_s = found_s[:, first + REQUEST]
            if number:
                begun_s = np.where(self._begins, 0.0, taken[-1].over_s) + workers.now_s
                requests_s = found_s[:, first + REQUEST] = self._sent(begun_s, workers.speeds)
            take_up_s = self._answer_s + self._sizes.take_up_s[:, None]
            answers = self._collect(passed, first + ANSWER, requests_s[:, -1], take_up_s, workers.speeds)
            computed_s = computing[number](answers.over_s, before_s)
            gradients_s = found_s[:, first + GRADIENT] = self._sent(computed_s, workers.speeds)
            left_s = np.where(self._away, passed.leave_s[:, first + GRADIENT], copied_s[:, number])
            from_s = np.maximum(gradients_s[:, -1], left_s.max(axis=1))
            notes = self._collect(passed, first + NOTE, from_s, self._note_s, workers.speeds)
            before_s = np.where(computed_s < np.inf, computed_s, before_s)
            all_computed_s.append(before_s)
            taken += [answers, notes]
        from_s, to_s = (np.concatenate([one.waits[side] for one in taken], axis=2) for side in (0, 1))
        return Worked(all_computed_s, (from_s, to_s))

    def _collect(self, passed: Passed, kind: int, now_s: np.ndarray, core_s: np.ndarray, speeds: np.ndarray) -> Taken:
        """Each worker takes a message from each server."""
        by_worker_s = [one[:, kind].swapaxes(1, 2) for one in passed[1:]]
        return take(np.arange(self._servers), by_worker_s, now_s, core_s.T / speeds[:, :, None])

    def _sent(self, now_s: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """When workers have called the port for a message to each server, shape (replications, servers, workers)."""
        return now_s[:, None] + np.cumsum(self._load_overhead_s, axis=0) / speeds[:, None]

    def _by_server(self, up: np.ndarray) -> np.ndarray:
        """Of kinds of UP, shape (replications, servers, kinds * workers)."""
        return up.swapaxes(1, 2).reshape(len(up), self._servers, -1)

    # ---- from one round to the next

    def hear(self, now_s: np.ndarray, speeds: np.ndarray) -> tuple[np.ndarray, Wait]:
        """The first server takes a note from each other one."""
        if self._servers == 1:
            return super().hear(now_s, speeds)
        come_s = [one[:, TELL, None, 1:, 0] for one in self._round.passed[1:]]
        told = take(np.arange(self._servers - 1), come_s, now_s[:, :1], self._told_s[1:] / speeds[:, :1, None])
        return told.over_s, told.waits

    def let_go(self, now_s: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """The first server posts notes to those whose gradients it has added: where servers then are, shape (replications, servers).

        Raises:
            Unsettled: two messages came at one instant, and which was first cannot be told.
        """
        called_s, served, worked = self._round.called_s, self._round.served, self._round.worked
        shape, workers = self._shape, self._shape[1]
        place = np.full((shape[0], served.turn.shape[2]), np.inf)  # in which the first server has added gradients
        np.put_along_axis(place, served.turn[:, 0], np.where(served.added[:, 0], np.arange(place.shape[1]), np.inf), 1)
        place = place.reshape(len(place), len(UP), workers)[:, [1, 3]]
        order = np.argsort(place.min(axis=1), axis=1)
        added = place.min(axis=1) < np.inf
        overhead_s = np.take_along_axis(self._overhead_s[0] * added, order, 1)
        in_turn_s, posted_s = now_s[:, :1] + np.cumsum(overhead_s, axis=1) / speeds[:, :1], np.empty(shape)
        np.put_along_axis(posted_s, order, in_turn_s, 1)
        notes = [NOTE, TURN + NOTE]
        called_s[:, notes, 0] = np.where(place < np.inf, posted_s[:, None], called_s[:, notes, 0])
        self._place[:, notes, 0] = np.where(
            place < np.inf, np.argsort(order, axis=1)[:, None], self._place[:, notes, 0]
        )
        cut_s = np.where(added, posted_s, np.inf).min(axis=1)[:, None, None] - 2 * TIE_S
        final = served.reach_s < cut_s
        final[:, 0] = served.taken[:, 0]
        after_s = np.maximum(self._begun_s, np.where(final, served.done_s, -np.inf).max(axis=2))
        after_s[:, 0] = in_turn_s[:, -1]
        over = worked.waits[1] < cut_s  # of a longer one the beginning may not be known either
        self._known = _few(served.waits, final), [_few(worked.waits, over & (worked.waits[1] >= self._cut_s))]
        open_ = ~final & (np.arange(self._servers)[:, None] > 0)  # the first server goes on in the next round
        self._left_over = _few(served.waits, open_), [_few(worked.waits, ~over)]
        self._cut_s = cut_s
        self._keep(final)
        return after_s

    def _keep(self, final: np.ndarray) -> None:
        """What was before the cut stays, and turns that workers have begun are those in which they are."""
        cut_s, (passed, called_s, served, worked) = self._cut_s[:, :, :, None], self._round
        left, arrived = called_s < cut_s, passed.reach_s < cut_s
        self._check(np.where(left, called_s, np.inf), np.where(arrived, passed.reach_s, np.inf))
        self._free_s = self._wires.free_s(passed, (left, arrived), self._free_s)
        taken = np.zeros(final.shape, bool)
        np.put_along_axis(taken, served.turn, final, 2)
        taken = taken.reshape(len(taken), self._servers, len(UP), -1).swapaxes(1, 2) | self._taken
        begun = called_s[:, TURN + REQUEST].min(axis=1) < cut_s[:, 0, 0]
        self._warm_s = np.where(begun, worked.computed_s[0], self._warm_s)
        self._begins, self.steps = self._begins & ~begun, self.steps + begun
        self._called_s, self._place = _next(called_s, begun, np.inf), _next(self._place, begun)
        self._final = Passed(*(_next(one, begun, np.inf) for one in passed))
        self._left, self._arrived = _next(left, begun, False), _next(arrived, begun, False)
        self._taken, self._copied_s = _next(taken, begun, False), _next(served.copied_s, begun, np.inf)
        self._late = self._taken[:, 0, 0]

    def end(self, _servers: Ranks, _workers: Ranks):
        """Waits that are not told yet, those too that go on at the end of the run."""
        (of_servers, of_workers), (more, more_of_workers) = self._known, self._left_over
        both = tuple(np.concatenate(pair, axis=2) for pair in zip(of_servers, more, strict=True))
        return both, [*of_workers, *more_of_workers]

    def _check(self, called_s: np.ndarray, reach_s: np.ndarray) -> None:
        """What comes to a port, to a server or to a worker together is on its way before."""
        servers, workers = np.arange(self._servers), np.arange(self._shape[1])
        of_workers_s, answers_s, notes_s = self._leads_to_ranks_s
        self._wires.check_apart(called_s, reach_s, self._leads_s)
        check_apart(self._by_server(reach_s[:, UP]), np.tile(workers, len(UP)), np.tile(of_workers_s, len(UP)))
        check_apart(reach_s[:, TELL, :, 0], servers, self._tells_lead_s)
        to_workers_s = np.moveaxis(reach_s[:, DOWN], 3, 1).reshape(len(reach_s), len(workers), -1)
        lead_s = np.concatenate([answers_s, notes_s] * TURNS).T
        check_apart(to_workers_s, np.tile(servers, len(DOWN)), lead_s)


def _next(kinds: np.ndarray, begun: np.ndarray, none=None) -> np.ndarray:
    """Of kinds of both turns, where some workers have begun their next; shape (replications, kinds, servers, workers).

    Args:
        begun: shape (replications, workers).
        none: of the turn that is then the next one; as it was by default.
    """
    found, half = kinds.copy(), kinds.shape[1] // TURNS
    found[:, :half] = np.where(begun[:, None, None], kinds[:, half : TURNS * half], kinds[:, :half])
    if none is not None:
        found[:, half:] = none
    return found


def _few(waits: Wait, which: np.ndarray) -> Wait:
    """Some of many waits, in their order; shape (replications, ranks, waits)."""
    order = np.argsort(~which, axis=2, kind="stable")[:, :, : np.count_nonzero(which, axis=2).max()]
    there = np.take_along_axis(which, order, 2)
    from_s, to_s = (np.where(there, np.take_along_axis(one, order, 2), 0.0) for one in waits)
    return from_s, to_s


def _none(replications: int, ranks: int) -> Wait:
    return (np.zeros((replications, ranks, 0)),) * 2
