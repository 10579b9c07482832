"""Checkpoints of a supervised run: reading the last one, and writing further ones for the next attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from real.recording.attempts import Attempts, Checkpoint
from real.worlds.clock import Clock

if TYPE_CHECKING:
    from real.worlds.mpi import Rank


def resume(me: Rank, attempts: Attempts) -> None:
    """Go on from the last checkpoint, by the clock of the first attempt, and write further ones. Collective."""
    found, began_s = None, 0.0
    if me.rank == 0:
        found = attempts.checkpoint()
        began_s = attempts.resumed(me.clock.counter_s, found.step if found else 0)
    found, began_s = me.comm.bcast((found, began_s))
    me.clock = Clock(me.clock.offset_s, began_s)
    if found:
        me.first = me.version = found.step
        me.evaluations = found.evaluations
        me.parameters[:] = found.parameters
        me.trainee.skip(0 if me.serves else found.step)
        if me.trainee.optimiser:
            me.trainee.optimiser.restore(found.optimiser)
    _checkpointing(me, attempts)


def _checkpointing(me: Rank, attempts: Attempts) -> None:
    """Have `me.steps()` write checkpoints at rank 0, and the recorded activities at all ranks."""
    steps, every = me.steps, attempts.every

    def checkpointed_steps():
        for step in steps():
            if step % every == 0 and step > me.first:
                me.recorder.flush()
                if me.rank == 0:
                    _keep(me, attempts, step)
            yield step

    me.steps = checkpointed_steps  # type: ignore[method-assign]


def _keep(me: Rank, attempts: Attempts, step: int) -> None:
    start_s, checkpoint = me.now_s, Checkpoint(step, me.parameters, me.trainee.optimiser.state, me.evaluations)
    attempts.keep(checkpoint)
    me.record("checkpoint", start_s, bytes=checkpoint.size_bytes)
