"""The vectors of one rank whose model has sparse layers: of these, rows that minibatches touch are computed, sent and updated."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter

import numpy as np

from real.language.asked import Asked
from real.language.trained import Trained
from real.training.row_optimiser import Table
from real.training.row_slices import Slices
from real.training.sparse_gradients import SparseGradient, look_up
from real.training.trainee import Trainee
from sim.base.errors import WrongText
from sim.job.scenario import Scenario
from sim.language import commands
from sim.language.job import Job
from sim.language.pieces import Message, Piece
from sim.language.rank import Rank
from sim.language.text import Text

NO_ROWS = np.empty(0, np.int32)


@dataclass(frozen=True)
class Part:
    """A sparse layer: all rows of a sparse variable, or those whose number, divided by so many parts, leaves the same.

    Args:
        variable: its number among the sparse variables.
        start: of the layer in the job's weights.
        width: numbers in a row.
        at: the place here of each row of the variable, -1 if it is not here; int32 (rows of the variable,).
    """

    variable: int
    start: int
    width: int
    at: np.ndarray

    def here(self, rows: np.ndarray) -> np.ndarray:
        """Which of some rows of the variable are here, bool (rows,)."""
        return self.at[rows] >= 0


class RowsTrained(Trained):
    """As Trained, where rows travel.

    A message of a sparse layer has the numbers of rows and then their values; in answer to a request, which has the numbers, values
    alone. Of several sparse layers together, how many rows each has comes first.

    Args:
        places: of the job's weights in the model's flat vector, shape (parameters,).
    """

    def __init__(self, job: Job, trainee: Trainee, text: Text, asked: Asked, places: np.ndarray):
        self._places = places
        super().__init__(job, trainee, text, asked)
        self._ends = [0, *accumulate(layer.items for layer in job.layers)]
        self._parts = {layer: self._part(layer) for layer in job.sparse}
        dense, start = list[np.ndarray](), 0
        for variable in trainee.scenario.workload.variables:
            if not variable.rows:
                dense.append(np.arange(start, start + variable.size))
            start += variable.size
        of_job = np.empty(places.size, int)
        of_job[places] = np.arange(places.size)
        self._dense = (
            of_job[np.concatenate(dense)] if dense else np.empty(0, int)
        )  # where they are in the job's weights
        self._read = dict[int, np.ndarray]()  # of each sparse layer, the rows that the minibatch reads
        self._requests = defaultdict[int, deque[np.ndarray]](
            deque
        )  # that have not been answered, by the rank that asks
        self._passed = dict[str, np.ndarray]()  # messages that are passed on, by the vector that they were put into
        self._gradients = dict[int, list[Slices]]()  # of each sparse layer, what has been added

    def _part(self, layer: int) -> Part:
        variables = self._trainee.scenario.workload.variables
        starts = [0, *accumulate(variable.size for variable in variables)]
        places = self._places[self._ends[layer] : self._ends[layer + 1]]
        number = next(k for k, start in enumerate(starts) if start > places[0]) - 1
        rows = variables[number].shape[0]
        width = variables[number].size // rows
        at = np.full(rows, -1, np.int32)
        at[(places[::width] - starts[number]) // width] = np.arange(places.size // width)
        return Part(sum(bool(one.rows) for one in variables[:number]), self._ends[layer], width, at)

    def begin(self, ranks: list[Rank]) -> None:
        """The rank begins with the weights with which all do, and has a table of each sparse layer that it updates."""
        super().begin(ranks)
        (me,) = ranks
        weights, updates = self.view(me, me.weights), self._asked.updates.get(me.rank, ())
        weights[:] = self._trainee.initial()[self._places]
        self._tables = dict[int, Table]()
        for layer, part in self._parts.items():
            start, stop = self._ends[layer : layer + 2]
            self._gradients[layer] = []
            if any(first <= start and stop <= last for first, last in updates):
                self._tables[layer] = Table(weights[start:stop].reshape(-1, part.width), self._trainee.of_rows())

    # ---- pieces

    def _stretches(self, piece: Piece) -> Iterator[tuple[int | None, Piece]]:
        """The sparse layers in a piece, and the stretches between them."""
        begin = piece.start
        for layer, part in self._parts.items():
            stop = self._ends[layer + 1]
            if piece.start <= part.start and stop <= piece.stop:
                if begin < part.start:
                    yield None, Piece(piece.vector, begin, part.start)
                yield layer, Piece(piece.vector, part.start, stop)
                begin = stop
            elif max(piece.start, part.start) < min(piece.stop, stop):
                raise WrongText("part of a sparse layer, of which whole rows travel")
        if begin < piece.stop:
            yield None, Piece(piece.vector, begin, piece.stop)

    def _of(self, me: Rank, piece: Piece) -> np.ndarray:
        """The rows of a sparse layer, float32 (rows, width): a view."""
        return self.view(me, piece).reshape(-1, next(p.width for p in self._parts.values() if p.start == piece.start))

    def _sparse(self, piece: Piece) -> list[int]:
        """The sparse layers of which a piece has all."""
        return [layer for layer, _ in self._stretches(piece) if layer is not None]

    # ---- passes

    def _fetched(self) -> tuple[np.ndarray, np.ndarray]:
        """The next minibatch, whose input has places among the rows that it reads."""
        x, y = super()._fetched()
        self._words, x = look_up(x)
        self._read = {layer: part.at[self._words[part.here(self._words)]] for layer, part in self._parts.items()}
        return x, y

    def _computed(self, me: Rank, x: np.ndarray, y: np.ndarray, weight: float) -> float:
        weights, gradient = self.view(me, me.weights), self.view(me, me.gradient)
        tables = dict[int, np.ndarray]()
        for layer, part in self._parts.items():
            into = tables.setdefault(part.variable, np.empty((len(self._words), part.width), np.float32))
            into[part.here(self._words)] = self._rows_of(me, layer, self._read[layer])
        found: SparseGradient = self._trainee.gradients.by_rows(
            weights[self._dense], [tables[k] for k in sorted(tables)], x, y
        )
        gradient[self._dense] += weight * found.sum
        for layer, part in self._parts.items():
            of_layer = found.rows[part.variable][part.here(self._words)]
            self._add(layer, self._read[layer], of_layer, weight)
        return found.computed_s

    def _rows_of(self, me: Rank, layer: int, rows: np.ndarray) -> np.ndarray:
        """The weights of some rows."""
        if layer in self._tables:
            return self._tables[layer].read(rows)
        return self._of(me, me.of(me.weights, layer))[rows]

    def _add(self, layer: int, rows: np.ndarray, values: np.ndarray, weight: float = 1.0) -> None:
        """Add to the gradient of some rows, each named once."""
        self._gradients[layer].append(Slices(rows, values if weight == 1 else np.float32(weight) * values))

    def _summed(self, layer: int) -> Slices:
        """The gradient of a sparse layer, added up in an order that is the same at all ranks."""
        none = Slices(NO_ROWS, np.empty((0, self._parts[layer].width), np.float32))
        return sum(sorted(self._gradients[layer], key=lambda one: (one.rows.tobytes(), one.values.tobytes())), none)

    def _clear(self, me: Rank, piece: Piece) -> None:
        for layer, part in self._stretches(piece):
            if layer is None:
                self.view(me, part)[:] = 0
            else:
                self._gradients[layer].clear()

    @property
    def joined_items(self) -> int:
        """Numbers of this rank's gradient, as it is sent."""
        rows = sum(of.size * (1 + self._parts[layer].width) for layer, of in self._read.items())
        return rows + self._dense.size

    # ---- messages

    def payload(self, me: Rank, piece: Piece, to: int) -> np.ndarray:
        """What a message carries; numbers of rows are int32, in their bits."""
        if piece.vector.partition(" ")[0] == "rows":
            return self._request(me, piece, to)
        if piece.vector in self._passed:
            return self._passed[piece.vector]
        layers = self._sparse(piece)
        if not layers or piece.vector not in ("weights", "gradient"):
            return self.view(me, piece)
        if piece.vector == "gradient":
            return self._packed(me, piece, {layer: self._summed(layer) for layer in layers}, numbered=True)
        rows = {layer: np.arange(self._count(layer)) for layer in layers}
        if self._requests[to]:
            asked = self._requests[to].popleft()
            counted = len(layers) if len(layers) > 1 else 0
            ends = np.cumsum(asked[:counted])[:-1]
            rows = dict(zip(layers, np.split(asked[counted:], ends), strict=True))
        found = {layer: Slices(of, self._rows_of(me, layer, of)) for layer, of in rows.items()}
        return self._packed(me, piece, found, numbered=False)

    def _count(self, layer: int) -> int:
        """All rows of a sparse layer."""
        return self._job.layers[layer].items // self._parts[layer].width

    def _request(self, me: Rank, piece: Piece, to: int) -> np.ndarray:
        """The numbers of the rows that this rank's minibatch reads, of a layer or of all that a server holds."""
        _, _, one = piece.vector.partition(" ")
        layers = [int(one)] if one else self._sparse(me.held(me.weights, to))
        rows = [self._read.get(layer, NO_ROWS) for layer in layers]
        counts = [np.array([of.size for of in rows], np.int32)] if len(rows) > 1 else []
        return np.concatenate([*counts, *rows]).view(np.float32)

    def _packed(self, me: Rank, piece: Piece, slices: dict[int, Slices], numbered: bool) -> np.ndarray:
        several = len(slices) > 1
        found = [np.array([of.rows.size for of in slices.values()], np.int32).view(np.float32)] if several else []
        for layer, part in self._stretches(piece):
            if layer is None:
                found.append(self.view(me, part))
            else:
                of = slices[layer]
                found += [of.rows.astype(np.int32).view(np.float32)] if numbered else []
                found.append(of.values.ravel())
        return np.concatenate(found)

    def _unpacked(
        self, piece: Piece, values: np.ndarray, numbered: bool
    ) -> Iterator[tuple[int | None, Piece, np.ndarray, np.ndarray]]:
        """Of each stretch of a piece: the sparse layer, the stretch, numbers of rows, and values."""
        stretches = list(self._stretches(piece))
        layers = [layer for layer, _ in stretches if layer is not None]
        of_dense = sum(part.items for layer, part in stretches if layer is None)
        if len(layers) > 1:
            counts, at = values[: len(layers)].view(np.int32).tolist(), len(layers)
        else:
            counts, at = [(values.size - of_dense) // (numbered + self._parts[layer].width) for layer in layers], 0
        for layer, part in stretches:
            if layer is None:
                yield None, part, NO_ROWS, values[at : at + part.items]
                at += part.items
                continue
            count, width, rows = counts.pop(0), self._parts[layer].width, self._read.get(layer, NO_ROWS)
            if numbered:
                rows, at = values[at : at + count].view(np.int32), at + count
            elif count == self._count(layer):
                rows = np.arange(count)
            yield layer, part, rows, values[at : at + count * width].reshape(count, width)
            at += count * width

    def heard(self, me: Rank, message: Message) -> None:
        """A message has come that no piece takes: to a server, it is a request if it has no gradient."""
        if me.rank in me.servers and message.sender in me.workers and not message.samples:
            self._requests[message.sender].append(message.values.view(np.int32))

    def put(self, me: Rank, piece: Piece, values: np.ndarray, adds: bool, weight: float) -> None:
        """What has come becomes a piece, or is added to it."""
        self._mixed(me, piece, values, float(adds), weight)

    def mix(self, me: Rank, command: commands.Mix) -> None:
        """Let into = a into + b what."""
        into, what = command.into, command.what
        if isinstance(what, Message):
            self._mixed(me, into, what.values, command.a, command.b)
        elif into.vector == "gradient" and command.a == command.b == 0:
            self._clear(me, into)
        elif self._sparse(into):
            raise WrongText("me.mix of sparse layers takes messages")
        else:
            super().mix(me, command)

    def _mixed(self, me: Rank, into: Piece, values: np.ndarray, a: float, b: float) -> None:
        if into.vector not in ("weights", "gradient") and values.size != into.items:
            self._passed[into.vector] = values
            return
        if into.vector not in ("weights", "gradient") or not self._sparse(into):
            super().put(me, into, values, a == 1, b)
            return
        if into.vector == "gradient" and a == 0:
            self._clear(me, into)
        for layer, part, rows, of in self._unpacked(into, values, into.vector == "gradient"):
            if layer is None:
                super().put(me, part, of, a == 1, b)
            elif into.vector == "gradient":
                self._add(layer, rows, of, b)
            else:
                self._of(me, part)[rows] = of

    # ---- updates

    def update(self, me: Rank, command: commands.Update) -> int:
        """The optimisers of a piece; how many numbers have been updated."""
        updated = 0
        for layer, part in self._stretches(command.piece):
            if layer is None:
                updated += super().update(me, command._replace(piece=part))
                continue
            table = self._tables[layer]
            table.add(self._summed(layer))
            updated += table.update(command.samples) * self._parts[layer].width
            self._gradients[layer].clear()
        return updated

    def whole(self, me: Rank) -> np.ndarray:
        """All weights, in the model's order, float32 (parameters,)."""
        found = np.empty(self._places.size, np.float32)
        found[self._places] = self.piece(me, 0, self._places.size)[1]
        return found

    def piece(self, me: Rank, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Where a piece of the weights lies in the model, and its values."""
        values = self.view(me, me.weights[start:stop]).copy()
        for layer, part in self._stretches(Piece("weights", start, stop)):
            if layer in self._tables:
                values[part.start - start : part.stop - start] = self._tables[layer].all().ravel()
        return self._places[start:stop], values


def places_of(scenario: Scenario) -> np.ndarray:
    """Where the items of the job's layers (sim.runs.job) are in the model's flat vector, shape (parameters,).

    Row r of a variable in several parts is in part r mod parts, as in tf.nn.embedding_lookup with partition_strategy="mod": frequent
    words, which have low numbers, are spread over all parts.
    """
    variables = scenario.workload.variables
    starts = [0, *accumulate(variable.size for variable in variables)]
    of = {one: np.arange(*starts[k : k + 2]).reshape(one.shape[0], -1) for k, one in enumerate(variables)}
    found = [of[variable] for variable in (*scenario.summed, *scenario.gathered_variables)]
    servers, parts = (server for _, server in scenario.traffic.placed), list[tuple[int, np.ndarray]]()
    for variable in scenario.served:
        count = min(scenario.variable_partitions, variable.shape[0])
        parts += [(next(servers), of[variable][part::count]) for part in range(count)]
    found += [part for _, part in sorted(parts, key=itemgetter(0))]
    return np.concatenate([one.ravel() for one in found])
