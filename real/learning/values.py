"""The values of a job that trains a real model: weights as arrays, gradients that are computed when an update needs them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import numpy as np

from real import engines
from real.data import Batches
from real.learning.optimisers import OfRows, Optimiser
from real.learning.vectors import LOST, Cell, Gradient, Held, State, Sum, Vector, aligned, factors
from real.training.row_optimiser import RowOptimiser
from sim.base.errors import WrongText
from sim.language import commands
from sim.language.event.valueless import Valueless
from sim.language.job import worker_number
from sim.language.pieces import Message, Piece
from sim.language.rank import Rank

if TYPE_CHECKING:
    from real.learning.trainer import Trainer
    from real.learning.versions import Versions
    from sim.language.job import Job
    from sim.language.text import Text


class Whole:
    """All weights of the model at one place and time.

    Args:
        vector: float32 (parameters,).
    """

    __slots__ = ("__weakref__", "vector")

    def __init__(self, vector: np.ndarray):
        self.vector = vector


class ModelValues(Valueless):
    """Vectors by name, of each rank.

    Args:
        text: whose ranks have them.
        trainer: computes.
        run: the number of the real run whose first weights and order of data it has.
        versions: is told what becomes of weights.
        places: of the job's weights in the model's flat vector, shape (parameters,), where they are in another order.
        number: of the worker that a rank is (sim.job.scenario.Scenario.worker_number), if not as the text's servers say.
    """

    def __init__(
        self,
        job: Job,
        text: Text,
        trainer: Trainer,
        run: int,
        versions: Versions,
        places: np.ndarray | None = None,
        number: Callable[[int], int] | None = None,
    ):
        self._job, self._text, self._trainer, self._run, self._versions = job, text, trainer, run, versions
        self._places, self._number = places, number or (lambda rank: worker_number(rank, text.servers))
        self._vectors: list[dict[str, Vector]] = []
        self._passes = defaultdict[int, dict[str, Gradient]](dict)  # activations and slopes
        self._states = defaultdict[int, dict[tuple[int, int], State]](dict)  # of optimisers, by what they update
        self._optimisers: dict[tuple, Optimiser] = {}
        self._wholes: WeakValueDictionary[tuple, Whole] = WeakValueDictionary()
        self._batches: dict[int, Batches] = {}

    def begin(self, ranks: list[Rank]) -> None:
        """All ranks begin with the same weights."""
        size, start = ranks[0].weights.items, Held(self._of_job(self._trainer.initial(self._run)))
        self._vectors = [
            {"weights": Vector(Cell(0, size, start)), "gradient": Vector(Cell(0, size, None))} for _ in ranks
        ]
        self._versions.begin(ranks, self)

    # ---- what pieces are

    def cells(self, me: Rank, piece: Piece, to: int = 0) -> list[Cell]:
        """The cells of a piece, which begin at `to`."""
        return self._vector(me, piece).read(piece.start, piece.stop, to)

    def _vector(self, me: Rank, piece: Piece) -> Vector:
        vectors = self._vectors[me.rank]
        if piece.vector not in vectors:
            vectors[piece.vector] = Vector(Cell(0, me.items(piece), None))
        return vectors[piece.vector]

    def whole(self, cells: Sequence[Cell]) -> Whole:
        """The weights in some cells; equal cells are one object."""
        key = tuple(cell.key for cell in cells)
        found = self._wholes.get(key)
        if found is None:
            found = self._wholes[key] = Whole(self._of_model(self.array(cells)))
        return found

    def _of_model(self, values: np.ndarray) -> np.ndarray:
        """The job's weights in the order of the model's flat vector."""
        if self._places is None:
            return values
        found = np.empty_like(values)
        found[self._places] = values
        return found

    def _of_job(self, vector: np.ndarray) -> np.ndarray:
        """The model's flat vector in the order of the job's weights."""
        return vector if self._places is None else vector[self._places]

    def array(self, cells: Sequence[Cell]) -> np.ndarray:
        """The values of cells, float32 (items,), not to be written to."""
        each = [self._values(cell) for cell in cells]
        return each[0] if len(each) == 1 else np.concatenate(each)

    def _values(self, cell: Cell) -> np.ndarray:
        node, items = cell.node, slice(cell.first, cell.first + cell.stop - cell.start)
        if node is LOST:
            raise WrongText(f"{self._text.name}: a rank computes with items of a vector that it has dropped")
        if isinstance(node, Held):
            return node.values[items]
        total: np.ndarray = np.zeros(cell.stop - cell.start, np.float32)
        groups = defaultdict[tuple[Whole, float], list[Gradient]](list)
        for one, factor in factors(node).items():
            one.whole = one.whole or self.whole(one.cells)
            groups[one.whole, factor].append(one)
        for (_, factor), gradients in groups.items():
            part = self._sum(gradients)[items]
            total = part if len(groups) == 1 == factor else total + (part if factor == 1 else factor * part)
        return total

    def _sum(self, gradients: list[Gradient]) -> np.ndarray:
        """The sum of gradients of one version, which several ranks may ask for."""
        first, which = min(gradients, key=lambda one: one.serial), frozenset(one.serial for one in gradients)
        if which not in first.sums:
            first.sums[which] = self._of_job(self._trainer.sum(gradients))
        return first.sums[which]

    # ---- passes

    def forward(self, me: Rank, command: commands.Forward) -> None:
        """A pass has the weights of some more layers."""
        passes, micro, layers = self._passes[me.rank], command.micro, me.of(me.weights, command.first, command.stop)
        if command.first == 0:
            before = Gradient(self._samples(me, command))
        else:
            before = self._pass(me, passes.get(f"activation {command.first} {micro}"))
        cells = (*before.cells, *self.cells(me, layers, layers.start))
        passes[f"activation {command.stop} {micro}"] = Gradient(before.samples, cells)

    def backward(self, me: Rank, command: commands.Backward) -> None:
        """The gradient of some layers is added."""
        passes, micro, first = self._passes[me.rank], command.micro, command.first
        kind = "activation" if command.stop == len(me.layers) else "slope"
        found = self._pass(me, passes.pop(f"{kind} {command.stop} {micro}", None))
        passes.pop(f"activation {first} {micro}", None)
        if first:
            passes[f"slope {first} {micro}"] = found
        layers = me.of(me.gradient, first, command.stop)
        self._mixed(me, layers, [Cell(0, layers.items, found, layers.start)], 1.0, command.weight)

    def _pass(self, me: Rank, found: Gradient | None) -> Gradient:
        if found is None:
            said = "computes layers whose input, or the gradient of whose output, it does not have"
            raise WrongText(f"{self._text.name}: rank {me.rank} {said}")
        return found

    def _samples(self, me: Rank, command: commands.Forward) -> np.ndarray:
        """The places in the training set of a micro-batch, shape (samples,): those of the same real run."""
        shared, job = self._text.data == "shared", self._job
        if me.rank not in self._batches:
            owner = 1 if shared else self._number(me.rank)
            self._batches[me.rank] = Batches(self._trainer.data, job.batch, job.seed, self._run, owner)
        samples = job.micro_batch(command.micro, command.of)
        return self._batches[me.rank].of(me.step if shared else max(0, me.round))[samples.start : samples.stop]

    # ---- sums and messages

    def mix(self, me: Rank, command: commands.Mix) -> None:
        """Let into = a into + b what; what has factor 0 may be lost."""
        what = command.what
        cells = what.values if isinstance(what, Message) else self.cells(me, what)
        self._mixed(me, command.into, cells, command.a, command.b)

    def read(self, me: Rank, piece: Piece) -> Sequence[Cell] | Gradient:
        """What a message carries."""
        return self._passes[me.rank].get(piece.vector) or self.cells(me, piece)

    def put(self, me: Rank, piece: Piece, values: Sequence[Cell] | Gradient, adds: bool, weight: float) -> None:
        """What has come becomes a piece, or is added to it."""
        if isinstance(values, Gradient):
            self._passes[me.rank][piece.vector] = values
        else:
            self._mixed(me, piece, values, float(adds), weight)

    def ended(self, me: Rank) -> None:
        """A rank that goes through rounds has ended one."""
        self._versions.ended(me)

    def drop(self, me: Rank, command: commands.Drop) -> None:
        """The values of a piece are lost, but for a part of it."""
        piece, but = command.piece, command.but
        kept = self.cells(me, but) if but else []
        node = None if piece.vector == "gradient" else LOST
        self._vector(me, piece).write(piece.start, [Cell(0, piece.items, node)] if piece.items else [])
        if but:
            self._vector(me, but).write(but.start, kept)

    def _mixed(self, me: Rank, into: Piece, what: Sequence[Cell], a: float, b: float) -> None:
        lazily = into.vector == "gradient"
        found = [self._mixture(*cells, a, b, lazily) for cells in aligned(self.cells(me, into), what)]
        self._vector(me, into).write(into.start, found)
        self._versions.changed(me, into)

    def _mixture(self, into: Cell, what: Cell, a: float, b: float, lazily: bool) -> Cell:
        """The cell of a into + b what; `lazily`: sums of gradients are not computed yet."""
        terms = [(factor, cell) for factor, cell in ((a, into), (b, what)) if factor and cell.node]
        if not terms:
            return into._replace(node=None, first=0)
        factor, cell = terms[0]
        if len(terms) == 1 and factor == 1:
            return cell
        nodes = [(factor, one.node) for factor, one in terms if isinstance(one.node, Gradient | Sum)]
        if lazily and len(nodes) == len(terms) and terms[-1][1].first == cell.first:
            return cell._replace(node=Sum(nodes))
        each = [factor * self._values(one) for factor, one in terms]
        return into._replace(node=Held(each[0] if len(each) == 1 else each[0] + each[1]), first=0)

    # ---- updates

    def update(self, me: Rank, command: commands.Update) -> None:
        """The optimiser makes new weights; ranks that update the same by the same have the same."""
        piece = command.piece
        key, summed = (piece.start, piece.stop), Piece("gradient", piece.start, piece.stop)
        weights, gradient = self.cells(me, piece), self.cells(me, summed)
        if not weights:
            return
        states = self._states[me.rank]
        state = states.get(key)
        if state is None:
            self._check_overlaps(me, states, key)
        of = [cell.key for cell in (*weights, *gradient)]
        which = (*key, command.samples, command.rate, state.serial if state else -1, *of)
        known = weights[0].node.next if isinstance(weights[0].node, Held) else {}
        made = known.get(which)
        if made is None:
            optimiser = self._optimiser(key, command.rate)
            touched = self._touched(piece, gradient)
            made = optimiser.updated(self.array(weights), state, self.array(gradient), command.samples, touched)
            known[which] = made
        assert made.state
        states[key] = made.state
        self._vector(me, piece).write(piece.start, [Cell(0, piece.items, made)])
        self._vector(me, summed).write(piece.start, [Cell(0, piece.items, None)])
        self._versions.updated(me, piece, command.samples)

    def _check_overlaps(self, me: Rank, states: dict[tuple[int, int], State], key: tuple[int, int]) -> None:
        for start, stop in states:
            if start < key[1] and key[0] < stop:
                said = f"updates items {key[0]:,} to {key[1]:,} and {start:,} to {stop:,}"
                raise WrongText(f"{self._text.name}: rank {me.rank} {said}: an optimiser keeps to its piece")

    def _optimiser(self, key: tuple[int, int], rate: float | None) -> Optimiser:
        if (*key, rate) not in self._optimisers:
            name, usual, *others = self._trainer.training.rates
            library, rates = engines.engine_of(self._trainer.training.engine), (name, usual if rate is None else rate)
            if self._is_sparse(*key):
                self._optimisers[*key, rate] = OfRows(RowOptimiser(*rates, *others), key[1] - key[0])
            else:
                self._optimisers[*key, rate] = Optimiser(library.optimiser(*rates, *others), key[1] - key[0])
        return self._optimisers[*key, rate]

    def _is_sparse(self, start: int, stop: int) -> bool:
        """Whether rows of some items, and not all, may have a gradient."""
        ends = [0, *accumulate(layer.items for layer in self._job.layers)]
        return any(ends[k] < stop and start < ends[k + 1] for k in self._job.sparse)

    def _touched(self, piece: Piece, gradient: Sequence[Cell]) -> np.ndarray | None:
        """Whether samples of the gradient have read the row of each item of a piece with sparse layers, shape (items,)."""
        if not self._is_sparse(piece.start, piece.stop):
            return None
        each = dict.fromkeys(one for cell in gradient for one in factors(cell.node))
        return self._of_job(self._trainer.touched(each))[piece.start : piece.stop]
