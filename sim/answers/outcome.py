"""The outcome of a run without its warm-up: step times, samples, idle shares; throughput and its interval."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sim.base import interval
from sim.base.errors import WrongSetting
from sim.base.models import read_only
from sim.base.ranges import SHORTEST_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sim.recording.traces import Trace


@dataclass(frozen=True)
class Outcome:
    """The measured steps of the replications of a scenario, after warm-up.

    Args:
        step_s: seconds of each step, shape (replications, steps).
        samples: samples summed by each step's update, shape (replications, steps).
        idle_fraction: share of the measured time that a rank waited, shape (replications, ranks); rank 0 is the master.
        warmup: steps before these.
        staleness: updates that gradients of the first replication had missed, where they may miss some, shape (gradients,).
        ends: by key, the logarithms by which a step takes longer and shorter where a quantity is at the ends of what it may be
            (sim.answers.quantities); those that were not simulated are missing.
        slow: what the job has that the engine has not, where the event world took long for it.
        by_message: why each message of a ring allreduce was an event, where one loop might have gone around it.
    """

    step_s: np.ndarray
    samples: np.ndarray
    idle_fraction: np.ndarray
    warmup: int = 0
    staleness: np.ndarray | None = None
    ends: dict[str, tuple[float, float]] = field(default_factory=dict)
    slow: str = ""
    by_message: str = ""

    def __post_init__(self):
        read_only(self)

    def first_steps(self, count: int) -> Outcome:
        """The same of the first measured steps alone; idle shares stay those of all."""
        return replace(self, step_s=self.step_s[:, :count], samples=self.samples[:, :count])

    def throughput(self) -> np.ndarray:
        """Samples per second of each replication, shape (replications,)."""
        return self.samples.sum(axis=1, dtype=float) / self.step_s.sum(axis=1)

    def interval(self, level: float = interval.LEVEL) -> tuple[float, float]:
        """Low and high end of the interval of samples per second for one more run of this length, with probability `level`.

        It comes from the spread of the replications, or of a single one's steps (sim.base.interval). NaN if there are too few.
        """
        if len(self.step_s) > 1:
            return interval.of_runs(self.throughput(), level)
        return interval.of_batches(self.step_s[0], self.samples[0], level)


def join(outcomes: Sequence[Outcome]) -> Outcome:
    """The replications of all `outcomes`, in order.

    Raises:
        WrongSetting: runs of different numbers of steps or ranks.
    """
    shapes = sorted({(o.step_s.shape[1], o.idle_fraction.shape[1]) for o in outcomes})
    if len(shapes) != 1:
        raise WrongSetting("replications", shapes, "runs of the same number of steps and of ranks")
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(o, name) for o in outcomes]) for name in ("step_s", "samples", "idle_fraction")
    }
    return replace(outcomes[0], **joined, ends=_ends(outcomes))


def _ends(outcomes: Sequence[Outcome]) -> dict[str, tuple[float, float]]:
    """Those of all that were simulated, on the average of the runs beside them."""
    known = [(len(o.step_s), o.ends) for o in outcomes if o.ends]
    causes = dict.fromkeys(cause for _, ends in known for cause in ends)
    runs = [count for count, _ in known]
    return {
        cause: tuple(np.average([ends.get(cause, (0.0, 0.0)) for _, ends in known], axis=0, weights=runs).tolist())
        for cause in causes
    }


def of_trace(trace: Trace) -> Outcome:
    """The outcome of one run, simulated or measured, as one replication; of a run cut short, its complete steps.

    A step lasts from one end of rank 0's `update` to the next; of a user's text without a master, from where one is over at all ranks to
    where the next is. The first starts at time 0.

    Raises:
        WrongSetting: no step was completed after warm-up, or they took no time.
    """
    first = trace.header.warmup
    if trace.header.by_all_ranks:
        from sim.recording.conformance import rounds_of

        ends_s, samples, _ = rounds_of(trace)
        ends_s = ends_s.max(axis=1)
    else:
        ends_s, samples = _updates(trace)
    if len(ends_s) <= first:
        given = f"{len(ends_s)} steps, {first} of warm-up"
        raise WrongSetting("trace", given, "at least one step after warm-up")
    step_s = (np.diff(ends_s, prepend=0.0) - _paused_s(trace, len(ends_s)))[first:]
    start_s = ends_s[first - 1] if first else 0.0
    if not ends_s[-1] - start_s > SHORTEST_S * len(step_s):
        raise WrongSetting("trace", f"steps from {start_s:g} s to {ends_s[-1]:g} s", "measured steps that take time")
    idle = _idle_fraction(trace, start_s, ends_s[-1])
    return Outcome(step_s[None], samples[first:][None], idle[None], first)


def _updates(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """When each step's last update ended, seconds, and the samples of its updates; up to the first that is missing."""
    rows = trace.rows
    updates = ((rows["rank"] == 0) & (rows["activity"] == "update")).to_numpy()
    step, end_s, of_update = (rows[name].to_numpy()[updates] for name in ("step", "end_s", "samples"))
    steps, places = np.unique(step, return_inverse=True)
    last_s, samples = np.full(len(steps), -np.inf), np.zeros(len(steps), int)
    np.maximum.at(last_s, places, end_s)
    np.add.at(samples, places, of_update)
    each = trace.header.updates_per_step  # that have a number each, where the order of arrival numbers them
    complete = np.count_nonzero(np.logical_and.accumulate(steps == np.arange(len(steps)))) // each
    ends_s, made = (one[: complete * each].reshape(complete, each) for one in (last_s, samples))
    return ends_s[:, -1], made.sum(axis=1)


def _paused_s(trace: Trace, steps: int) -> np.ndarray:
    """Seconds of each step in which somebody else's loop evaluated or saved, which no step of it counts, shape (steps,)."""
    from sim.recording.pauses import PAUSES
    from sim.recording.recorded import WORLDS

    rows = trace.rows
    if trace.header.world not in WORLDS:
        return np.zeros(steps)
    rows = rows[(rows["rank"] == 0) & rows["activity"].isin(PAUSES) & (rows["step"] < steps)]
    return np.bincount(rows["step"].to_numpy(int), (rows["end_s"] - rows["start_s"]).to_numpy(float), steps)


def _idle_fraction(trace: Trace, start_s: float, end_s: float) -> np.ndarray:
    """Share of the seconds from start_s to end_s that each rank spent in `wait`, shape (ranks,)."""
    waits = (trace.rows["activity"] == "wait").to_numpy()
    begin_s, over_s, rank = (trace.rows[name].to_numpy()[waits] for name in ("start_s", "end_s", "rank"))
    inside_s = np.minimum(over_s, end_s) - np.maximum(begin_s, start_s)
    idle_s = np.bincount(rank.astype(int), np.maximum(inside_s, 0.0), trace.header.ranks)
    return idle_s / (end_s - start_s)


def staleness_of(trace: Trace) -> np.ndarray:
    """Updates that each gradient had missed when the first server added it, shape (gradients,), after warm-up."""
    rows = trace.rows[trace.rows["rank"] == 0]
    rows = rows[rows["activity"].isin(["reduce", "update"])].sort_values(["end_s", "start_s"], kind="stable")
    made = (rows["activity"] == "update").cumsum()
    added = rows["activity"] == "reduce"
    warm = made >= trace.header.warmup * trace.header.updates_per_step
    return (made - rows["version"])[added & warm].to_numpy(int)


class Amount(NamedTuple):
    """The amount of simulation.

    Args:
        runs: replications.
        steps: measured steps of each.
        warmup: steps before them.
    """

    runs: int
    steps: int
    warmup: int


def cut_short(asked: Amount, done: Amount) -> list[str]:
    """A note, if there was no time for all that was asked for.

    >>> cut_short(Amount(20, 100, 10), Amount(3, 100, 10))
    ['3 of 20 runs, because time ran out; --within SECONDS allows more']
    """
    if asked == done:
        return []
    said = f"{done.runs} of {asked.runs} runs"
    if asked[1:] != done[1:]:
        said = f"{done.steps} of {asked.steps} steps of {'one run' if done.runs == 1 else f'{done.runs} runs'}"
    if done.warmup < asked.warmup:
        said += f" (warm-up: {done.warmup} of {asked.warmup})"
    return [f"{said}, because time ran out; --within SECONDS allows more"]
