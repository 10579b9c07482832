"""What of a model's variables travels and is updated in a job, and how many bytes that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING

from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.model.sparse_rows import Load
from sim.model.variable_placement import placed, server_bytes, server_slices
from sim.model.workload import Variable

if TYPE_CHECKING:
    from sim.job.scenario import Scenario


class Traffic:
    """Where a scenario's variables are placed, and the sizes of messages, copies and updates.

    Args:
        scenario: the job.
    """

    def __init__(self, scenario: Scenario):
        self._scenario = scenario

    @cached_property
    def placed(self) -> list[tuple[Variable, int]]:
        """Every variable that servers hold, or its parts, with its server, in creation order."""
        return placed(
            self._scenario.placeable,
            self._scenario.servers,
            self._scenario.placement,
            self._scenario.variable_partitions,
        )

    @cached_property
    def server_bytes(self) -> list[int]:
        """Bytes of a message with all that a server holds, shape (servers,)."""
        return server_bytes(
            self._scenario.placeable,
            self._scenario.servers,
            self._scenario.placement,
            self._scenario.variable_partitions,
        )

    @cached_property
    def server_slices(self) -> list[list[slice]]:
        """The pieces of the flat vector of served variables that each server holds, shape (servers, pieces)."""
        given = self._scenario.servers, self._scenario.placement, self._scenario.variable_partitions
        return server_slices(self._scenario.placeable, *given) if self._scenario.served else []

    @cached_property
    def loads(self) -> Callable[..., list[Load]]:
        """The loads that minibatches (1) need of a server, by `loads(server, minibatches)`; each is a message of its own.

        All that it holds together; if some of that is sparse, each part alone, and of sparse ones the rows.
        """
        return cache(self._loads)

    def _loads(self, server: int, minibatches: int = 1) -> list[Load]:
        held = [variable for variable, holder in self.placed if holder == server]
        if self._scenario.protocol.has_servers and any(variable.rows for variable in held):
            return [variable.load(self._scenario.batch, minibatches) for variable in held]
        return [Load(0, sum(variable.size for variable in held))]

    @cached_property
    def sends_rows(self) -> bool:
        """Whether rows of sparse variables travel between servers and workers."""
        return self._scenario.protocol.has_servers and any(variable.rows for variable in self._scenario.served)

    @property
    def in_parts(self) -> bool:
        """Whether rows travel, so that ranks may add or update several things side by side."""
        return self.sends_rows or bool(self._scenario.gathered_variables)

    @cached_property
    def packed_bytes(self) -> int:
        """Bytes of a gradient when it is joined to be sent: of variables whose rows alone travel, these."""
        loads = [
            load for server in range(self._scenario.servers) for load in self.loads(server)
        ] + self._scenario.gathered_loads
        return HEADER_BYTES + ITEM_BYTES * (
            sum(load.rows + load.numbers for load in loads) + self._scenario.summed_items
        )

    @property
    def stages(self) -> bool:
        """Whether a worker's parameters and gradients are copied between host and device as whole vectors; of rows nothing is known."""
        return not (self.sends_rows or self._scenario.gathered_variables)

    def to_device_bytes(self, samples: int) -> int:
        """Bytes that a worker copies to its device for a gradient: all parameters, samples and their labels."""
        numbers = self._scenario.workload.parameters + samples * (math.prod(self._scenario.workload.sample_shape) + 1)
        return ITEM_BYTES * numbers * self.stages

    @property
    def to_host_bytes(self) -> int:
        """Bytes of a gradient that a worker copies to its host."""
        return ITEM_BYTES * self._scenario.workload.parameters * self.stages

    @cached_property
    def copies_s(self) -> tuple[float, float]:
        """Seconds of a worker's copies to its device and back, for a gradient of a whole minibatch; 0 where nothing is copied."""
        if not self.stages:
            return 0.0, 0.0
        costs = self._scenario.costs
        to_device_bytes = self.to_device_bytes(self._scenario.batch)
        return costs.to_device(to_device_bytes), costs.to_host(self.to_host_bytes)

    def parts(self, rank: int) -> int:
        """How many things a rank adds or updates side by side; how many rows they have is not asked."""
        if rank < self._scenario.servers:
            return self._parts_of_servers[rank]
        return self._parts_added[rank in self._leaders]

    @cached_property
    def _parts_of_servers(self) -> list[int]:
        of = self._scenario
        rows, held = Counter[int](), Counter[int]()
        for variable, server in self.placed if of.served else ():
            rows[server] += bool(variable.rows)
            held[server] += 1
        return [held[server] if of.protocol.has_servers and rows[server] else 1 for server in range(of.servers)]

    @cached_property
    def _parts_added(self) -> tuple[int, int]:
        """Of a worker, and of one that adds up what its neighbours hand in."""
        of = self._scenario
        updated = max(1, (of.summed_items > 0) + len(of.gathered_variables))
        return updated, max(updated, sum(self._parts_of_servers))

    @cached_property
    def _leaders(self) -> frozenset[int]:
        """Workers that add up what others of their host hand in."""
        groups = self._scenario.groups(self._scenario.hosts)
        return frozenset(leader for leader in groups.senders if len(groups.of[leader]) > 1)
