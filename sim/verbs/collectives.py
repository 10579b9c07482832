"""Collectives: sums over all workers, made of exchanges between two."""

from __future__ import annotations

from sim import collectives
from sim.collectives.barrier import barrier as barrier_exchanges
from sim.verbs.me import Me
from sim.verbs.verb import verb


@verb
def allreduce(me: Me, algorithm: str = "auto", fused: bool = True):
    """Leave the sum of all workers' gradients and samples at each of them.

    Args:
        algorithm: one of sim.collectives.NAMES.
        fused: all variables in one call, not a call each.
    """
    for piece in collectives.pieces(me.scenario.summed, fused):
        yield from reduce(me, algorithm, piece)


@verb
def reduce(me: Me, algorithm: str, piece: slice):
    """One call of an allreduce on some items of the gradient. A library may make it (MPI, for `auto`)."""
    yield from reduce_by_exchanges(me, algorithm, piece)


def reduce_by_exchanges(me: Me, algorithm: str, piece: slice):
    """Sum as `reduce` does, exchange by exchange."""
    first, algorithm = me.workers[0], me.scenario.algorithm(algorithm)
    for exchange in collectives.allreduce(algorithm, me.rank - first, me.hosts[first:], piece):
        yield from me.exchange(exchange.among(first))
    yield from me.departed()


@verb
def allgather(me: Me):
    """Leave the sum of the rows of sparse variables that any worker touched at each worker; rows are added as they arrive."""
    for load in me.scenario.gathered_loads:
        for exchange in collectives.gather_rows(me.rank, me.workers, slice(0, load.rows + load.numbers)):
            yield from me.exchange(exchange)


@verb
def barrier(me: Me, group):
    """Wait until all ranks of `group` have come."""
    for exchange in barrier_exchanges(me.rank - group[0], range(len(group))):
        yield from me.exchange(exchange.among(group[0]))
