"""What the arrays of a run depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sim.engine.kernel.layout import CONTENDED, FREE, PIECES, SHARED
from sim.event import plain
from sim.protocols import is_ours

if TYPE_CHECKING:
    from sim.engine.lowering.program import Code
    from sim.job.scenario import Place, Scenario
    from sim.model.sparse_rows import Load

LEAST, EACH = 4096, 64  # messages that may be on their way: so many, and so many more for each rank
NOBODY = -1
INTEGERS = np.int64


class Empty(NamedTuple):
    """An array of zeros, of which the system gives pages as they are used; or of anything, if each record is written before it is read."""

    shape: int | tuple[int, ...]
    dtype: Any
    zeros: bool = True


class Shape:
    """What of a scenario, and of its programs, says how large arrays are.

    Args:
        code: the programs of all ranks.
        room: factor on the room for messages on their way, for waits, and for draws that are used by number.
    """

    def __init__(self, scenario: Scenario, code: Code, room: int = 1):
        self.scenario, self.code = scenario, code
        self.room, self.most = room, room * (EACH * scenario.ranks + LEAST)
        self.contended = not plain.by_arithmetic(scenario)
        self.mode = CONTENDED if self.contended else FREE if scenario.apart else SHARED
        self.strands = (2 if "FORK" in code.uses else 1) * scenario.ranks
        self.layered = "NEGO" in code.uses
        self.variables = max(1, len(scenario.summed)) if self.layered else 1
        self.meters = bool(scenario.protocol.counts_updates and scenario.served)

    @property
    def memo(self) -> bool:
        """Whether what follows an agreement depends on nothing else."""
        of = self.scenario
        return bool(self.layered and self.mode == FREE and plain.queues(of) and not of.servers and is_ours(of.protocol))

    @property
    def most_minibatches(self) -> int:
        """Minibatches of one message, at most, where its size depends on them."""
        of = self.scenario
        groups = of.groups(of.hosts).of.values() if of.traffic.sends_rows else ()
        return max([1, *(len(group) for group in groups)])

    @property
    def tasks(self) -> int:
        """Tasks of a core, at most."""
        return (
            2 * self.scenario.ranks + 4 + self.room * (32 + 2 * PIECES * self.scenario.ranks) * self.scenario.threaded
        )

    @property
    def shared_gpus(self) -> dict[Place, int]:
        """The GPUs of a job whose ranks share some, by number."""
        of = self.scenario
        places = [place for place in of.gpus if place] if of.gpus_shared else []
        return {place: at for at, place in enumerate(dict.fromkeys(places))}

    @property
    def backgrounds(self) -> int:
        """Steps whose background work is not done, at most."""
        return 16 * self.room * self.scenario.ranks if self.scenario.threaded else 1

    def loads(self, minibatches: int) -> list[list[Load]]:
        """What travels to and from each server, and last between workers: a message each."""
        of = self.scenario
        each = [of.traffic.loads(server, minibatches) for server in range(of.servers)]
        return [*each, [load for loads in each for load in loads]]
