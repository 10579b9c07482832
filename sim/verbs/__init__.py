"""Verbs of protocol texts: plain functions over the primitives of `me` (sim.verbs.me), used with `yield from`."""

from __future__ import annotations

from sim.verbs.asynchronous import compute_renewing, newest
from sim.verbs.collectives import allgather, allreduce, barrier, reduce
from sim.verbs.fusion import compute_by_layer, negotiate, reduce_fused, reduce_in_cycles
from sim.verbs.servers import (
    answer,
    collect,
    dismiss,
    gather,
    hand_in,
    hear,
    let_go,
    pull,
    push,
    take,
    take_first,
    tell,
    training,
)

__all__ = [
    "allgather",
    "allreduce",
    "answer",
    "barrier",
    "collect",
    "compute_by_layer",
    "compute_renewing",
    "dismiss",
    "gather",
    "hand_in",
    "hear",
    "let_go",
    "negotiate",
    "newest",
    "pull",
    "push",
    "reduce",
    "reduce_fused",
    "reduce_in_cycles",
    "take",
    "take_first",
    "tell",
    "training",
]
