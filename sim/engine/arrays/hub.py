"""When rank 0 is a hub, whose exchanges with all others are played without events (sim.engine.kernel.hub)."""

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

MEANWHILE = {  # instructions in which no rank waits for another
    *range(ops.END, ops.SEND),
    *(ops.SEND, ops.RECV, ops.COLLECT),
} - {ops.LAYERS, ops.ROUND, ops.BEGINSUM, *range(ops.AWAITV, ops.UPDATEV + 1), ops.DUE, ops.DELAY, ops.DELAYED}


def is_hub(job: Shape) -> bool:
    """Whether ranks have ports of their own, which take the same time for each message, and exchange them with rank 0 alone, in rounds.

    Rank 0's text sends the parameters to all others, and gathers the gradients of all; theirs receives, and sends its gradient.
    """
    of = job.scenario
    plainly = job.mode == FREE and plain.queues(of) and not (of.traffic.in_parts or of.protocol.counts_updates)
    return plainly and is_ours(of.protocol) and of.servers == 1 and of.workers > 0 and _in_rounds(job.code)


def _in_rounds(code: Code) -> bool:
    starts, lines = code.starts, code.program().tolist()
    if (starts[1:] != starts[1]).any():
        return False
    everybody = [ops.RANGE, 1, code.ranks]
    hub, others = (list(_messages(lines, int(start))) for start in starts[:2])
    return hub == [[ops.SEND, ops.PARAMETERS, *everybody, 1, ops.OWN], [ops.COLLECT]] and others == [
        [ops.RECV, ops.RANGE, 0, 1, 0],
        [ops.SEND, ops.GRADIENT, ops.RANGE, 0, 1, 1, ops.OWN],
    ]


def _messages(lines: list[list[int]], at: int) -> Iterator[list[int]]:
    """What of a program sends and receives, besides the loop that COLLECT stands for; and what it may not do."""
    while lines[at][0] != ops.END:
        op, operands = lines[at][0], lines[at][1:]
        if op not in MEANWHILE:
            yield [op]
        if op == ops.SEND:
            yield [op, *operands[:6]]
        elif op == ops.RECV:
            yield [op, *operands[1:5]]
        elif op == ops.COLLECT:
            yield [op]
        at = operands[0] if op == ops.COLLECT else at + 1


def times(job: Shape) -> dict[str, Empty]:
    """When messages come, to the hub or from it."""
    ranks, digits = (job.scenario.ranks, DIGITS) if job.hub else (1, 1)
    return {"reach": Empty(ranks, float), "spare": Empty(ranks, float), "place": Empty(digits, INTEGERS)}
