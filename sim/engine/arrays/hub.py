"""When rank 0's messages to others go without events (sim.engine.kernel.star), and all its exchanges with them (sim.engine.kernel.hub)."""

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
DELAYS = {ops.DUE, ops.DELAY, ops.DELAYED}
ALONE = {*range(ops.END, ops.EVALUATE + 1)} - {ops.LAYERS}  # instructions that concern one rank


def is_star(job: Shape) -> bool:
    """Whether ranks have plain ports of their own, and all others send to rank 0 alone, and wait for its messages without a deadline.

    With deadlines it would hold as well; looking at what comes later takes kbatch-async longer than the events that it saves.
    """
    of = job.scenario
    plainly = job.mode == FREE and plain.queues(of) and is_ours(of.protocol) and of.servers == 1 and of.workers > 0
    if not plainly or (job.code.starts[1:] != job.code.starts[1]).any():
        return False
    messages = list(_messages(job.code, 1))
    sent = [operands[1:4] for op, *operands in messages if op != ops.RECV]
    return all(peers == TO_HUB for peers in sent) and all(
        operands[3] == 0 for op, *operands in messages if op == ops.RECV
    )


def is_hub(job: Shape) -> bool:
    """Whether a star's exchanges are rounds: rank 0 sends the parameters to all, and gathers the gradients of all."""
    of, everybody = job.scenario, [ops.RANGE, 1, job.code.ranks]
    if of.traffic.in_parts or of.protocol.counts_updates:
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
        elif op not in ALONE | DELAYS:
            yield [op]
        at = operands[0] if op == ops.COLLECT else at + 1


def times(job: Shape) -> dict[str, Empty]:
    """When messages come, to the hub or from it."""
    ranks, digits = (job.scenario.ranks, DIGITS) if job.hub else (1, 1)
    return {"reach": Empty(ranks, float), "spare": Empty(ranks, float), "place": Empty(digits, INTEGERS)}
