"""`me` while a text is lowered: what is the same at all ranks is known, the rest is symbols."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

from sim.language import commands
from sim.language.engine import layout as op
from sim.language.engine.rows import RANK
from sim.language.engine.values import BEYOND, NotLowered, Number, Part, Plain, Range, symbolic
from sim.language.pieces import Piece
from sim.language.rank import Rank


def looked_up(of: Callable[..., Any], every: str) -> Any:
    """A method for one layer, server or rank: what it gives for each of `every` is looked up when ranks run."""

    def found(me: Me, one: Any, *given: Any, **named: Any) -> Any:
        if not symbolic(one):
            known = of(me, one, *given, **named)
            return Part(known.vector, 0, known.items) if isinstance(known, Piece) else known
        each, table = [of(me, k, *given, **named) for k in getattr(me, every)], me._code.looked_up
        if isinstance(each[0], range):
            return Range(*(table([getattr(k, end) for k in each], one) for end in ("start", "stop")))
        if isinstance(each[0], Piece):
            return Part("rows", 0, table([piece.items for piece in each], one))
        return table(each, one)

    return found


class Me(Rank):
    """All ranks of a job at once.

    Args:
        rank: one of them, for what all have in common.
        code: of the text (primitives.Program).
        draws: by their number, lists with a random number of each step, and below what these are.
    """

    def __init__(self, rank: Rank, code: Any, draws: dict[int, int]):
        alike = {name: one for name, one in vars(rank).items() if name not in ("step", "round")}
        weights, gradient = (Part(name, 0, rank.weights.items) for name in ("weights", "gradient"))
        vars(self).update(alike, rank=Number(code, RANK), weights=weights, gradient=gradient)
        self.items_to, self._code, self._draws, self._ranks = rank._ends, code, draws, range(rank.n)

    @property
    def step(self) -> Any:  # type: ignore[override]
        return self._code.put(op.STEP)

    def now(self) -> Any:
        return self._code.put(op.NOW)

    def draw(self, n: int) -> Any:
        if n > op.EXACT:
            raise NotLowered(BEYOND)
        number = len(self._code.lists)
        self._draws[number] = index(n)  # the same at all ranks
        self._code.lists.append([0.0] * self._job.steps)
        return self._code.put(op.GET, number, self.step, Plain(1))

    def of(self, vector: Piece, first: Any, stop: Any = None) -> Part:
        ends = (self._code.looked_up(self.items_to, one) for one in (first, first + 1 if stop is None else stop))
        return Part(vector.vector, *(vector.start + one for one in ends))

    def held(self, vector: Piece, server: Any) -> Any:
        shares = self._job.shares
        if not shares:
            return vector.part(server, len(self.servers))
        to = [sum(shares[:k]) for k in range(len(shares) + 1)]
        return Part(vector.vector, *(vector.start + self._code.looked_up(to, one) for one in (server, server + 1)))

    def vector(self, name: str, items: Any) -> Part:
        return Part(name, 0, items)

    def activation(self, layer: Any, micro: Any = 0, of: Any = 1) -> Part:
        each = [one.activation_items for one in self._job.layers]
        if None in each:
            self._code.same_size(self._code.looked_up([int(one is not None) for one in each], layer), 1)
        items = self._code.looked_up([one or 0 for one in each], layer)
        return Part("activation", 0, items * self._code.samples_of(micro, of))

    slope = activation

    def share(self, layer: Any, minibatches: Any = 1, numbered: bool = False) -> Any:
        if not symbolic(minibatches):
            return self._share(layer, minibatches, numbered)
        most = max(len(Rank.neighbours(self, rank)) for rank in self.workers)  # as many as the workers of a host
        table = [self._job.share(one, several, numbered) for several in range(1, most + 1) for one in self.layers]
        return self._code.looked_up(table, (minibatches - 1) * len(self.layers) + layer)

    host, neighbours = looked_up(Rank.host, "_ranks"), looked_up(Rank.neighbours, "_ranks")
    asked, held_share = looked_up(Rank.asked, "servers"), looked_up(Rank.held_share, "servers")
    rows, server_of, _share = (looked_up(one, "layers") for one in (Rank.rows, Rank.server_of, Rank.share))

    # Handles may be in a list of the text's own.

    def start(self, text: Any, after: Any = ()) -> Any:
        return (yield commands.Start(text, after))

    def wait(self, handles: Any, count: Any = None) -> Any:
        yield commands.Wait(handles, count)
