"""A row of a trace: what one rank did for how long; and the names of files in the folder of a run that is recorded rank by rank."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

NOBODY = -1  # the peer of an activity that has none
HEADER_FILE = "header.json"  # of the ranks of a real run of ours
MODEL_FILE = "workload.toml"  # of somebody else's training, which trainsim.Recorder has recorded

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


def part_file(folder: Path, rank: int) -> Path:
    """The file for a rank's part of a growing trace."""
    return folder / f"rank-{rank:05d}.jsonl"


def facts_file(folder: Path, rank: int) -> Path:
    """The file for what trainsim.Recorder knows of a rank."""
    return folder / f"rank-{rank:05d}.json"
