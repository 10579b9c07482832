"""Replications of a scenario by the engine: the outcomes of the event world, to 1e-9 s."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING

from pydantic import BaseModel

from sim.engine.job import MAKING, Job, Template
from sim.engine.kernel.layout import FINISHED, PAUSE, REGISTERS, SPACE
from sim.engine.lowering.statements import Statements
from sim.engine.lowering.values import NotLowered, TooFewRegisters
from sim.engine.tables import Listed, NotBuilt
from sim.job.scenario import KINDS, Scenario
from sim.protocols import is_ours
from sim.worlds.time_budget import Patience

if TYPE_CHECKING:
    from sim.answers.outcome import Outcome
    from sim.engine.lowering.program import Code

MOST_ROOM = 256  # times as much as a run is given at first
MOST_CONNECTIONS = 2**24  # of ranks, where each has a window or a flow of its own
MOST_KEPT, MOST_BYTES = 8, 2**22  # scenarios of which what they share is kept, and what runs of one begin with
# Fields that scenarios share; objects last, which take longer.
SHARED = sorted({one.name for one in fields(Scenario)} - {"seed"}, key=KINDS.__contains__)
# Fields of a link that the engine has, or that are used up before a job runs.
LINK = (
    "latency_s overhead_s gap_s bandwidth_bytes_per_s sustained_bytes_per_s background_s wakes fair unfairness ramp_bytes burst_bytes tcp "
    "eager_bytes queue_bytes buffer_bytes tree_s tree_inner_s named both_ways contention uneven store_and_forward latency_spread "
    "bandwidth_spread spread_by_hosts"
)
_kept: list[Prepared] = []


def check(scenario: Scenario) -> None:
    """A scenario that the engine can build.

    Raises:
        NotBuilt: it has something that the engine does not have.
    """
    if scenario.protocol.delay_std_s:
        raise NotBuilt("induced delays of messages")
    for link in (scenario.network, scenario.local):
        for name in type(link).model_fields.keys() - LINK.split():
            if getattr(link, name) != type(link).model_fields[name].get_default():
                raise NotBuilt(f"links with {name}")
    if (scenario.network.fair or scenario.network.tcp) and scenario.ranks**2 > MOST_CONNECTIONS:
        raise NotBuilt("so many connections")


def lowered(scenario: Scenario) -> tuple[Code, Listed]:
    """The programs of a scenario's ranks, which have as few registers as suffice, and the collectives that they call.

    Raises:
        NotLowered: a text has something that the engine does not have.
    """
    for registers in REGISTERS:
        try:
            tables = Listed(scenario)
            return Statements(scenario, tables, registers).programs(), tables
        except TooFewRegisters:
            continue
    raise NotLowered("too many registers")


class Prepared:
    """What scenarios share that differ in their random seed alone: the programs of their ranks, and what runs begin with.

    Raises:
        NotBuilt, NotLowered: the scenario, or a text, has something that the engine does not have.
    """

    def __init__(self, scenario: Scenario):
        check(scenario)
        self.scenario = scenario
        self._code, self._tables = lowered(scenario)
        self.template = Template(scenario, self._code, self._tables)

    def suits(self, scenario: Scenario) -> bool:
        """Whether the scenario is one of them."""
        return all(_alike(getattr(self.scenario, name), getattr(scenario, name)) for name in SHARED)

    def enlarge(self, room: int) -> None:
        """What runs begin with has more room, unless another thread has made it."""
        if self.template.shape.room < room:
            self.template = Template(self.scenario, self._code, self._tables, room)


def _alike(one: object, other: object) -> bool:
    """Whether two fields are equal; of models what they were made of, as laws keep arrays besides."""
    if isinstance(one, BaseModel) and type(one) is type(other):
        return one is other or all(_alike(getattr(one, name), getattr(other, name)) for name in type(one).model_fields)
    return one is other or one == other


def prepared(scenario: Scenario) -> Prepared:
    """What is kept of a scenario like this one, or what is made of it."""
    if not is_ours(scenario.protocol):  # whose text may read the seed
        return Prepared(scenario)
    with MAKING:
        found = next((one for one in _kept if one.suits(scenario)), None) or Prepared(scenario)
        if found.template.beginning.begun.nbytes <= MOST_BYTES:
            _kept[:] = [found, *(one for one in _kept if one is not found)][:MOST_KEPT]
    return found


class Replications:
    """The programs of a scenario, and what they come to in each replication.

    Raises:
        NotBuilt, NotLowered: the scenario, or a text, has something that the engine does not have.
    """

    def __init__(self, scenario: Scenario):
        self._scenario, self._prepared = scenario, prepared(scenario)
        self._template, self.bytes = self._prepared.template.of(scenario), 1

    def outcome(self, number: int, within_s: float = math.inf) -> Outcome | None:
        """The outcome of a replication.

        Args:
            within_s: seconds after which it ends with the steps that it has made, and at least one after the warm-up's first.

        Returns:
            None if there is no room for all that is on its way, or a text goes wrong.
        """
        patience = Patience(self._scenario, within_s)
        while self._template.shape.room <= MOST_ROOM:
            with MAKING:
                job = Job(self._template, number)
            status, self.bytes = self._run(job, patience), max(self.bytes, job.bytes)
            if status == PAUSE:
                return job.results.outcome(patience.warmup)
            if status != SPACE:
                done = status == FINISHED and job.updates == self._scenario.updates
                return job.results.outcome(self._scenario.warmup) if done else None
            with MAKING:
                self._prepared.enlarge(4 * job.shape.room)
                self._template = self._prepared.template.of(self._scenario)
        return None

    def _run(self, job: Job, patience: Patience) -> int:
        """Run to the end, or until there is no time left; the status."""
        while (status := job.run()) == PAUSE and not patience.ends_after(job.updates):
            pass
        return status
