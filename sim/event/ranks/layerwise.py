"""Variables that leave one by one: a worker's gradients, added up within its host if need be, and a server's parameters."""

from __future__ import annotations


class Layerwise:
    """Sends one rank's variables, layer by layer.

    Args:
        rank: sim.event.ranks.rank.Rank.
    """

    def __init__(self, rank):
        self._rank = rank
        self._added: dict[
            tuple[int, int], int
        ] = {}  # gradients of (step, variable) that have come from this host's workers
        self._left: dict[int, int] = {}  # versions of each variable that a server has let leave

    def send(self, number: int, peers) -> None:
        """Send a variable's gradient to the server that holds it; or its parameters, for the next step, to each of `peers`."""
        rank = self._rank
        if not rank.serves:
            self._send_gradient(number)
            return
        version = self._left.get(number, 0)
        self._left[number] = version + 1
        if version < rank.scenario.rounds:
            for peer in peers:
                rank.mechanics.ship(peer, version, number)

    def _send_gradient(self, number: int) -> None:
        rank = self._rank
        gradient, leader = (rank.step, number), rank.aggregators[0]
        if rank.aggregators is rank.servers:
            self.add_here(gradient)
        else:
            rank.mechanics.through_memory(number, lambda _: rank.world.ranks[leader].letters.layers.add_here(gradient))

    def add_here(self, gradient: tuple[int, int]) -> None:
        """Count one more gradient of (step, variable) of this host; all of them leave together."""
        rank, (step, number) = self._rank, gradient
        together = 1 + len(rank.neighbours)
        self._added[gradient] = self._added.get(gradient, 0) + 1
        if self._added[gradient] == together:
            del self._added[gradient]
            rank.mechanics.ship(rank.amounts.server_of[number], step, number, rank.scenario.batch * together)
