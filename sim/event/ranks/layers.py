"""A gradient that is computed layer by layer; those of variables are ready one by one."""

from __future__ import annotations

from sim.verbs.me import Layer


class Layers:
    """The layers of one rank.

    Args:
        rank: sim.event.ranks.rank.Rank.
        computing: sim.event.ranks.computing.Computing, of the rank.
    """

    def __init__(self, rank, computing):
        self._rank, self._computing = rank, computing
        self._since_s: float | None = None
        self._all_s = 0.0

    def compute(self, part: Layer):
        """The forward or backward pass through one variable."""
        rank = self._rank
        if self._since_s is None:
            yield from self._begin()
        if part.share > 0:
            yield from rank.mechanics.spend(self._all_s * part.share, computing=True)
        if part.backward and part.variable is not None and not rank.layerwise:
            self._announce()
        if part.last:
            self._computed(rank.scenario.batch)
            self._since_s = None

    def _begin(self):
        rank, computing = self._rank, self._computing
        if not computing.fetched():
            rank.at_hand.begin_gradient()
            yield from rank.works((computing.input(),))
        self._since_s = rank.clock_s
        rank.samples, rank.minibatches = rank.scenario.batch, 1
        if rank.all_ranks is not None:
            rank.all_ranks.computed(rank, rank.samples)
        copies_s = rank.amounts.to_device_s + rank.amounts.to_host_s  # variable by variable, within computing
        self._all_s = computing.factor() * rank.amounts.compute_s + computing.cold_s(rank.costs.compute) + copies_s

    def pause(self) -> None:
        """Take note that the rank begins to wait for parameters."""
        if self._since_s is not None:
            self._computed()

    def resume(self) -> None:
        """Take note that it has waited."""
        if self._since_s is not None:
            self._since_s = self._rank.clock_s

    def _announce(self) -> None:
        rank = self._rank
        rank.ready_s.append(rank.clock_s)
        rank.world.readiness.announce(len(rank.ready_s) - 1)

    def _computed(self, samples: int = 0) -> None:
        """Record what was computed since the rank began, or last waited for parameters."""
        rank = self._rank
        if rank.clock_s > self._since_s or samples:
            rank.record("compute", self._since_s, samples=samples)
        self._computing.warm()
