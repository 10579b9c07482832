"""The answer of training in simulated time: curves of every run, and the time at which a target was reached."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
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
        noise_scale: of gradients over all runs, samples, see sim.efficiency.noise.noise_scale_of_run; None if it was not asked for, NaN
            where noise hides the gradient.
    """

    scenario: Scenario
    training: Training
    target: Target | None
    curves: tuple[Curves, ...]
    updates: tuple[int, ...]
    speed: Result
    wall_s: float
    trace: Trace | None = None
    noise_scale: float | None = None

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

        Runs differ by times and by the order of data. What is not known of the job's speed moves all of them.
        """
        if self.time_s is None or len(self.curves) < 2:
            return None
        unknown = extrapolation.unknowns(self.speed.scenario, self.speed.outcome)
        low, high = extrapolation.widened(interval.of_runs(1 / self.times_s), 1 / self.time_s, unknown)
        return 1 / high, 1 / low

    def slower_than(self, base: Learned) -> Slower | None:
        """How much longer this job takes to the target than another one, run by run; None if no pair of runs reached it.

        Raises:
            WrongSetting: there is no other one.
        """
        check_kind("base", base, Learned, "what learn has returned")
        both = np.isfinite(self.times_s) & np.isfinite(base.times_s)
        if not both.any():
            return None
        unknown = paired.unknown(base.speed, self.speed)
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
            "interval": {"level": interval.LEVEL, "time_s": self.interval},
            "times_s": self.times_s.tolist(),
            "updates": list(self.updates),
            "curves": [{name: column.tolist() for name, column in vars(one).items()} for one in self.curves],
            "samples_per_s": self.speed.samples_per_s,
            "noise_scale": self.noise_scale,
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
    said = f"{goal} after {summary.seconds(found.time_s)}"
    if found.interval:
        said += f" ({summary.seconds(found.interval[0])} to {summary.seconds(found.interval[1])})"
    return f"{said}, {len(found.curves)} runs"
