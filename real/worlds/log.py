"""The lines that the AMB repository logs, of each step and update."""

from __future__ import annotations

from collections.abc import Callable


class Log:
    """The log of one rank's steps, if anybody reads it.

    Args:
        say: called with each line; None to be quiet.
        induced: whether stragglers are.
    """

    def __init__(self, say: Callable[[str], None] | None, induced: bool):
        self._say, self._induced = say, induced
        self._timed = {"sleep": 0.0, "compute": 0.0, "send": -1.0, "idle": -1.0}
        self._round_s = self._idle_since_s = 0.0

    def begun(self, step: int, now_s: float) -> None:
        """Take note that a worker begins a step."""
        self._round_s = now_s
        self._timed["idle"] = now_s - self._idle_since_s if step else -1.0

    def slept(self, seconds: float) -> None:
        """Take note that it has slept."""
        self._timed["sleep"] = seconds

    def computed(self, now_s: float) -> None:
        """Take note that it has a gradient."""
        self._timed["compute"] = now_s - self._round_s

    def sent(self, samples: int, start_s: float, now_s: float, is_worker: bool) -> None:
        """Log a worker's line, when its gradient is sent: computing of this round, and sending and idling of the last one."""
        if self._say and is_worker:
            self._say(worker_line(samples, self._timed, self._induced))
        self._timed["send"], self._idle_since_s = now_s - start_s, now_s

    def evaluated(self, step: int, optimiser, found: tuple[int, float, float] | None, now_s: float) -> None:
        """Log the master's line, when it has made an update and may have evaluated it."""
        if self._say:
            self._say(master_line(step, optimiser.learning_rate, found, now_s - self._round_s))
            self._round_s = now_s


def worker_line(samples: int, timed: dict[str, float], induced: bool) -> str:
    """The AMB repository's log line; seconds, -1 where the round before has none."""
    sleep = f"sleep_time [{timed['sleep']:.6g}], " if induced else ""
    return (
        f"Sending [{samples}] examples, {sleep}compute_time [{timed['compute']:.6g}], "
        f"last_idle [{timed['idle']:.6g}], last_send [{timed['send']:.6g}]"
    )


def master_line(step: int, learning_rate: float, evaluated: tuple[int, float, float] | None, round_s: float) -> str:
    """The AMB repository's line of the master; without loss and accuracy in a step that evaluates nothing."""
    loss, accuracy = (f"loss = {evaluated[1]:.7g}, ", f", accuracy = {evaluated[2]:.4g}") if evaluated else ("", "")
    return f"learning_rate = {learning_rate:.6g}, {loss}step = {step + 1}{accuracy} ({round_s:.3f} sec)"
