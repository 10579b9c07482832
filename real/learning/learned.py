"""The answer of training in simulated time: curves of every run, and the time at which a target was reached."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.answers import extrapolation, paired, summary
from sim.base import interval
from sim.base.ranges import check_kind
from sim.recording.curves import TARGETS, Curves, Target, reached
from sim.studies.what_if import of_pairs

if TYPE_CHECKING:
    import pandas as pd

    from sim.answers.result import Result
    from sim.job.scenario import Scenario
    from sim.recording.traces import Trace, Training

SCHEMA = "learned/1"


class Slower(NamedTuple):
    """The time to a target of one job over another's, run by run.

    Args:
        value: the geometric mean over pairs of runs with equal random numbers.
        interval: low and high between which it falls for one more pair of real runs, nine times in ten; None if that is not known.
        pairs: of runs in which both reached it.
    """

    value: float
    interval: tuple[float, float] | None
    pairs: int


@dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """A job that was trained in simulated time.

    Args:
        scenario: the job; its `steps` are the most that a run may take.
        training: the data, the optimiser and the engine.
        target: at which a run ends; None if all steps were trained.
        curves: of each run.
        updates: of rank 0, of each run.
        speed: of the same job without training, for what is not known of its times.
        wall_s: seconds that training took.
        trace: of the first run; None if it was not asked for.
        at_ends: by key, the logarithms by which the target takes longer and shorter where a quantity is at the ends of what it may be
            (sim.answers.quantities); where it is missing, as a step does.
    """

    scenario: Scenario
    training: Training
    target: Target | None
    curves: tuple[Curves, ...]
    updates: tuple[int, ...]
    speed: Result
    wall_s: float
    trace: Trace | None = None
    at_ends: dict[str, tuple[float, float]] = field(default_factory=dict)

    def at(self, target: Target | str) -> Learned:
        """The same runs, asked for another target.

        Raises:
            WrongSetting: it is none.
        """
        check_kind("target", target, Target | str, TARGETS)
        return replace(self, target=Target.read(target) if isinstance(target, str) else target)

    @cached_property
    def times_s(self) -> np.ndarray:
        """Seconds until each run reached the target, shape (runs,); NaN where one did not, or there is none."""
        found = np.array([reached(one, self.target) if self.target else math.nan for one in self.curves])
        found.flags.writeable = False
        return found

    @property
    def time_s(self) -> float | None:
        """Seconds until the target, the geometric mean over runs; None unless all of them reached it."""
        return interval.middle(self.times_s) if np.isfinite(self.times_s).all() else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Seconds, low and high, between which one more run reaches the target nine times in ten; None if that is not known.

        It holds both `run_to_run` and `not_known`.
        """
        return self._widened(self.run_to_run)

    @property
    def run_to_run(self) -> tuple[float, float] | None:
        """The same if all of the job's speed is known: runs differ by times, first parameters and the order of data."""
        return None if self.time_s is None or len(self.curves) < 2 else interval.of_runs(self.times_s)

    @property
    def not_known(self) -> tuple[float, float] | None:
        """Seconds, low and high, between which the mean of runs is nine times in ten, by what is not known of the job's speed."""
        return self._widened((self.time_s, self.time_s)) if self.time_s is not None else None

    def _widened(self, pair: tuple[float, float] | None) -> tuple[float, float] | None:
        """An interval of times, and what is not known of the job's speed, which moves all runs alike."""
        if pair is None or self.time_s is None:
            return None
        unknown = extrapolation.unknowns(self._timed.scenario, self._timed.outcome)
        low, high = extrapolation.widened((1 / pair[1], 1 / pair[0]), 1 / self.time_s, unknown)
        return 1 / high, 1 / low

    @property
    def _timed(self) -> Result:
        """The job without training, with what its unknown numbers do to the time to the target."""
        outcome = self.speed.outcome
        return replace(self.speed, outcome=replace(outcome, ends=outcome.ends | self.at_ends))

    def slower_than(self, base: Learned) -> Slower | None:
        """How much longer this job takes to the target than another one, run by run; None if no pair of runs reached it.

        Raises:
            WrongSetting: there is no other one.
        """
        check_kind("base", base, Learned, "what learn has returned")
        both = np.isfinite(self.times_s) & np.isfinite(base.times_s)
        if not both.any():
            return None
        unknown = paired.unknown(base._timed, self._timed)
        ratio = of_pairs(1 / base.times_s[both], 1 / self.times_s[both], unknown)
        ends = None if ratio.interval is None else (1 / ratio.interval[1], 1 / ratio.interval[0])
        return Slower(1 / ratio.value, ends, ratio.pairs)

    @property
    def notes(self) -> list[str]:
        """Caveats, a line each."""
        found = list(self.speed.notes)
        missed = int(np.isnan(self.times_s).sum())
        if self.target and missed:
            said = f"{missed} of {len(self.curves)} runs did not reach {self.target.of} {self.target.value:g}"
            found.insert(0, f"{said} in {self.scenario.steps:,} steps")
        return found

    @property
    def best_accuracy(self) -> float:
        """The best of any evaluation."""
        return max(float(one.accuracy.max()) for one in self.curves)

    def to_frame(self) -> pd.DataFrame:
        """One row an evaluation: replication, step (updates of rank 0 so far), time_s (seconds), samples (so far), loss, accuracy."""
        import pandas as pd

        parts = [
            pd.DataFrame(
                {"replication": run, "step": c.step, "time_s": c.time_s, "samples": c.samples, "loss": c.loss, "accuracy": c.accuracy}
            )
            for run, c in enumerate(self.curves)
        ]  # fmt: skip
        return pd.concat(parts, ignore_index=True)

    def answer(self) -> dict:
        """The object that `real.learn --json` prints, schema learned/1; what is not known is None."""
        target = {"of": self.target.of, "value": self.target.value} if self.target else None
        found = {
            "schema": SCHEMA,
            "scenario": summary.told(self.scenario, "learning"),
            "training": vars(self.training),
            "target": target,
            "runs": len(self.curves),
            "time_s": self.time_s,
            "interval": {
                "level": interval.LEVEL,
                "time_s": self.interval,
                "run_to_run": self.run_to_run,
                "not_known": self.not_known,
            },
            "times_s": self.times_s.tolist(),
            "updates": list(self.updates),
            "curves": [{name: column.tolist() for name, column in vars(one).items()} for one in self.curves],
            "samples_per_s": self.speed.samples_per_s,
            "notes": self.notes,
            "wall_s": self.wall_s,
        }
        return summary.known(found)

    def to_json(self) -> str:
        """`answer` as JSON, on one line."""
        return json.dumps(self.answer())

    def __repr__(self) -> str:
        return f"<Learned: {in_a_line(self)}>"


def in_a_line(found: Learned) -> str:
    """The answer, in a line."""
    if found.target is None:
        return f"{sum(found.updates):,} updates in {len(found.curves)} runs, best accuracy {found.best_accuracy:.3f}"
    goal = f"{found.target.of} {found.target.value:g}"
    if found.time_s is None:
        return found.notes[0]
    said = f"{goal} after {summary.seconds(found.time_s, summary.borne(found.interval))}"
    if found.interval:
        said += f" ({to(found.interval)}, 9 in 10)"
    return f"{said}, {len(found.curves)} runs"


def to(pair: tuple[float, float] | None) -> str:
    """An interval of seconds as text, with the digits that it bears; empty if there is none."""
    return "" if pair is None else " to ".join(summary.seconds(end, summary.borne(pair)) for end in pair)
