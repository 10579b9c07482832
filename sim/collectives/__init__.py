"""Allreduce as exchanges between ranks, for closed forms, counts and fits; ranks run those of sim.language.collectives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting
from sim.collectives.allgather import allgather, gather_rows
from sim.collectives.alltoall_allgather import alltoall_allgather
from sim.collectives.base import Algorithm, Exchange, Exchanges
from sim.collectives.halving_doubling import halving_doubling
from sim.collectives.hierarchical import hierarchical
from sim.collectives.nccl import nccl
from sim.collectives.recursive_doubling import recursive_doubling
from sim.collectives.reduce_broadcast import reduce_broadcast
from sim.collectives.ring import ring
from sim.collectives.tree import tree
from sim.collectives.tuned import tuned
from sim.model.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from sim.model.workload import Variable

__all__ = [
    "FLAT",
    "GATHERED",
    "NAMES",
    "UNKNOWN",
    "Exchange",
    "Exchanges",
    "allgather",
    "allreduce",
    "exchanges",
    "gather_rows",
    "named",
    "pieces",
]

FLAT: dict[str, Algorithm] = {
    "ring": ring,
    "halving-doubling": halving_doubling,
    "tree": tree,
    "recursive-doubling": recursive_doubling,
    "nccl": nccl,
    "reduce-broadcast": reduce_broadcast,
    "alltoall-allgather": alltoall_allgather,
}
NAMES = ("auto", *FLAT, "hierarchical")
UNKNOWN = "unknown"  # nobody said which: simulations try several (sim.answers.candidates)
GATHERED = "gathered rows"  # no allreduce, but a call of all ranks too


def allreduce(algorithm: str, rank: int, hosts: Sequence[int], whole: slice) -> Exchanges:
    """The exchanges of one rank, after which each rank has the sum over all ranks.

    Args:
        algorithm: one of NAMES; auto is what Open MPI takes (Scenario.algorithm says it of other libraries).
        hosts: the host of each rank, shape (ranks,).
        whole: the items of the vector.

    >>> [(step.sent, step.taken, step.adds) for step in allreduce("ring", 0, [0, 1], slice(0, 4))]
    [(slice(0, 2, None), slice(2, 4, None), True), (slice(2, 4, None), slice(0, 2, None), False)]
    """
    algorithm = named(algorithm, hosts, whole)
    if algorithm == "hierarchical":
        return hierarchical(rank, hosts, whole)
    return FLAT[algorithm](rank, range(len(hosts)), whole)


def exchanges(algorithm: str, rank: int, hosts: Sequence[int], whole: slice) -> Exchanges:
    """As of `allreduce`; or of GATHERED, where `whole` is as long as what each rank has."""
    if algorithm == GATHERED:
        return gather_rows(rank, range(len(hosts)), whole)
    return allreduce(algorithm, rank, hosts, whole)


def named(algorithm: str, hosts: Sequence[int], whole: slice) -> str:
    """The algorithm that is run: what Open MPI takes if it may choose; the ring for hierarchies of one rank a host."""
    if algorithm == UNKNOWN:
        raise WrongSetting("--set algorithm", UNKNOWN, f"one of {', '.join(NAMES)}, where one run is followed")
    if algorithm == "hierarchical" and len(set(hosts)) == len(hosts):
        return "ring"
    return tuned(len(hosts), ITEM_BYTES * (whole.stop - whole.start)) if algorithm == "auto" else algorithm


def pieces(variables: Sequence[Variable], fused: bool) -> list[slice]:
    """The pieces that calls sum: the items of all variables, or of each if there are any; the last ends with the number of samples."""
    bounds = [0, *accumulate(variable.size for variable in variables)]
    bounds[-1] += 1
    return [slice(*ends) for ends in pairwise([0, bounds[-1]] if fused or not variables else bounds)]
