"""The vectors of one rank with real values: an engine computes gradients of a real model, and an optimiser updates (real.training)."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from real.data import Batches
from real.language.asked import Asked
from real.language.record import Record
from real.training.gradients import Gradient
from real.training.trainee import Trainee
from sim.base.errors import WrongText
from sim.language import commands
from sim.language.job import Job
from sim.language.learning import Values
from sim.language.pieces import Piece
from sim.language.rank import Rank
from sim.language.text import Text
from sim.model.workload import Workload


class Layer(NamedTuple):
    """Where a layer of the job lies in the model: in which variable, and where in that."""

    variable: int
    place: slice


def layers_in(job: Job, workload: Workload) -> list[Layer]:
    """Where each layer of a job lies, whose layers are variables, or parts of them, in the model's order."""
    starts = [0, *accumulate(variable.size for variable in workload.variables)]
    found, start = list[Layer](), 0
    for layer in job.layers:
        variable = bisect_right(starts, start) - 1
        place = slice(start - starts[variable], start - starts[variable] + layer.items)
        found.append(Layer(variable, place))
        start += layer.items
    return found


class Trained(Values):
    """As sim.language.learning.Values, of one rank of a scenario.

    A gradient of all layers at once is computed when its backward pass is asked for. One that is asked for by stretches of layers is
    computed in a thread of its own from its first pass on (Graph).

    Args:
        job: of real.language.asked.
        text: whose rank it is.
        asked: what the text asks for.
    """

    kind = np.float32

    def __init__(self, job: Job, trainee: Trainee, text: Text, asked: Asked):
        self._job, self._trainee, self._asked, self._loops = job, trainee, asked, text.loops
        self._shared = shared = text.data == "shared"
        self.vectors = {}
        self.tested = min(trainee.scenario.test_size, len(trainee.data.test_y))
        self.evaluations: list[tuple[int, float, float]] = []
        number = 1 if shared else trainee.number
        self._batches = Batches(trainee.data, job.batch, job.seed, job.replication, number)
        self._number, self._minibatch = -1, (np.empty(0), np.empty(0))
        self._layers = layers_in(job, trainee.scenario.workload)
        self._graph: Graph | None = None
        self._joined_s = 0.0, 0.0  # from when until when the last gradient was joined
        self._loop_s, self._looped = (
            -1.0,
            0,
        )  # when a loop over micro-batches has begun, if one goes on, and its samples so far

    def begin(self, ranks: list[Rank]) -> None:
        """The rank begins with the weights with which all do."""
        weights = self._trainee.initial().copy()
        self.vectors = {me.rank: {"weights": weights, "gradient": np.zeros_like(weights)} for me in ranks}

    def _data(self, me: Rank, command) -> tuple[np.ndarray, np.ndarray]:
        """The samples of a micro-batch; the minibatch of a round, or of a step, is fetched when its first one is asked for."""
        number = max(0, me.step if self._shared else me.round)
        if self._number < number:
            start_s = self.record.now_s
            for _ in range(number - self._number - 1):
                self._batches.places()
            self._number, self._minibatch = number, self._fetched()
            self.record.add("input", start_s, self.record.now_s, samples=self._job.batch)
        samples = self._job.micro_batch(command.micro, command.of)
        x, y = self._minibatch
        return x[samples.start : samples.stop], y[samples.start : samples.stop]

    def _fetched(self) -> tuple[np.ndarray, np.ndarray]:
        """The next minibatch."""
        return next(self._batches)

    # ---- passes

    def forward(self, me: Rank, command: commands.Forward) -> None:
        """The layers may be read from now on, and nothing waits for them to be computed; of none the samples are fetched."""
        data = self._data(me, command)
        if self._asked.layered and command.stop:
            graph = self._graph_of(me, command, data)
            if self._asked.drops:
                graph.keep(command.first, command.stop)
            graph.open(command.stop)

    def backward(self, me: Rank, command: commands.Backward) -> None:
        """The gradients of some layers are added to the rank's; through none, they are joined, which an engine does by itself."""
        if command.stop == 0:
            self._join()
            return
        if command.stop == len(me.layers) and command.micro == 0:
            self.record.computed = self.record.version
        data = self._data(me, command)
        if not self._asked.layered:
            self._whole(me, command, *data)
            return
        graph = self._graph_of(me, command, data)
        for layer in reversed(range(command.first, command.stop)):
            _add(self.view(me, me.of(me.gradient, layer)), graph.gradient(layer), command.weight)
        if command.first == 0:
            self._graph = None
            graph.end()

    def _join(self) -> None:
        start_s, end_s = self._joined_s
        self._joined_s = end_s, end_s
        if self._loop_s >= 0:
            self.record.add("compute", self._loop_s, start_s, samples=self._looped)
            self._loop_s, self._looped = -1.0, 0
        self.record.add("pack", start_s, end_s, bytes=self._job.bytes_of(self.joined_items))

    def _whole(self, me: Rank, command: commands.Backward, x: np.ndarray, y: np.ndarray) -> None:
        start_s = self.record.now_s
        of_call_s = self._computed(me, x, y, command.weight)
        end_s = self.record.now_s  # of several micro-batches each is joined as it is computed
        computed_s = start_s + of_call_s if command.of == 1 else end_s
        self._joined_s = computed_s, end_s
        if self._loops:
            self._loop_s = start_s if self._loop_s < 0 else self._loop_s
            self._looped += len(x)
        else:
            self.record.add("compute", start_s, computed_s, samples=len(x))

    def _computed(self, me: Rank, x: np.ndarray, y: np.ndarray, weight: float) -> float:
        """Compute and add a gradient; seconds until it was there, before it was added."""
        found: Gradient = self._trainee.gradients.fixed(self.view(me, me.weights), x, y)
        _add(self.view(me, me.gradient), found.sum, weight)
        return found.computed_s

    @property
    def joined_items(self) -> int:
        """Numbers of this rank's gradient, as it is sent."""
        return self._trainee.scenario.workload.parameters

    def _graph_of(self, me: Rank, command, data: tuple[np.ndarray, np.ndarray]) -> Graph:
        key = me.round, command.micro, command.of
        if self._graph is None:
            weights = _variables(self._trainee.scenario.workload, self.view(me, me.weights))
            self._graph = Graph(key, self._trainee.gradients, data, weights, self._layers, self.record)
        if self._graph.key != key:
            raise WrongText(
                f"rank {me.rank}: passes of one micro-batch through some layers, while those of another are not over"
            )
        return self._graph

    # ---- updates

    def update(self, me: Rank, command: commands.Update) -> int:
        """The optimiser of a piece; how many numbers it has updated."""
        start, stop = command.piece.start, command.piece.stop
        gradient = self.view(me, Piece("gradient", start, stop))
        self._trainee.optimiser.apply((start, stop), self.view(me, command.piece), gradient, command.samples)
        gradient[:] = 0
        return stop - start

    def evaluate(self, me: Rank) -> None:
        """Loss and accuracy on test samples."""
        found = self._trainee.evaluate(self.whole(me), self.tested)
        self.evaluations.append((me.step, *found))

    # ---- at the end

    def whole(self, me: Rank) -> np.ndarray:
        """All weights, in the model's order, float32 (parameters,)."""
        return self.view(me, me.weights)

    def piece(self, me: Rank, start: int, stop: int) -> tuple[slice | np.ndarray, np.ndarray]:
        """Where a piece of the weights lies in the model, and its values."""
        return slice(start, stop), self.view(me, me.weights[start:stop])


class Graph:
    """A gradient under way, variable by variable, in a thread of its own: real.training.layered.Listener.

    Args:
        key: of the micro-batch.
        weights: of each variable, in its shape.
        layers: where each layer of the job lies in these.
    """

    def __init__(
        self,
        key: tuple,
        gradients,
        data: tuple[np.ndarray, np.ndarray],
        weights: list[np.ndarray],
        layers: Sequence[Layer],
        record: Record,
    ):
        self.key, self._weights, self._record, self._samples = key, weights, record, len(data[0])
        self._layers, self._variables = layers, [layer.variable for layer in layers]
        self._open, self._made, self._changed = 0, dict[int, np.ndarray](), threading.Condition()
        self._since_s = record.now_s
        thread = ThreadPoolExecutor(1)
        self._over: Future = thread.submit(gradients.by_layer, self, *data)
        self._over.add_done_callback(self._notify)
        thread.shutdown(wait=False)

    def _notify(self, _=None) -> None:
        with self._changed:
            self._changed.notify_all()

    def open(self, stop: int) -> None:
        """Layers up to here may be read."""
        self._open = max(self._open, stop)
        self._notify()

    def keep(self, first: int, stop: int) -> None:
        """Copy the weights of some layers, which may be lost before they are read."""
        for variable in {*self._variables[first:stop]}:
            self._weights[variable] = self._weights[variable].copy()

    def read(self, variable: int) -> np.ndarray:
        """The weights of a variable, once all of its layers may be read; what computes sleeps until then."""
        needed = bisect_right(self._variables, variable)
        with self._changed:
            if self._open < needed:
                self._record.add("compute", self._since_s, self._record.now_s)
                self._changed.wait_for(lambda: self._open >= needed)
                self._since_s = self._record.now_s
        return self._weights[variable]

    def made(self, variable: int, gradient: np.ndarray) -> None:
        """The gradient of a variable is there."""
        self._made[variable] = np.array(gradient).ravel()
        self._notify()

    def gradient(self, layer: int) -> np.ndarray:
        """That of a layer, waited for."""
        variable, place = self._layers[layer]
        self.open(len(self._layers))
        with self._changed:
            self._changed.wait_for(lambda: variable in self._made or self._over.done())
        if variable not in self._made:
            self._over.result()
        return self._made[variable][place]

    def end(self) -> None:
        """All is computed."""
        self._over.result()
        self._record.add("compute", self._since_s, self._record.now_s, samples=self._samples)


def _add(into: np.ndarray, gradient: np.ndarray, weight: float) -> None:
    into += gradient if weight == 1 else weight * gradient


def _variables(workload: Workload, flat: np.ndarray) -> list[np.ndarray]:
    """Views of the variables in a vector, in their shapes."""
    ends = np.cumsum([variable.size for variable in workload.variables])[:-1]
    return [part.reshape(of.shape) for part, of in zip(np.split(flat, ends), workload.variables, strict=True)]
