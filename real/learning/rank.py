"""`me` of training in simulated time: a rank of the event world, whose messages carry parameters and gradients."""

from __future__ import annotations

import numpy as np
from sim.event.ranks.calls import Calls
from sim.event.ranks.letters import Letters
from sim.event.ranks.rank import Rank

from real.learning.parameters import Carried, Gradient, Shared, Whole
from sim.collectives.base import DENSE, NOTHING, Exchange
from sim.verbs.collectives import allgather
from sim.verbs.me import Layer, Partition


class LearningRank(Rank):
    """A rank that holds real parameters. Its verbs take the time that they take in the event world, and do what they say besides.

    Args:
        world: real.learning.world.LearningWorld; the others as in the event world.
    """

    def _begin(self) -> None:
        super()._begin()
        self.letters = CarryingLetters(self)
        self.send = self.letters.send
        self.compute, self.compute_until, self.update = self._compute, self._compute_until, self._update
        self.add, self.take_up = self._add, self._take_up
        self.parameters = self.world.at_the_start(self.rank)  # by the key of their section
        self.own: list[Gradient] = []  # of the gradient that was computed last
        self.at_sum: list[Gradient] = []  # of the gradient or the sum at hand
        self.shared: list[Shared] = []  # sums of all workers, since the last gradient
        self.vector: np.ndarray | None = None  # that is exchanged, where the text itself exchanges pieces
        self.calls_entered = 0
        self._carrying: CarryingCalls | None = None
        self._places, self._left, self._layered = self.world.order_of_data(self.rank), np.empty(0, int), False

    def fall_apart(self) -> None:
        """Drop all references to others, and to what it holds."""
        super().fall_apart()
        self.letters.rank = self._carrying = None
        for verb in ("compute", "compute_until", "update", "add", "take_up", "send"):
            setattr(self, verb, None)
        self.parameters, self.own, self.at_sum, self.shared = {}, [], [], []

    @property
    def calls(self) -> CarryingCalls:
        """Its collective calls."""
        if self._carrying is None:
            self._calls = self._carrying = CarryingCalls(self)
        return self._carrying

    # ---- gradients

    @property
    def whole(self) -> Whole:
        """All parameters that the rank has at hand."""
        return self.world.whole(self)

    def _compute(self, part=None):
        found = self.computing.compute(part)  # which refuses to lose a gradient
        if type(part) is Partition:
            self._begin_partition(part)
        elif not self._layered:
            self._begin_gradient(self.whole, self._places())
        self._layered = type(part) is Layer and not part.last
        return found

    def _compute_until(self, deadline_s: float, partitions: int):
        whole, places = self.whole, self._places()
        yield from self.computing.compute_until(deadline_s, partitions)
        self._begin_gradient(whole, places[: self.samples])

    def _begin_gradient(self, whole: Whole, places: np.ndarray) -> None:
        self.own = [Gradient(whole, places)]
        self.at_sum, self.shared, self.vector = list(self.own), [], None
        if self.layerwise:
            self.world.layers.computed(self.step, self.own[0])

    def _begin_partition(self, part: Partition) -> None:
        if part.index == 0:
            self._left = self._places()
            self.own, self.at_sum, self.shared, self.vector = [], [], [], None
        size = len(self._left) // part.of
        one = Gradient(self.whole, self._left[part.index * size : (part.index + 1) * size])
        self.own.append(one)
        self.at_sum.append(one)

    # ---- parameters

    def _take_up(self, letter):
        found = self.summing.take_up(letter)
        self.parameters = {**self.parameters, letter.sender: letter.carried.held}
        return found

    def _add(self, letter):
        if not (self.serves or self.at_hand.what):  # what was handed on is not added to
            self.at_sum = []
        found = self.summing.add(letter)
        if not self.layerwise:
            self.at_sum.extend(letter.carried.gradients)
        return found

    def _update(self, variables=None):
        found = self.summing.update(variables)
        if not self.layerwise:
            self.parameters = self.world.updated_parameters(self)
            self.at_sum, self.shared, self.vector = [], [], None
        elif variables is not None:
            self.world.layers.update(self.step, variables)
        return found

    # ---- sums over workers

    def allgather(self):
        """The sum of the rows of sparse variables of all workers."""
        if self.scenario.gathered_variables:
            yield from self.calls.of_all(NOTHING, allgather.__wrapped__(self))

    def exchange(self, exchange: Exchange, ready: int = 0):
        """Send a piece while receiving another one. Where the text itself exchanges pieces, they are numbers."""
        if exchange.kind != DENSE or self.calls.under_way:
            return (yield from super().exchange(exchange, ready))
        if self.vector is None:
            self.vector = self.world.vector(self)
        letter, vector = (yield from super().exchange(exchange, ready)), self.vector
        taken = vector[exchange.taken]  # a view; the number of samples comes after the vector's last item
        if letter is not None and taken.size:
            piece = letter.carried.piece[: taken.size]
            taken[:] = taken + piece if exchange.adds else piece
        return letter


class CarryingLetters(Letters):
    """Messages with what they carry."""

    def message(self, version: int, peer: int):
        """The message this rank sends, with its parameters or its gradient."""
        rank, found = self.rank, super().message(version, peer)
        if rank.serves:
            found.carried = Carried(held=rank.parameters[rank.rank])
        else:
            found.carried = Carried(gradients=tuple(rank.at_sum))
        return found


class CarryingCalls(Calls):
    """Collective calls. The sum of one of all workers is known by the gradients that enter it."""

    def __init__(self, rank):
        super().__init__(rank)
        self.under_way = 0  # calls of all workers

    def reduce(self, algorithm: str, piece: slice):
        """One call of an allreduce."""
        yield from self.of_all(piece, super().reduce(algorithm, piece))

    def of_all(self, piece: slice, call):
        """Follow a call of all workers, and take what it sums."""
        rank, self.under_way = self._rank, self.under_way + 1
        shared = rank.world.enter(rank, piece)
        yield from call
        rank.shared.append(rank.world.taken(shared))
        self.under_way -= 1

    def piece(self, exchange: Exchange):
        """The message of an exchange, with the numbers that the text hands over."""
        found = super().piece(exchange)
        if exchange.kind == DENSE and not self.under_way:
            found.carried = Carried(piece=self._rank.vector[exchange.sent].copy())
        return found
