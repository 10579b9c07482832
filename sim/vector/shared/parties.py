"""Servers, workers and the messages of a step in which workers hand gradients in and sum others (sim.vector.shared.mixed)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim import collectives
from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.vector.servers.barrier_round import Sizes, added_together_s, travelling_bytes
from sim.vector.shared.barrier import leads_s, leads_to_ranks_s, taken_s, woken_s
from sim.vector.shared.call import Seconds
from sim.vector.shared.calls import check_size
from sim.vector.shared.plan import plan


class Kinds(NamedTuple):
    """Of the messages of a step, by kind.

    Those between workers and servers have the shape (replications, servers, workers); of gradients and notes, workers are those that
    send for their host. `handed` are gradients of the others for these, and `freed` notes for the others, shape (replications, others).
    `pieces` are messages of the collective call, shape (replications, messages).
    """

    requests: np.ndarray
    answers: np.ndarray
    gradients: np.ndarray
    notes: np.ndarray
    handed: np.ndarray
    freed: np.ndarray
    pieces: np.ndarray

    def flat(self, replications: int | None = None) -> np.ndarray:
        """Of shape (replications, messages); given how many, some kinds may be alike in all."""
        count = len(self.answers) if replications is None else replications
        each = (np.broadcast_to(one, (count, *one.shape[1:])).reshape(count, -1) for one in self)
        return np.concatenate([*each], axis=1)


class Parties:
    """Who sends what to whom in a step of a scenario, and what that costs; workers are counted from 0.

    Args:
        scenario: the job.

    Raises:
        TooMany: the collective call has too many messages to lay out.

    Attributes:
        away: whether servers and workers are on two hosts, shape (servers, workers).
        leads, others: workers that send for their host, and all others; leads_of: these others' own.
        alike: workers that send for equally many others, shape (workers,), and the numbers of these others, shape (workers, others).
        up: by what those go that come to a server together, of requests and gradients.
        plan, seconds: of the collective call, if it `sums` anything.
        pieces: its messages among all.
        port_s: for which messages take ports, shape (messages,).
        place: in which order a rank sends its own; where that depends, from which number on.
        request_s, ...: seconds of a core of speed 1: the names say of what.
    """

    def __init__(self, scenario):
        hosts, self._servers = np.array(scenario.hosts), scenario.servers
        self.away = hosts[: self._servers, None] != hosts[self._servers :]
        self._group(scenario.groups(scenario.hosts))
        self._price(scenario)
        self._lay_out(scenario)
        self._ends = self._between()
        self._shapes = [senders.shape for senders, _ in self._ends]
        sizes = self._sizes
        note_s, nothing = np.array([[sizes.note_s]]), np.zeros(1)
        by_kind = sizes.request_s[:, None], sizes.answer_s[:, None], self._passes_s, note_s, nothing, nothing
        ports = zip((*by_kind, self.seconds.port_s[0]), self._shapes, strict=True)
        self.port_s = np.concatenate([np.broadcast_to(one, shape).ravel() for one, shape in ports])
        self.pieces = slice(len(self.port_s) - len(self.plan.senders), None)
        self.place = self._places()
        self._leads(scenario)

    def _group(self, groups) -> None:
        workers = self.away.shape[1]
        lead_of = np.array([groups.of[worker + self._servers][0] for worker in range(workers)]) - self._servers
        self.leads = np.flatnonzero(lead_of == np.arange(workers))
        self.others = np.flatnonzero(lead_of != np.arange(workers))
        self.leads_of = lead_of[self.others]
        self._members = np.bincount(lead_of, minlength=workers)[self.leads]
        self.alike = []
        for several in sorted({*self._members.tolist()} - {1}):
            leads = self.leads[self._members == several]
            self.alike.append((leads, np.array([np.flatnonzero(self.leads_of == lead) for lead in leads])))

    def _price(self, scenario) -> None:
        self._sizes = sizes = Sizes.of(scenario)
        link, local, traffic, servers = scenario.network, scenario.cluster.local, scenario.traffic, range(self._servers)
        request, answer, gradient = (one[:, None] for one in travelling_bytes(scenario))
        messages, away = sizes.messages[:, None], self.away[:, self.leads]
        self.overhead_s = self.away * sizes.load_overhead_s[:, None]
        self.answered_s = taken_s(self.away, link, local, request, messages) + self.overhead_s
        self.answer_s = taken_s(self.away, link, local, answer, messages) + sizes.take_up_s[:, None]
        loads = [[traffic.loads(server, members) for members in self._members.tolist()] for server in servers]
        summed = np.array([[sum(load.gradient_bytes for load in held) for held in each] for each in loads], float)
        self._passes_s, self.gradient_s = link.occupancy_s(summed), taken_s(away, link, local, summed, messages)
        added_s = ([added_together_s(scenario, server, held) for held in each] for server, each in enumerate(loads))
        self.added_s = np.array([*added_s])
        self.note_s = taken_s(away, link, local, HEADER_BYTES)
        self.freed_s = local.overhead_s + local.occupancy_s(HEADER_BYTES)
        self.handed_s = messages.sum() * local.overhead_s + local.occupancy_s(gradient.sum())
        held = [load for server in servers for load in traffic.loads(server)]
        lead = self.leads_of[0] + self._servers if self.others.size else scenario.ranks - 1
        self.joined_s = added_together_s(scenario, lead, held)

    def _lay_out(self, scenario) -> None:
        hosts, costs, summed = scenario.hosts[self._servers :], scenario.costs, scenario.summed
        exchanges: list = [[] for _ in hosts]
        self.sums, whole = bool(summed), slice(0, 0)
        if summed:
            (whole,) = collectives.pieces(summed, True)
            algorithm = collectives.named(scenario.protocol.algorithm, hosts, whole)
            check_size(algorithm, hosts, whole)
            exchanges = [list(collectives.allreduce(algorithm, rank, hosts, whole)) for rank in range(len(hosts))]
        self.plan = plan(exchanges, hosts)
        size_bytes = np.array(self.plan.size_bytes, float)
        self.seconds = Seconds.of(size_bytes, scenario.network, scenario.cluster.local, costs.reduce)
        self.agree_s = costs.agree_s
        self.call_s = costs.negotiate_s * (len(hosts) > 1) + costs.call(ITEM_BYTES * (whole.stop - whole.start))

    def _between(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Senders and receivers of the messages of each kind, of the shape that Kinds has without replications."""
        first, workers = self._servers, self.away.shape[1]
        ranks = np.broadcast_arrays(np.arange(first, first + workers), np.arange(first)[:, None])
        of_leads = ranks[0][:, self.leads], ranks[1][:, self.leads]
        near = self.others + first, self.leads_of + first
        pieces = self.plan.senders + first, self.plan.receivers + first
        return [tuple(ranks), tuple(ranks[::-1]), of_leads, of_leads[::-1], near, near[::-1], pieces]

    def _places(self) -> Kinds:
        requests = np.broadcast_to(np.arange(self._servers)[:, None], self._shapes[0])
        gradients = np.broadcast_to(self._servers + np.arange(self._servers)[:, None], self._shapes[2])
        notes = np.full(self._shapes[3], self.away.shape[1] + len(self.leads))
        pieces = 2 * self._servers + np.arange(len(self.plan.senders))
        each = requests, np.zeros(self._shapes[1]), gradients, notes, *np.zeros((2, len(self.others))), pieces
        return Kinds(*(one[None].astype(float) for one in each))

    def _leads(self, scenario) -> None:
        """For how long things are on their way at least: to ports, and to ranks."""
        link, local, of_leads = scenario.network, scenario.cluster.local, self.away[:, self.leads]
        to_port_s, latency_s = leads_s(link, local)
        pieces_s = min(one.min(initial=np.inf) for one in (self.seconds.port_s, self.seconds.copy_s))
        self.leads_s = min(to_port_s, pieces_s + link.overhead_s), latency_s
        requests_s, answers_s, _ = leads_to_ranks_s(self.away, link, local)
        gradients_s, _, notes_s = leads_to_ranks_s(of_leads, link, local)
        up_s = np.concatenate([requests_s, gradients_s], axis=1)
        self.leads_to_ranks_s = up_s, answers_s, notes_s, woken_s(link, local) + local.latency_s
        self.up = np.concatenate([np.arange(self.away.shape[1]), self.leads])

    def messages(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Senders, receivers, and seconds of ports, of the messages of a step, shape (messages,)."""
        senders, receivers = (np.concatenate([end[side].ravel() for end in self._ends]) for side in (0, 1))
        return senders, receivers, self.port_s

    def kinds(self, flat: np.ndarray) -> Kinds:
        """Of the messages of a step, shape (replications, messages)."""
        bounds = np.cumsum([int(np.prod(shape)) for shape in self._shapes])[:-1]
        each = zip(np.split(flat, bounds, axis=1), self._shapes, strict=True)
        return Kinds(*(one.reshape(len(one), *shape) for one, shape in each))
