"""When all exchanges of rank 0 with others go without events (sim.engine.kernel.hub)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim.engine.arrays.shape import INTEGERS, Empty
from sim.engine.kernel import ops
from sim.engine.kernel.layout import FREE
from sim.engine.kernel.sorting import DIGITS
from sim.event import plain
from sim.protocols import is_ours

if TYPE_CHECKING:
    from sim.engine.arrays.shape import Shape
    from sim.engine.lowering.program import Code

TO_HUB = [ops.RANGE, 0, 1]
ALONE = {*range(ops.END, ops.EVALUATE + 1)} - {ops.LAYERS}  # instructions that concern one rank


def is_hub(job: Shape) -> bool:
    """Whether rank 0 sends the parameters to all and gathers their gradients, round by round, and each rank has a plain port of its own."""
    of, everybody = job.scenario, [ops.RANGE, 1, job.code.ranks]
    plainly = job.mode == FREE and plain.queues(of) and is_ours(of.protocol) and of.servers == 1 and of.workers > 0
    if (
        not plainly
        or of.traffic.in_parts
        or of.protocol.counts_updates
        or (job.code.starts[1:] != job.code.starts[1]).any()
    ):
        return False
    hub, others = (list(_messages(job.code, rank)) for rank in range(2))
    return hub == [[ops.SEND, ops.PARAMETERS, *everybody, 1, ops.OWN], [ops.COLLECT]] and others == [
        [ops.RECV, *TO_HUB, 0],
        [ops.SEND, ops.GRADIENT, *TO_HUB, 1, ops.OWN],
    ]


def _messages(code: Code, rank: int) -> Iterator[list[int]]:
    """What of a rank's program sends and receives, besides the loop that COLLECT stands for; and whatever else concerns several."""
    lines, at = code.program().tolist(), int(code.starts[rank])
    while lines[at][0] != ops.END:
        op, operands = lines[at][0], lines[at][1:]
        if op == ops.SEND:
            yield [op, *operands[:6]]
        elif op == ops.RECV:
            yield [op, *operands[1:5]]
        elif op not in ALONE:
            yield [op]
        at = operands[0] if op == ops.COLLECT else at + 1


def times(job: Shape) -> dict[str, Empty]:
    """When messages come, to the hub or from it."""
    ranks, digits = (job.scenario.ranks, DIGITS) if job.hub else (1, 1)
    return {"reach": Empty(ranks, float), "spare": Empty(ranks, float), "place": Empty(digits, INTEGERS)}
