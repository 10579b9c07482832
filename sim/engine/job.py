"""A run: the arrays of a scenario, of which replications share what does not change, and the numbers drawn for one of them."""

from __future__ import annotations

import threading
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from sim.engine.arrays import constants, drawn, hosts, loads, ranks
from sim.engine.arrays.drawn import DRAWN
from sim.engine.arrays.shape import Empty, Shape
from sim.engine.kernel import loop
from sim.engine.kernel.layout import DRAWS, PIECES
from sim.engine.kernel.state import Beginning, State
from sim.engine.results import Results

if TYPE_CHECKING:
    from sim.engine.lowering.program import Code
    from sim.engine.tables import Listed
    from sim.job.scenario import Scenario

EVENTS = 2**18  # after which a run pauses: some tens of milliseconds

MAKING = threading.Lock()  # one thread draws and makes arrays at a time: what is drawn is kept for all


class Template:
    """What all replications of a scenario begin with.

    Args:
        code: the programs of all ranks.
        tables: the collectives that they call.
        room: see Shape.
    """

    def __init__(self, scenario: Scenario, code: Code, tables: Listed, room: int = 1):
        self.shape = shape = Shape(scenario, code, room)
        numbers = constants.constants(shape) | constants.counters(shape)
        made: dict[str, np.ndarray | Empty] = {**tables.arrays()}
        kinds = (loads.loads, loads.layers, loads.one_by_one, hosts.post, hosts.hosts, hosts.flows)
        for kind in (*kinds, ranks.programs, ranks.steps, drawn.begun):
            made |= kind(shape)
        made |= dict.fromkeys(DRAWN, Empty((1, 1), float))
        self.beginning = Beginning(made, numbers)

    def of(self, scenario: Scenario) -> Template:
        """The same for a scenario with another random seed."""
        found = copy(self)
        found.shape = copy(self.shape)
        found.shape.scenario = scenario
        return found

    def drawn(self, replication: int) -> dict[str, np.ndarray]:
        """The random numbers of a run."""
        of, shape = self.shape.scenario, self.shape
        columns = of.rounds + 8 if not of.protocol.counts_updates else 3 * of.rounds + 60
        found = drawn.draws(shape, replication, columns) | drawn.weights(shape, replication)
        return found | drawn.threads(shape, replication, columns)


class Job:
    """One run of a replication."""

    def __init__(self, template: Template, replication: int):
        self.shape, self.replication = template.shape, replication
        self.state = State(template.beginning)
        for name, array in template.drawn(replication).items():
            self.state.place(name, array)

    def run(self) -> int:
        """Run to the end, or until it pauses, with further draws where those that there are do not suffice; the status."""
        self.state.record["pause"] = self.state.record["events"] + EVENTS
        status = loop.run(self.state.record)
        while status == DRAWS:
            with MAKING:
                self._draw_more()
            status = loop.run(self.state.record)
        return status

    def _draw_more(self) -> None:
        """Twice as many of the numbers that did not suffice; those there were stay the same."""
        arrays, shape = self.state.arrays, self.shape
        width = arrays["moment"].shape[1]
        if PIECES * arrays["rank"]["begun"].max() >= width > 1:
            self.state.place("moment", drawn.moments(shape, self.replication, 2 * width))
            return
        for name, found in drawn.further(shape, self.replication, self.state):
            self.state.place(name, found)

    @property
    def updates(self) -> int:
        """How many have been made that end a step, or a part of one."""
        return int(self.state.record["ends"][0])

    @property
    def results(self) -> Results:
        """What the run has come to."""
        return Results(self.shape, self.state)

    @property
    def bytes(self) -> int:
        """Of all arrays."""
        return self.state.arrays.bytes
