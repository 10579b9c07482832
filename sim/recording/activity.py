"""A row of a trace: what one rank did for how long."""

from __future__ import annotations

from typing import NamedTuple

NOBODY = -1  # the peer of an activity that has none

# sleep: an induced straggler. input: fetching a minibatch. compute: gradients. pack: they are joined into one message.
# copy to device, copy to host: bytes move between a rank's host and what computes there. send, receive: bytes move between ranks.
# wait: nothing moves. reduce: a gradient joins the sum. update: new parameters are made, or taken up. evaluate: loss, accuracy.
# checkpoint: of a recorded loop.
ACTIVITIES = (
    *("sleep", "input", "copy to device", "compute", "pack", "copy to host"),
    *("send", "receive", "wait", "reduce", "update", "evaluate", "checkpoint"),
)


class Activity(NamedTuple):
    """One activity of a rank, from start_s to end_s (seconds since the run's common start).

    `version` counts the updates that the parameters at hand had seen.
    """

    start_s: float
    end_s: float
    rank: int
    step: int
    activity: str
    samples: int = 0
    bytes: int = 0
    peer: int = NOBODY
    version: int = 0
