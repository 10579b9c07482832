"""What of a model's variables travels and is updated in a job, and how many bytes that is."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from sim.model.sizes import HEADER_BYTES, ITEM_BYTES
from sim.model.variable_placement import placed, server_slices
from sim.model.workload import Variable

if TYPE_CHECKING:
    from sim.job.scenario import Scenario


class Traffic:
    """Where a scenario's variables are placed, and the sizes of messages, copies and updates.

    Args:
        scenario: the job.
    """

    def __init__(self, scenario: Scenario):
        self._job = scenario
        # Untrained variables take a turn at the servers, too, where all are served.
        model = scenario.workload
        placeable = model.created if scenario.served == model.variables else scenario.served
        self._given = placeable, scenario.servers, scenario.placement, scenario.variable_partitions

    @cached_property
    def placed(self) -> list[tuple[Variable, int]]:
        """Every variable that servers hold, or its parts, with its server, in creation order."""
        return placed(*self._given)

    @cached_property
    def server_bytes(self) -> list[int]:
        """Bytes of a message with all that a server holds, shape (servers,)."""
        sizes = (sum(piece.stop - piece.start for piece in pieces) for pieces in self.server_slices)
        return [HEADER_BYTES + ITEM_BYTES * size for size in sizes]

    @cached_property
    def server_slices(self) -> list[list[slice]]:
        """The pieces of the flat vector of served variables that each server holds, shape (servers, pieces)."""
        return server_slices(*self._given) if self._job.served else []

    @cached_property
    def sends_rows(self) -> bool:
        """Whether rows of sparse variables travel between servers and workers."""
        return self._job.protocol.has_servers and any(variable.rows for variable in self._job.served)

    @property
    def in_parts(self) -> bool:
        """Whether rows travel, so that ranks may add or update several things side by side; nothing is then known of copies."""
        return self.sends_rows or bool(self._job.gathered_variables)

    @cached_property
    def packed_bytes(self) -> int:
        """Bytes of a gradient when it is joined to be sent: of variables whose rows alone travel, these."""
        job = self._job
        held = [variable for variable, _ in self.placed] if job.served else []
        whole = 0 if self.sends_rows else sum(variable.size for variable in held)
        loads = [one.load(job.batch) for one in (*(held if self.sends_rows else ()), *job.gathered_variables)]
        return HEADER_BYTES + ITEM_BYTES * (whole + sum(map(sum, loads)) + job.summed_items)

    def to_device_bytes(self, samples: int) -> int:
        """Bytes that a worker copies to its device for a gradient: all parameters, samples and their labels."""
        numbers = self._job.workload.parameters + samples * (math.prod(self._job.workload.sample_shape) + 1)
        return 0 if self.in_parts else ITEM_BYTES * numbers

    @property
    def to_host_bytes(self) -> int:
        """Bytes of a gradient that a worker copies to its host."""
        return 0 if self.in_parts else ITEM_BYTES * self._job.workload.parameters

    @cached_property
    def copies_s(self) -> tuple[float, float]:
        """Seconds of a worker's copies to its device and back, for a gradient of a whole minibatch; 0 where nothing is copied."""
        if self.in_parts:
            return 0.0, 0.0
        costs = self._job.costs
        return costs.to_device(self.to_device_bytes(self._job.batch)), costs.to_host(self.to_host_bytes)
