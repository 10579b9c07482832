"""One round of parameter servers behind a barrier, as arrays: all workers pull, compute and push, and every server adds all gradients.

A server takes requests and gradients in the order in which they come, and when a gradient comes depends on when its worker's requests
were answered. First all gradients are taken to come last; then everything is reckoned anew with when they came, until nothing changes.
What is reckoned at a moment depends on what came before it alone, so that each time more of it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sim.model.costs import side_by_side
from sim.model.sparse_rows import HEADER_BYTES, Load
from sim.vector.exchanges import MOST_ROUNDS, SETTLED_S, Unsettled
from sim.vector.ties import check_apart, sorted_by_turn

Wait = tuple[np.ndarray, np.ndarray]  # from, to; shape (replications, ranks, waits)


class Clocks(NamedTuple):
    """Clocks of ranks and their ports, shape (replications, ranks)."""

    now_s: np.ndarray
    out_free_s: np.ndarray
    in_free_s: np.ndarray


class Sizes(NamedTuple):
    """Seconds of what servers and workers send to one another and do with it, shape (servers,) or (servers, 1).

    Args:
        request_s, answer_s, gradient_s, note_s: for which a message takes a port; latency_s: on its way.
        overhead_s: of a core of speed 1, at either end of a note.
        messages: that travel together as a request, an answer or a gradient: several where rows travel.
        take_up_s, reduce_s: of such a core, for parameters and for a gradient.
    """

    request_s: np.ndarray
    answer_s: np.ndarray
    gradient_s: np.ndarray
    note_s: float
    latency_s: float
    overhead_s: float
    messages: np.ndarray
    take_up_s: np.ndarray
    reduce_s: np.ndarray

    @property
    def load_overhead_s(self) -> np.ndarray:
        """Seconds of a core of speed 1, at either end of a request, an answer or a gradient."""
        return self.overhead_s * self.messages

    @property
    def lead_s(self) -> float:
        """For how long a message is on its way at least, from when its sender, with a host of its own, was woken by another."""
        return self.latency_s + self.overhead_s + self.note_s

    @classmethod
    def of(cls, scenario) -> Sizes:
        """The sizes of a scenario; the loads of a server travel together."""
        link, costs = scenario.network, scenario.costs
        request, answer, gradient = travelling_bytes(scenario)
        ports = (
            link.occupancy_s(request),
            link.occupancy_s(answer),
            link.occupancy_s(gradient),
            link.occupancy_s(HEADER_BYTES),
        )
        loads = [scenario.traffic.loads(server) for server in range(scenario.servers)]
        messages, added_s = (
            np.array([len(held) for held in loads]),
            np.array([added_together_s(scenario, server, held) for server, held in enumerate(loads)]),
        )
        return cls(*ports, link.latency_s, link.overhead_s, messages, costs.take_up(answer), added_s)


def travelling_bytes(scenario) -> list[np.ndarray]:
    """Bytes of a request, an answer and a gradient between a worker and each server, shape (servers,)."""
    loads = [scenario.traffic.loads(server) for server in range(scenario.servers)]
    names = ("request_bytes", "answer_bytes", "gradient_bytes")
    return [np.array([sum(getattr(load, name) for load in held) for held in loads], float) for name in names]


def added_together_s(scenario, rank: int, loads: Sequence[Load]) -> float:
    """Seconds of a core of speed 1 in which a rank adds a gradient of such loads: its parts at once, as far as there are cores."""
    costs, cores = scenario.costs, scenario.machines[scenario.hosts[rank]].cores
    of_rows = costs.reduce_rows or costs.reduce
    parts = [(of_rows if load.rows else costs.reduce, load.gradient_bytes) for load in loads]
    return side_by_side([line(size_bytes) for line, size_bytes in parts], cores)


class Served(NamedTuple):
    """The state of servers: their clocks, when each answer reaches its worker, and their waits.

    Args:
        answers_s: shape (replications, servers, workers).
        added: numbers that grow in the order in which gradients were added, likewise.
    """

    clocks: Clocks
    answers_s: np.ndarray
    added: np.ndarray
    waits: Wait


class Pushed(NamedTuple):
    """The state of workers: their clocks, when their gradients reach each server, (replications, servers, workers), and their waits."""

    clocks: Clocks
    gradients_s: np.ndarray
    waits: Wait


def settle(
    sizes: Sizes,
    serving: tuple[Clocks, np.ndarray],
    working: tuple[Clocks, np.ndarray],
    requests_s: np.ndarray,
    compute: Callable,
) -> tuple[Served, Pushed]:
    """A round up to where all servers have added all gradients.

    Args:
        serving, working: clocks and speeds of servers, and of workers once their requests are on their way.
        requests_s: when these reach servers, shape (replications, servers, workers).
        compute: from when workers have all parameters to when they have their gradients, shape (replications, workers).

    Raises:
        Unsettled: two messages come so near to one another that rounding may decide which is first.
    """
    gradients_s = np.full(requests_s.shape, np.inf)
    for _ in range(MOST_ROUNDS):
        served = serve(sizes, *serving, requests_s, gradients_s)
        pushed = push(sizes, *working, served.answers_s, compute)
        settled = (
            np.array_equal(pushed.gradients_s, gradients_s)
            or np.abs(pushed.gradients_s - gradients_s).max() <= SETTLED_S
        )
        if settled:
            come_s = np.concatenate([requests_s, pushed.gradients_s], axis=2)
            check_apart(come_s, np.tile(np.arange(requests_s.shape[2]), 2), sizes.lead_s)
            check_received(sizes, served.answers_s)
            return served, pushed
        gradients_s = pushed.gradients_s
    raise Unsettled


def serve(sizes: Sizes, clocks: Clocks, speeds: np.ndarray, requests_s: np.ndarray, gradients_s: np.ndarray) -> Served:
    """Servers take what comes in order: they answer a request at once, and add a gradient."""
    workers, overhead_s = requests_s.shape[2], sizes.load_overhead_s / speeds
    come_s = np.concatenate([requests_s, gradients_s], axis=2)
    turn, come_s = sorted_by_turn(come_s, lambda: np.tile(np.arange(workers), 2))
    asks = turn < workers
    port_s = np.where(asks, sizes.request_s[:, None], sizes.gradient_s[:, None])
    core_s = np.where(asks, 2 * overhead_s[:, :, None], (overhead_s + sizes.reduce_s / speeds)[:, :, None])
    pass_s = queue(come_s, clocks.in_free_s, port_s)
    done_s = queue(pass_s + port_s, clocks.now_s, core_s) + core_s
    waits = np.concatenate([clocks.now_s[:, :, None], done_s[:, :, :-1]], axis=2), pass_s
    in_turn_s, place = np.empty_like(done_s), np.empty_like(turn)
    np.put_along_axis(in_turn_s, turn, done_s, 2)
    np.put_along_axis(place, turn, np.broadcast_to(np.arange(turn.shape[2]), turn.shape), 2)
    answers = in_turn_s[:, :, :workers], place[:, :, :workers]
    leave_s, out_free_s = send(*answers, clocks.out_free_s, sizes.answer_s)
    after = Clocks(done_s[:, :, -1], out_free_s, pass_s[:, :, -1] + port_s[:, :, -1])
    return Served(after, leave_s + sizes.latency_s, place[:, :, workers:], waits)


def push(sizes: Sizes, clocks: Clocks, speeds: np.ndarray, answers_s: np.ndarray, compute: Callable) -> Pushed:
    """Workers take up parameters as they come, compute, and send each server its gradient."""
    core_s = np.multiply.outer(1 / speeds, sizes.load_overhead_s + sizes.take_up_s)
    now_s, in_free_s, waits = receive(answers_s, clocks, sizes.answer_s, core_s)
    posted_s = posted_of(sizes, compute(now_s), speeds)
    begin_s = queue(posted_s, clocks.out_free_s, np.broadcast_to(sizes.gradient_s, posted_s.shape))
    left_s = begin_s[:, :, -1] + sizes.gradient_s[-1]
    after = Clocks(np.maximum(posted_s[:, :, -1], left_s), left_s, in_free_s)
    return Pushed(after, (begin_s + sizes.latency_s).swapaxes(1, 2), waits)


def posted_of(sizes: Sizes, now_s: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    """When workers have posted a request or a gradient to each server in turn, shape (replications, workers, servers)."""
    return now_s[:, :, None] + np.cumsum(sizes.load_overhead_s) / speeds[:, :, None]


def check_received(sizes: Sizes, reach_s: np.ndarray) -> None:
    """The order is known in which messages of servers come to workers, shape (replications, servers, workers).

    Raises:
        Unsettled: two come so near to one another that rounding may decide which is first.
    """
    if reach_s.shape[1] > 1:
        check_apart(reach_s.swapaxes(1, 2), np.arange(reach_s.shape[1]), sizes.lead_s)


def receive(reach_s: np.ndarray, clocks: Clocks, port_s, core_s: np.ndarray) -> tuple[np.ndarray, np.ndarray, Wait]:
    """Each worker takes a message from each server, in order of arrival: its clock, when its port is free, and its waits.

    Args:
        reach_s: when they reach its port, shape (replications, servers, workers).
        port_s: for which they take it, shape (servers,) or a number.
        core_s: for which they take its core, shape (replications, workers, servers).
    """
    reach_s = reach_s.swapaxes(1, 2)
    turn, come_s = sorted_by_turn(reach_s)
    core_s = np.take_along_axis(core_s, turn, 2)
    port_s = np.broadcast_to(port_s, reach_s.shape[2:])[turn]
    pass_s = queue(come_s, clocks.in_free_s, port_s)
    done_s = queue(pass_s + port_s, clocks.now_s, core_s) + core_s
    waits = np.concatenate([clocks.now_s[:, :, None], done_s[:, :, :-1]], axis=2), pass_s
    return done_s[:, :, -1], pass_s[:, :, -1] + port_s[:, :, -1], waits


def let_go(sizes: Sizes, clocks: Clocks, speeds: np.ndarray, added: np.ndarray) -> tuple[Clocks, np.ndarray]:
    """Servers send each worker a note, in the order in which they added gradients: their clocks, and when notes reach workers."""
    place = np.argsort(np.argsort(added, axis=2), axis=2) + 1
    posted_s = clocks.now_s[:, :, None] + sizes.overhead_s / speeds[:, :, None] * place
    leave_s, out_free_s = send(posted_s, place, clocks.out_free_s, np.full(added.shape[1], sizes.note_s))
    return clocks._replace(now_s=posted_s.max(axis=2), out_free_s=out_free_s), leave_s + sizes.latency_s


def send(
    posted_s: np.ndarray, place: np.ndarray, free_s: np.ndarray, port_s: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """When messages of one size begin to leave servers, which send them in this order, and when the ports are free after them."""
    turn = np.argsort(place, axis=2)
    service_s = np.broadcast_to(port_s[:, None], posted_s.shape)
    begin_s = queue(np.take_along_axis(posted_s, turn, 2), free_s, service_s)
    leave_s = np.empty_like(begin_s)
    np.put_along_axis(leave_s, turn, begin_s, 2)
    return leave_s, begin_s[:, :, -1] + port_s


def queue(come_s: np.ndarray, free_s: np.ndarray, service_s: np.ndarray) -> np.ndarray:
    """When a queue begins to serve those that come in order, shape (replications, queues, in order); free_s is when it is free first."""
    before_s = np.cumsum(service_s, axis=2) - service_s
    return np.maximum.accumulate(np.maximum(come_s, free_s[:, :, None]) - before_s, axis=2) + before_s
