"""What a run leaves behind: when steps ended, and when ranks waited."""

from __future__ import annotations

from sim.engine.kernel import state
from sim.engine.kernel.compiling import compiled, in_place


@in_place
def note_wait(S, rank, from_s, to_s):
    """Note a wait, where waits are kept. Those without room are counted."""
    if S.wait_count > 0 and to_s > from_s:
        if S.waits < S.wait_count:
            wait = state.wait(S, S.waits)
            wait.rank, wait.from_s, wait.to_s = rank, from_s, to_s
        S.waits += 1


@compiled
def note_step(S, at_s, samples):
    """Note an update of rank 0."""
    if S.ends < S.step_end_count:
        step = state.step_end(S, S.ends)
        step.at_s, step.samples = at_s, samples
    S.ends += 1
