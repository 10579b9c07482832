"""What limits a recorded loop, in a line: the largest part of its steps, and what to try next."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from sim.recording import pauses

BOUND = {"input": "input", "compute": "compute", "wait": "communication", "update": "update"}
SLIGHT = 0.02  # of the time; what is rarer may be a stall
NEXT = {
    "input": "load while computing, by num_workers of the DataLoader or the like",
    "compute": "lower precision, compilation, or a faster device",
    "wait": "compare the ranks, because all wait for the slowest, then the links",
    "update": "what the loop does after its gradients: optimiser, logging, evaluation",
}


class Verdict:
    """Adds up the steps of one rank.

    Args:
        warmup: steps that do not count.
    """

    def __init__(self, warmup: int):
        self._warmup, self._paused_s = warmup, 0.0
        self._seconds = {name: array("d") for name in pauses.OWN}  # of each step
        self._messages = False

    def add(self, rows: Iterable[tuple]) -> None:
        """The rows of a step."""
        of_step = dict.fromkeys(self._seconds, 0.0)
        for start_s, end_s, _, step, activity, *_ in rows:
            if step < self._warmup:
                return
            self._messages |= activity == "receive"
            self._paused_s += (end_s - start_s) * (activity in pauses.PAUSES)
            if activity in of_step:
                of_step[activity] += end_s - start_s
        for activity, seconds in of_step.items():
            self._seconds[activity].append(seconds)

    def said(self, ranks: int, loader_workers: int | None) -> str | None:
        """The line, for a job of so many ranks and processes that load beside the loop; None without a step after warm-up."""
        step_s = [sum(of) for of in zip(*self._seconds.values(), strict=True)]
        if not sum(step_s):
            return None
        usual_s, least_s = pauses.beyond(self._seconds["update"], step_s)
        more_s = sum(one - usual_s for one in self._seconds["update"] if one > least_s)
        total = {name: sum(of) - more_s * (name == "update") for name, of in self._seconds.items()}
        whole_s, paused_s = sum(total.values()), self._paused_s + more_s
        share = {name: seconds / whole_s for name, seconds in total.items() if seconds}
        bound = max(share, key=share.__getitem__)
        then = NEXT[bound]
        if loader_workers and share.get("input", 0.0) > pauses.SETS_THE_PACE:
            bound, then = "input", f"more loader workers than {loader_workers}, or less work for each sample"
        unseen = " and messages" * (ranks > 1 and not self._messages)
        listed = ", ".join(f"{name}{unseen * (name == 'compute')} {of:.0%}" for name, of in share.items())
        paused = paused_s / (paused_s + whole_s)
        beside = f"; evaluations and checkpoints took {paused:.0%} of the time" * (paused > SLIGHT)
        step = f"a step of {1e3 * whole_s / len(step_s):.4g} ms, the mean of {len(step_s)}"
        return f"{BOUND[bound]}-bound: {listed} of {step}{beside}; next: {then}"
