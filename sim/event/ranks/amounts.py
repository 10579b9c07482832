"""Amounts that do not change from step to step and are equal at all ranks of a world."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sim.model.costs import TO_DEVICE, TO_HOST
from sim.model.sparse_rows import Load

Sizes = tuple[tuple[int, ...], int]  # bytes of the messages that travel together, and of all of them


class Amounts:
    """Seconds of a core and bytes of one scenario."""

    def __init__(self, scenario):
        costs, batch, packed = scenario.costs, scenario.batch, scenario.traffic.packed_bytes
        self.costs, self.batch = costs, batch
        self.input_s, self.compute_s, self.pack_s = costs.input(batch), costs.compute(batch), costs.pack(packed)
        self.to_device_s, self.to_host_s = scenario.traffic.copies_s
        self.packed = (
            ("pack", self.pack_s, 0, packed),
            *self._copied(TO_HOST, self.to_host_s, scenario.traffic.to_host_bytes),
        )
        self.staged = self._copied(TO_DEVICE, self.to_device_s, scenario.traffic.to_device_bytes(batch))
        self.rests = bool(costs.compute.cold_s or costs.partition.cold_s or costs.update.cold_s)
        self.reduce_s, self.take_up_s = Priced(costs.reduce), Priced(costs.take_up)
        self.sizes: dict[Any, Sizes] = {}  # of messages with a gradient or parameters, see sim.event.ranks.letters
        self.requests: dict[int, Sizes] = {}  # of requests, by server
        self.evaluates = scenario.test_size > 0
        self._scenario = scenario

    @staticmethod
    def _copied(activity: str, seconds: float, size_bytes: int) -> tuple:
        return ((activity, seconds, 0, size_bytes),) if seconds else ()

    def staged_part(self, samples: int) -> tuple:
        """The copy to the device for a gradient of a part of a minibatch."""
        size_bytes = self._scenario.traffic.to_device_bytes(samples)
        return self._copied(TO_DEVICE, self.costs.to_device(size_bytes) if size_bytes else 0.0, size_bytes)

    @cached_property
    def variables(self) -> range:
        """Numbers of the variables that travel one by one."""
        return range(len(self._scenario.traffic.placed)) if self._scenario.protocol.layerwise else range(0)

    @cached_property
    def server_of(self) -> list[int]:
        """The server of each of them."""
        return [server for _, server in self._scenario.traffic.placed]

    @cached_property
    def variable_loads(self) -> list[Load]:
        """What travels of each of them."""
        return [variable.load(self._scenario.batch) for variable, _ in self._scenario.traffic.placed]

    @cached_property
    def variable_bytes(self) -> list[int]:
        """Bytes of a message with each of them."""
        return [load.gradient_bytes for load in self.variable_loads]

    def held_by(self, rank: int) -> list[int]:
        """The variables that a server holds, by their numbers."""
        return [number for number in self.variables if self.server_of[number] == rank]


class Priced(dict):
    """Seconds of a line (sim.model.costs.Line) by bytes."""

    def __init__(self, line):
        super().__init__()
        self._line = line

    def __missing__(self, size_bytes):
        seconds = self[size_bytes] = self._line(size_bytes)
        return seconds
