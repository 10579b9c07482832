"""Gradients of single variables while TensorFlow computes: each is handed over when it is there, each variable read when it is due."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from real.training.gradients import Gradients
from sim.model.workload import Workload

WITHOUT_WORK = ("Const", "Shape", "ShapeN")  # TensorFlow merges those that are alike, with whatever they wait for


class Listener(Protocol):
    """The receiver of the graph's gradients, called from a thread of TensorFlow's."""

    def read(self, variable: int) -> np.ndarray:
        """The parameters of a variable, float32 of its shape, once they are there."""

    def made(self, variable: int, gradient: np.ndarray) -> None:
        """The gradient of a variable is there, a sum over samples."""


class LayeredGradients(Gradients):
    """Gradients of a minibatch at once, and variable by variable.

    TensorFlow runs whatever is ready, in any order. Without control edges it would hand over gradients at the end. Control edges keep
    the order in which the graph was made. The operation that hands a gradient over comes before all later operations of
    back-propagation. A variable is read when the computation has come to the variable before it.
    """

    def __init__(self, workload: Workload, threads: int = 1, device: str = "cpu", gpu_index: int = 0):
        super().__init__(workload, threads, device, gpu_index)
        _, x, y = self._fixed.input_signature
        self._listener: Listener | None = None
        self._by_layer = self._tf.function(self._by_layer_graph, input_signature=(x, y), autograph=False)

    def by_layer(self, listener: Listener, x: np.ndarray, y: np.ndarray) -> None:
        """Compute the gradient of a whole minibatch and tell `listener` of it."""
        self._listener = listener
        self._by_layer(x, y)

    def warm_up(self, batch: int) -> None:
        """Warm up as any gradients do."""
        super().warm_up(batch)
        x, y = np.zeros((batch, *self._workload.sample_shape), np.float32), np.zeros(batch, np.int32)
        for _ in range(2):
            self.by_layer(Nobody(self._workload), x, y)

    def _by_layer_graph(self, x, y):
        graph = self._tf.compat.v1.get_default_graph()
        reads = [self._read(number, variable.shape) for number, variable in enumerate(self._workload.variables)]
        begin = len(graph.get_operations())
        gradients = self._gradients(reads, x, y)
        operations = graph.get_operations()
        hand_overs = [self._hand_over(number, gradients[number]) for number in reversed(range(len(gradients)))]
        _read_in_turn(reads, operations[begin:])
        _hand_over_at_once(gradients[::-1], hand_overs, operations)
        with self._tf.control_dependencies(hand_overs):
            return self._tf.constant(0)

    def _read(self, number: int, shape: tuple[int, ...]):
        read = self._tf.numpy_function(lambda: self._listener.read(number), [], self._tf.float32)
        read.set_shape(shape)
        return read

    def _hand_over(self, number: int, gradient):
        """The operation that hands a gradient over."""
        self._tf.numpy_function(lambda values: self._listener.made(number, values), [gradient], [])
        return self._tf.compat.v1.get_default_graph().get_operations()[-1]


def _read_in_turn(reads: list, operations: list) -> None:
    """Have each variable read after what was made before the first use of the variable before it.

    Not after the use itself: TensorFlow makes a convolution and the adding of its bias one operation.
    """
    place = {operation: index for index, operation in enumerate(operations)}
    uses = [min(place[operation] for operation in read.consumers()) for read in reads]
    done = 0
    for read, before in zip(reads[1:], uses[:-1], strict=True):
        _follow([read.op], operations[done:before])
        done = max(done, before)


def _hand_over_at_once(gradients: list, hand_overs: list, operations: list) -> None:
    """Have whatever was made after a gradient wait until that is handed over; both lists begin with the last variable's."""
    place = {operation: index for index, operation in enumerate(operations)}
    last, ends = -1, []
    for gradient in gradients:
        last = max(last, place[gradient.op])
        ends.append(last)
    for hand_over, begin, end in zip(hand_overs, ends, [*ends[1:], len(operations) - 1], strict=True):
        _follow(operations[begin + 1 : end + 1], [hand_over])


def _follow(later: list, earlier: list) -> None:
    """Have all of `later` that work run after all of `earlier` that do. TensorFlow's own interface takes such edges at the start only."""
    before = [operation for operation in earlier if operation.type not in WITHOUT_WORK]
    for operation in later:
        if operation.type not in WITHOUT_WORK:
            operation._add_control_inputs(before)


class Nobody:
    """Zeros, of which nobody hears."""

    def __init__(self, workload: Workload):
        self._workload = workload

    def read(self, variable: int) -> np.ndarray:
        """Zeros."""
        return np.zeros(self._workload.variables[variable].shape, np.float32)

    def made(self, variable: int, gradient: np.ndarray) -> None:
        """It is not kept."""
