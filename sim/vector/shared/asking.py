"""How ranks that share hosts agree on what to sum next: their requests are exchanges that pass the ports of hosts, as those of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sim.collectives.base import Exchange, hand, post, take
from sim.collectives.tree import tree
from sim.vector.cycles.by_name import ANSWERS
from sim.vector.cycles.late_waits import Moved
from sim.vector.cycles.negotiation import Asked, Begun, Told
from sim.vector.exchanges import MOST_ROUNDS, Ports, Unsettled
from sim.vector.shared.calls import NEVER_S, Last, SharedCalls, Talk
from sim.verbs.fusion import REQUEST


class Again(NamedTuple):
    """A call that was played again with the requests after it; moments from when its negotiation was over.

    Args:
        ended_s, begin_s: when ranks have ended the call, and ask; shape (replications, ranks).
        asked: their requests.
        waits, held_up: in the call, without requests and with them: ranks, from, to.
    """

    ended_s: np.ndarray
    begin_s: np.ndarray
    asked: Asked
    waits: list
    held_up: list

    def moved(self, rows: np.ndarray, computed_s: np.ndarray, root_s: np.ndarray) -> list[Moved]:
        """Waits that requests have moved; see sim.vector.cycles.late_waits.Moved."""
        found = []
        for (ranks, *alone), (_, *held_up) in zip(self.waits, self.held_up, strict=True):
            before_s, after_s = np.broadcast_arrays(np.stack(alone), np.stack(held_up))
            row, which = ((before_s != after_s).any(axis=0) & (root_s + after_s[1] > computed_s[:, ranks])).nonzero()
            for sign, times_s in ((1, after_s), (-1, before_s)):
                from_s, to_s = root_s[row, 0] + times_s[:, row, which]
                who = rows[row], ranks[which], computed_s[row, ranks[which]]
                found.append(Moved(*who, np.full(len(row), sign), from_s, to_s))
        return found


class Asking:
    """Negotiation along a binomial tree, or by name, of the workers of a scenario.

    Args:
        by_name: every rank names its gradients to rank 0.
    """

    def __init__(self, scenario, by_name: bool):
        self._by_name = by_name
        self.calls = SharedCalls(scenario, scenario.hosts, (_by_name if by_name else _by_tree)(scenario.ranks))

    def ask(self, begun: Begun, out_free_s: np.ndarray, speeds: np.ndarray) -> Asked:
        """All requests.

        Args:
            out_free_s: when the port by which each rank's messages leave is free, shape (replications, ranks).
            speeds: of each rank's core, likewise.

        Raises:
            Unsettled: which message passes a port first cannot be told, or one may come before the last of a call.
        """
        ports = Ports(begun.now_s, out_free_s, begun.in_free_s, begun.last_reach_s)
        return _asked(*self.calls.ask(ports, speeds, self._messages(begun.now_s, begun.more)))

    def ask_after(self, last: Last, ended_s: np.ndarray, begin, more: Callable[[np.ndarray], np.ndarray]) -> Again:
        """All requests after a call, whose messages they may hold up.

        Args:
            ended_s: when ranks end the call if nothing does, shape (replications, ranks).
            begin: when ranks ask who have ended it, see sim.vector.shared.call.Work.
            more: counts gradients that have become ready, by when ranks ask.

        Raises:
            Unsettled: which message passes a port first cannot be told.
        """
        begin_s, now_s = begin(slice(None), ended_s), ended_s.copy()

        def ask(ranks: np.ndarray, at_s: np.ndarray) -> np.ndarray:
            now_s[:, ranks], begin_s[:, ranks] = at_s, begin(ranks, at_s)
            return begin_s[:, ranks]

        for _ in range(MOST_ROUNDS):
            messages = self._messages(begin_s, lambda: more(begin_s))
            after, held_up, waits = self.calls.play_and_ask(last, ask, messages)
            if (messages == self._messages(begin_s, lambda: more(begin_s))).all():
                alone = self.calls.play_and_ask(last, ask, None)[1]
                return Again(now_s, begin_s, _asked(after, waits), alone, held_up)
        raise Unsettled

    def _messages(self, begin_s: np.ndarray, more: Callable[[], np.ndarray]) -> np.ndarray:
        return more() + 1 if self._by_name else np.ones(begin_s.shape)

    def tell(self, _overhead_s: np.ndarray, speeds: np.ndarray) -> Told:
        """Nothing: the answer and the first call after it are played as one."""
        never_s = np.full(speeds.shape, NEVER_S)
        return Told(Ports(never_s, never_s, never_s, never_s), never_s, np.full((2, *speeds.shape), np.inf))


def _asked(after, waits) -> Asked:
    return Asked(after.now_s[:, :1], after.now_s, waits)


def _by_tree(ranks: int) -> Talk:
    asks, answers = [], []
    for rank in range(ranks):
        both = [one._replace(adds=False) for one in tree(rank, range(ranks), REQUEST)]
        up = len(both) // 2
        asks.append(both[:up])
        answers.append(both[up:])
    return Talk(asks, answers, 1)


def _by_name(ranks: int) -> Talk:
    others = range(1, ranks)
    asks = [[take(one, REQUEST) for one in others], *([hand(0, REQUEST)] for _ in others)]
    answers: list[list[Exchange]] = [[post(one, REQUEST) for one in others], *([take(0, REQUEST)] for _ in others)]
    return Talk(asks, answers, ANSWERS)
