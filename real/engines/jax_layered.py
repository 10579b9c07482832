"""Gradients of single variables while JAX computes: the computation is cut where a variable is read, and where a gradient is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from real.engines.jax_gradients import JaxGradients
from real.training.layered import Listener, Nobody
from sim.model.workload import Workload


class Part(NamedTuple):
    """Operations between two cuts.

    Args:
        reads: number of the variable that is read before them, if any.
    """

    reads: int | None
    equations: list


class Piece(NamedTuple):
    """A part, compiled.

    Args:
        reads: as of the part.
        inputs, outputs: what it takes and gives, by its place in the whole computation.
        run: gives the outputs of the inputs.
    """

    reads: int | None
    inputs: list
    outputs: list
    run: Callable


class JaxLayeredGradients(JaxGradients):
    """JAX's gradients of a minibatch at once, and variable by variable; as real.training.layered.LayeredGradients.

    Code compiled by XLA runs as a whole, in XLA's own order. The gradient's computation is therefore traced once, without being
    compiled. Its operations, in the order in which they were traced, are compiled in pieces: a new one begins before the first
    operation
    that uses a variable, or a later one, and after the operation that gives a variable's gradient.
    """

    def __init__(self, workload: Workload, threads: int = 1, device: str = "cpu", gpu_index: int = 0):
        super().__init__(workload, threads, device, gpu_index)
        self._pieces: dict[int, Cut] = {}

    def by_layer(self, listener: Listener, x: np.ndarray, y: np.ndarray) -> float:
        """Compute the gradient of a whole minibatch and tell `listener` of it; the loss, summed over samples."""
        cut = self._cut(len(x))
        values, due = dict(zip(cut.batch, self._there(x, y), strict=True)), len(cut.gradients) - 1
        for piece in cut.pieces:
            if piece.reads is not None:
                (values[cut.variables[piece.reads]],) = self._there(listener.read(piece.reads))
            results = self._finished(piece.run(*(values[one] for one in piece.inputs)))
            values.update(zip(piece.outputs, results, strict=True))
            while due >= 0 and cut.gradients[due] in values:  # in turn, from the last on
                listener.made(due, np.asarray(values[cut.gradients[due]]))
                due -= 1
        return float(values[cut.loss])

    def warm_up(self, batch: int, partitions: int | None = None) -> None:
        """Warm up as any gradients do."""
        super().warm_up(batch, partitions)
        x, y = np.zeros((batch, *self._workload.sample_shape), np.float32), np.zeros(batch, np.int32)
        for _ in range(2):
            self.by_layer(Nobody(self._workload), x, y)

    def _cut(self, samples: int) -> Cut:
        if samples not in self._pieces:
            shaped, numpy = self._jax.ShapeDtypeStruct, self._jax.numpy
            variables = [shaped(variable.shape, numpy.float32) for variable in self._workload.variables]
            x = shaped((samples, *self._workload.sample_shape), numpy.float32)
            traced = self._jax.make_jaxpr(self._gradients)(variables, x, shaped((samples,), numpy.int32))
            self._pieces[samples] = Cut(self._jax, traced, len(variables))
        return self._pieces[samples]


class Cut:
    """A traced gradient in pieces.

    Args:
        jax: the module.
        traced: of (variables, x, y), giving the variables' gradients and the loss.
        variables: how many there are.
    """

    def __init__(self, jax, traced, variables: int):
        from jax.extend import core

        self._jax, self._core, self._traced = jax, core, traced
        whole = traced.jaxpr
        self.variables, self.batch = whole.invars[:variables], whole.invars[variables:]
        self.gradients, self.loss = whole.outvars[:variables], whole.outvars[variables]
        self.pieces = self._all()

    def _all(self) -> list[Piece]:
        whole = self._traced.jaxpr
        pieces, needed, known = [], set(whole.outvars), set(whole.constvars)
        for reads, equations in reversed(self._parts()):  # what later pieces need is known from the last on
            given = [var for equation in equations for var in equation.outvars]
            taken = dict.fromkeys(var for equation in equations for var in self._inputs(equation))
            inputs = [var for var in taken if var not in known and var not in set(given)]
            outputs = [var for var in given if var in needed]
            needed = needed.difference(given).union(inputs)
            pieces.append(Piece(reads, inputs, outputs, self._compiled(equations, inputs, outputs)))
        return pieces[::-1]

    def _parts(self) -> list[Part]:
        """The operations between cuts."""
        unread = {var: number for number, var in enumerate(self.variables)}
        made, parts = set(self.gradients), [Part(None, [])]
        for equation in self._traced.jaxpr.eqns:
            last = max((unread[var] for var in self._inputs(equation) if var in unread), default=-1)
            due = {var: number for var, number in unread.items() if number <= last}  # in turn, from the first on
            parts += [Part(number, []) for number in due.values()]
            unread = {var: number for var, number in unread.items() if var not in due}
            parts[-1].equations.append(equation)
            if made.intersection(equation.outvars):
                parts.append(Part(None, []))
        return [part for part in parts if part != Part(None, [])]

    def _inputs(self, equation) -> list:
        return [var for var in equation.invars if not isinstance(var, self._core.Literal)]

    def _compiled(self, equations: list, inputs: list, outputs: list) -> Callable:
        whole = self._traced.jaxpr
        piece = self._core.Jaxpr(whole.constvars, inputs, outputs, equations, debug_info=whole.debug_info)
        return self._jax.jit(self._core.jaxpr_as_fun(self._core.ClosedJaxpr(piece, self._traced.consts)))
