"""What a prediction needs to know of this machine: runs of their own, of texts that only compute and only communicate."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

import numpy as np

from real.language.ranks import run
from sim import needs
from sim.language.collectives import allreduce
from sim.language.job import Job, Layer
from sim.language.learning import Chain
from sim.language.text import Text
from sim.language.verbs import clear

STEPS = 12
WARMUP = 2
SHARES = (0, 8, 2, 1)  # parts of the weights that are summed: none, an eighth, a half, all


@dataclass(frozen=True)
class Computing(Text):
    """Ranks compute one after another, layer by layer: a rank begins when the one before has ended its round."""

    name = "computing"

    def __call__(self, me):
        """The text of a rank."""
        for step in me.steps():
            if me.rank or step:
                yield from me.take((me.rank - 1) % me.n)
            for layer in me.layers:
                yield from me.forward(layer, layer + 1)
            for layer in reversed(me.layers):
                yield from me.backward(layer, layer + 1)
            yield from me.update()
            yield from me.post(me.weights[:0], (me.rank + 1) % me.n)


@dataclass(frozen=True)
class Summing(Text):
    """All ranks sum pieces of several sizes by rings, and compute nothing."""

    name = "summing"

    def __call__(self, me):
        """The text of a rank."""
        for step in me.steps():
            of = SHARES[step % len(SHARES)]
            yield from clear(me, me.gradient)
            yield from allreduce(me, me.gradient.part(0, of) if of else me.gradient[:0], me.workers)


def fitted(comm, job: Job, model: Chain) -> Job | None:
    """The job as it is on this machine; None but at rank 0. Collective.

    All costs are seconds of a core, which ranks share: of a layer the median of all ranks and steps; of a ring's messages a line by their
    bytes, copying and adding included; of a poll the mean.
    """
    computed = run(comm, replace(job, steps=STEPS), Computing(), model)
    summed = run(comm, replace(job, steps=STEPS * len(SHARES)), Summing(), model)
    if computed is None or summed is None:
        return None
    seconds = [
        statistics.median(one for of in computed.measured for one in of.seconds[way, layer, layer + 1, 1][WARMUP:])
        for way in ("forward", "backward")
        for layer in range(len(job.layers))
    ]
    update_s = statistics.median(
        one
        for of in computed.measured
        for (name, *_), found in of.seconds.items()
        if name == "update"
        for one in found[WARMUP:]
    )
    ways = zip(seconds[: len(job.layers)], seconds[len(job.layers) :], strict=True)
    layers = tuple(Layer(of.items, *way, of.activation_items) for of, way in zip(job.layers, ways, strict=True))
    each_s, byte_s = _message([of.handled_s for of in summed.measured], job)
    items = sum(layer.items for layer in job.layers)
    polls = sum(of.polls for of in computed.measured)
    return replace(
        job,
        layers=layers,
        update_s=update_s / items,
        local_overhead_s=each_s,
        local_copy_s=byte_s,
        poll_s=sum(of.polled_s for of in computed.measured) / max(1, polls),
        per_host=job.ranks,
        cores=needs.cores(),
        in_turn=False,
    )


def _message(handled_s: list[list[float]], job: Job) -> tuple[float, float]:
    """Seconds of a core for a message in a ring, and for each of its bytes.

    A line through the medians of each size, by least squares of ratios.

    Args:
        handled_s: of each rank, until the end of each round.
    """
    took_s = np.diff(handled_s, axis=1, prepend=0.0)
    items = sum(layer.items for layer in job.layers)
    messages = 2 * (job.ranks - 1)
    sizes = [items / of * job.item_bytes / job.ranks if of else 0.0 for of in SHARES]
    each_s = [float(np.median(took_s[:, len(SHARES) + k :: len(SHARES)])) / messages for k in range(len(SHARES))]
    weights = 1 / np.array(each_s)
    lines = np.stack([np.ones(len(SHARES)), sizes], axis=1)
    (base_s, byte_s), *_ = np.linalg.lstsq(lines * weights[:, None], np.ones(len(SHARES)), rcond=None)
    return max(0.0, float(base_s)), max(0.0, float(byte_s))
