"""Costs, and how much travels, is added and is updated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.engine.arrays.shape import INTEGERS, Empty
from sim.engine.kernel import layout, ops
from sim.event.ranks.amounts import Amounts
from sim.model.sparse_rows import HEADER_BYTES

if TYPE_CHECKING:
    from sim.engine.arrays.shape import Shape
    from sim.model.sparse_rows import Load

DECISIONS, KNOWN_WAITS = 512, 2**19  # that a run notes (kernel/memo.py)
# By layout's numbers.
LINES = ("compute", "partition", "take_up", "reduce", "update", "pack", "call", "reduce_rows", "to_device")


def lines(job: Shape) -> np.ndarray:
    """Costs, by layout's numbers; rows are added as all else, if nobody said more."""
    costs = job.scenario.costs
    each = [getattr(costs, name) or costs.reduce for name in LINES]
    return np.array([(one.base_s, one.slope_s, one.cold_s, one.floor_s) for one in each], layout.LINE)


def sizes(job: Shape) -> np.ndarray:
    """SIZE of messages to and from each server, and last of those between workers."""
    of, most = job.scenario, job.most_minibatches
    found = np.zeros((3 + most, of.servers + 1), layout.SIZE)
    found["bytes"], found["count"] = HEADER_BYTES, 1
    for server, loads in enumerate(job.loads(1)):
        for what, name in ((ops.PARAMETERS, "answer_bytes"), (ops.REQUEST, "request_bytes")):
            found[what, server] = sum(getattr(load, name) for load in loads), len(loads)
    for minibatches in range(1, most + 1):
        row = ops.GRADIENT if minibatches == 1 else ops.REQUEST + minibatches - 1
        for server, loads in enumerate(job.loads(minibatches)):
            found[row, server] = sum(load.gradient_bytes for load in loads), len(loads)
    return found


def sides(job: Shape) -> dict[str, np.ndarray]:
    """What is added or updated side by side, where rows travel."""
    of = job.scenario
    costs, seconds = of.costs, [0.0]
    found = np.zeros((job.most_minibatches + 1, of.servers + 1), layout.ROWS)

    def add(row: int, column: int, parts_s: list[float]) -> None:
        found[row, column] = len(seconds), len(seconds) + len(parts_s)
        seconds.extend(parts_s)

    for minibatches in range(1, job.most_minibatches + 1) if of.traffic.in_parts else ():
        for server, loads in enumerate(job.loads(minibatches)):
            add(minibatches - 1, server, [sum_s(job, load) for load in loads])
    for rank in range(of.servers + 1) if of.traffic.in_parts else ():
        sizes = of.traffic.updated_bytes(rank) if rank < of.servers or of.summed or of.gathered_variables else []
        add(job.most_minibatches, rank, [costs.update(size) for size in sizes])
    return {"sides": found, "side_s": np.array(seconds)}


def one_by_one(job: Shape) -> dict[str, np.ndarray | Empty]:
    """Variables that travel one by one."""
    of, amounts = job.scenario, Amounts(job.scenario)
    ranks, variables = (of.ranks, len(amounts.variables)) if of.protocol.layerwise else (1, 1)
    return {
        "variable_bytes": np.array(amounts.variable_bytes if of.protocol.layerwise else [0.0], float),
        "variable_sum_s": np.array(
            [sum_s(job, one) for one in amounts.variable_loads] if of.protocol.layerwise else [0.0]
        ),
        "server_of": np.array(amounts.server_of if of.protocol.layerwise else [0], INTEGERS),
        "at_hand": Empty((ranks, variables), INTEGERS),
        "added": Empty((ranks, variables), INTEGERS),
    }


def sum_s(job: Shape, load: Load) -> float:
    """Seconds of adding it."""
    costs = job.scenario.costs
    return (costs.reduce_rows if load.rows and costs.reduce_rows else costs.reduce)(load.gradient_bytes)


def layers(job: Shape) -> dict[str, np.ndarray | Empty]:
    """Which gradients are ready when, where they are computed layer by layer, and what ranks do that sum them."""
    of, count, noted = job.scenario, job.variables, DECISIONS * job.memo
    bounds = np.cumsum([0, *(variable.size for variable in of.summed)], dtype=INTEGERS)
    bounds[-1] += 1
    return {
        "decision": Empty(noted, layout.DECISION),
        "ending": Empty((noted, of.ranks), layout.ENDING, zeros=False),
        "known_wait": Empty(KNOWN_WAITS if noted else 0, layout.KNOWN_WAIT, zeros=False),
        "variable_bound": bounds,
        "part": np.array(job.shares[::-1], np.float64),
        "ready": Empty((of.ranks, count), float),
        "gradient": Empty(count * (of.rounds + 2), layout.GRADIENT),
    }


def loads(job: Shape) -> dict[str, np.ndarray]:
    """What no run changes."""
    return {"line": lines(job), "size": sizes(job), **sides(job)}
