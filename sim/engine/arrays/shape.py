"""What the arrays of a run depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sim.engine.kernel.layout import PIECES
from sim.protocols import is_ours
from sim.verbs.fusion import layer_shares

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
        self.cores_suffice = scenario.cores_suffice and not scenario.local.wakes
        self.strands = (2 if "FORK" in code.uses else 1) * scenario.ranks
        self.layered = "NEGO" in code.uses
        self.variables = max(1, len(scenario.summed)) if self.layered else 1
        self.meters = bool(scenario.protocol.counts_updates and scenario.served)

    @property
    def shares(self) -> list[float]:
        """Shares of a gradient's time that those of variables take, where they are computed layer by layer."""
        sizes = [one.size for one in self.scenario.workload.variables]
        return layer_shares(sizes, getattr(self.scenario.protocol, "order", "")) if self.layered else [0.0]

    @property
    def in_turn(self) -> bool:
        """Whether each rank has its own port, which passes one message after another in the time of its size, and a core."""
        of, link = self.scenario, self.scenario.network
        slow = link.fair or link.sustained_bytes_per_s or link.tcp or link.store_and_forward
        return of.apart and self.cores_suffice and not (slow or of.servers)

    @property
    def rings(self) -> bool:
        """Whether rings are played at once (kernel/ring.py)."""
        return self.in_turn and (is_ours(self.scenario.protocol) or not self.layered)

    @property
    def memo(self) -> bool:
        """Whether what follows an agreement depends on nothing else (kernel/memo.py)."""
        return self.in_turn and self.layered and is_ours(self.scenario.protocol)

    @property
    def most_minibatches(self) -> int:
        """Minibatches of one message, at most, where its size depends on them."""
        of = self.scenario
        groups = of.groups(of.hosts).of.values() if of.traffic.sends_rows else ()
        return max([1, *(len(group) for group in groups)])

    @property
    def tasks(self) -> int:
        """Tasks of a core, at most."""
        of = self.scenario
        return 2 * of.ranks + 4 + self.room * (32 + 2 * PIECES * of.ranks) * of.threaded

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
