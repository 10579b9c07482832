"""Texts that train in simulated time, on a small model: what they compute is compared with their definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.language import commands
from sim.language.event.valueless import Valueless
from sim.language.job import Job, Layer
from sim.language.pieces import Message, Piece
from sim.language.rank import Rank


@dataclass(frozen=True)
class Chain:
    """A model to train, and its data: a chain of tanh layers of one width, and half the squared error, summed over samples.

    Args:
        width: of every layer; a layer has width x width weights.
        depth: number of layers.
        seed: of weights and data.
    """

    width: int = 4
    depth: int = 8
    seed: int = 0

    def layers(self, forward_s: float = 0.0, backward_s: float = 0.0) -> tuple[Layer, ...]:
        """The layers of a job that trains it; seconds of a minibatch, for all layers."""
        one = Layer(self.width**2, forward_s / self.depth, backward_s / self.depth, self.width)
        return (one,) * self.depth

    def weights(self) -> np.ndarray:
        """Weights to begin with, shape (depth x width x width,)."""
        rng = np.random.default_rng([self.seed, 1])
        return rng.normal(size=self.depth * self.width**2) / np.sqrt(self.width)

    def data(self, owner: int, number: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of a rank's minibatch by its number, shape (batch, width) each."""
        rng = np.random.default_rng([self.seed, 2, owner, number])
        return rng.normal(size=(batch, self.width)), np.tanh(rng.normal(size=(batch, self.width)))

    def forward(self, weights: np.ndarray, given: np.ndarray) -> np.ndarray:
        """The output of one layer, shape (samples, width), of its weights, shape (width x width,)."""
        return np.tanh(given @ weights.reshape(self.width, self.width))

    def backward(self, weights: np.ndarray, given: np.ndarray, output: np.ndarray, slope: np.ndarray):
        """The gradients of one layer's weights, flat, and of its input, from that of its output."""
        inner = slope * (1 - output**2)
        return (given.T @ inner).ravel(), inner @ weights.reshape(self.width, self.width).T

    def gradient(self, weights: np.ndarray, given: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The gradient of all weights, flat: the definition that texts are compared with."""
        each = weights.reshape(self.depth, -1)
        outputs = [given]
        for layer in range(self.depth):
            outputs.append(self.forward(each[layer], outputs[-1]))
        found, slope = np.zeros_like(each), outputs[-1] - target
        for layer in reversed(range(self.depth)):
            found[layer], slope = self.backward(each[layer], outputs[layer], outputs[layer + 1], slope)
        return found.ravel()


class Values(Valueless):
    """The values of all ranks' vectors, by name (sim.language.event.valueless has the methods).

    Args:
        shared: all ranks have the samples of one minibatch; else each has its own (sim.language.text.Text.data).

    Attributes:
        vectors: of each rank by its number, by name, shape (items,). What was dropped is NaN; a gradient that was dropped begins anew.
    """

    kind: type = np.float64  # of the values
    record: Any = None  # of what a rank does, where a world keeps one
    tested = 0  # samples of an evaluation: a chain of random numbers has none

    def __init__(self, job: Job, model: Chain, shared: bool = False):
        self._job, self._model, self._shared = job, model, shared
        self.vectors: dict[int, dict[str, np.ndarray]] = {}
        self._drawn: dict[int, tuple[tuple[int, int], tuple[np.ndarray, np.ndarray]]] = {}

    def begin(self, ranks: list[Rank]) -> None:
        """All ranks begin with the same weights."""
        weights = self._model.weights()
        self.vectors = {me.rank: {"weights": weights.copy(), "gradient": np.zeros_like(weights)} for me in ranks}

    def view(self, me: Rank, piece: Piece) -> np.ndarray:
        """The values of a piece, shape (items,): a view."""
        vectors = self.vectors[me.rank]
        if piece.vector not in vectors:
            vectors[piece.vector] = np.zeros(me.items(piece), self.kind)
        return vectors[piece.vector][piece.start : piece.stop]

    def _rows(self, me: Rank, piece: Piece) -> np.ndarray:
        return self.view(me, piece).reshape(-1, self._model.width)

    def _data(self, me: Rank, command) -> tuple[np.ndarray, np.ndarray]:
        samples = self._job.micro_batch(command.micro, command.of)
        which = (0, me.step) if self._shared else (me.rank, max(0, me.round))
        if self._drawn.get(me.rank, (None, None))[0] != which:  # micro-batches are of one minibatch
            self._drawn[me.rank] = which, self._model.data(*which, self._job.batch)
        given, target = self._drawn[me.rank][1]
        return given[samples.start : samples.stop], target[samples.start : samples.stop]

    def _outputs(self, me: Rank, command) -> Piece:
        """The model's outputs for a micro-batch: there is no layer whose input they are."""
        return Piece(
            f"outputs {command.micro}", 0, len(self._job.micro_batch(command.micro, command.of)) * self._model.width
        )

    def _input(self, me: Rank, layer: int, command) -> Piece:
        if layer == len(me.layers):
            return self._outputs(me, command)
        return me.activation(layer, command.micro, command.of)

    def forward(self, me: Rank, command: commands.Forward) -> None:
        """The outputs of some layers."""
        if command.first == 0:
            self._rows(me, self._input(me, 0, command))[:] = self._data(me, command)[0]
        for layer in range(command.first, command.stop):
            found = self._model.forward(
                self.view(me, me.of(me.weights, layer)), self._rows(me, self._input(me, layer, command))
            )
            self._rows(me, self._input(me, layer + 1, command))[:] = found

    def backward(self, me: Rank, command: commands.Backward) -> None:
        """The gradients of some layers, the last first."""
        outputs, of, micro = self._outputs(me, command), command.of, command.micro
        for layer in reversed(range(command.first, command.stop)):
            output = self._rows(me, self._input(me, layer + 1, command))
            if layer + 1 == len(me.layers):
                slope = self._rows(me, outputs) - self._data(me, command)[1]
            else:
                slope = self._rows(me, me.slope(layer + 1, micro, of))
            given = self._rows(me, self._input(me, layer, command))
            found, below = self._model.backward(self.view(me, me.of(me.weights, layer)), given, output, slope)
            self.view(me, me.of(me.gradient, layer))[:] += command.weight * found
            self._rows(me, me.slope(layer, micro, of))[:] = below

    def update(self, me: Rank, command: commands.Update) -> int:
        """Gradient descent; how many numbers it has updated."""
        rate = self._job.rate if command.rate is None else command.rate
        gradient = self.view(me, Piece("gradient", command.piece.start, command.piece.stop))
        self.view(me, command.piece)[:] -= rate / command.samples * gradient
        gradient[:] = 0
        return command.piece.items

    def mix(self, me: Rank, command: commands.Mix) -> None:
        """Let into = a into + b what; what has factor 0 may be lost."""
        into, what = self.view(me, command.into), command.what
        values = what.values if isinstance(what, Message) else self.view(me, what)
        added = values if command.b == 1 else command.b * values if command.b else 0.0
        if command.a == 1:
            into += added
        else:
            into[:] = command.a * into + added if command.a else added

    def evaluate(self, me: Rank) -> None:
        """There is nothing to evaluate."""

    def drop(self, me: Rank, command: commands.Drop) -> None:
        """The values of a piece are lost, but for a part of it."""
        kept = None if command.but is None else self.view(me, command.but).copy()
        self.view(me, command.piece)[:] = 0.0 if command.piece.vector == "gradient" else np.nan
        if command.but is not None:
            self.view(me, command.but)[:] = kept

    def read(self, me: Rank, piece: Piece) -> np.ndarray:
        """A copy of a piece, to be sent."""
        return self.view(me, piece).copy()

    def payload(self, me: Rank, piece: Piece, to: int) -> np.ndarray:
        """What a message to a rank carries, until this rank goes on."""
        return self.view(me, piece)

    def heard(self, me: Rank, message: Message) -> None:
        """A message has come that no piece takes."""

    def put(self, me: Rank, piece: Piece, values: np.ndarray, adds: bool, weight: float) -> None:
        """What has come becomes a piece, or is added to it."""
        view, values = self.view(me, piece), values if weight == 1 else weight * values
        if adds:
            view += values
        else:
            view[:] = values
