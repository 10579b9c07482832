"""The result of simulating a scenario: arrays of its steps, figures, a table, and JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sim.answers import basis, candidates, summary
from sim.answers.notes import notes
from sim.answers.outcome import Amount, cut_short
from sim.base import interval

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from sim.answers.basis import Number
    from sim.answers.outcome import Outcome
    from sim.answers.summary import Search
    from sim.job.scenario import Scenario
    from sim.recording.traces import Trace

CLOSED = "the interval is by closed forms, because time ran out; --within SECONDS simulates it"


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of a scenario.

    Args:
        scenario: that was simulated.
        world: that simulated it: engine or event.
        runs: replications that were asked for, or that are usual.
        outcome: of those replications that there was time for.
        wall_s: seconds that it took.
        first: the number of the first replication.
        trace: of the first replication.
        search: what a search for the number of variable partitions found, if there was one.
        speeds: where nobody said which algorithm sums, samples a second with each candidate.
        assumed: the options that were chosen because nobody gave them, in a line.
        bounded: whether there was no time to simulate what is not known, so that closed forms say it.
    """

    scenario: Scenario
    world: str
    runs: int
    outcome: Outcome
    wall_s: float = 0.0
    first: int = 0
    trace: Trace | None = None
    search: Search | None = None
    speeds: dict[str, float] | None = None
    assumed: str | None = None
    bounded: bool = False

    @property
    def kept_trace(self) -> Trace:
        """The trace of the first replication.

        Raises:
            ValueError: it was not asked for.
        """
        if self.trace is None:
            raise ValueError("no trace was asked for: want_trace=True")
        return self.trace

    @property
    def step_s(self) -> np.ndarray:
        """Seconds of each measured step, shape (replications, steps)."""
        return self.outcome.step_s

    @property
    def samples(self) -> np.ndarray:
        """Samples that each step's update sums, shape (replications, steps)."""
        return self.outcome.samples

    @property
    def idle_fraction(self) -> np.ndarray:
        """Share of the measured time that each rank waited, shape (replications, ranks); master or servers come first."""
        return self.outcome.idle_fraction

    @property
    def samples_per_s(self) -> float:
        """Samples a second, the geometric mean of the replications'."""
        return interval.middle(self.outcome.throughput())

    @cached_property
    def _interval(self) -> tuple[tuple[float, float] | None, str | None]:
        return summary.interval_of(self.scenario, self.world, self.outcome)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Samples a second, low and high, between which one more run falls nine times in ten; None if that is not known."""
        return self._interval[0]

    @property
    def why_no_interval(self) -> str | None:
        """Why there is no interval; None if there is one."""
        return self._interval[1]

    @property
    def asked(self) -> Amount:
        """The amount that was asked for."""
        return Amount(self.runs, self.scenario.steps, self.scenario.warmup)

    @property
    def done(self) -> Amount:
        """The amount that there was time for."""
        runs, steps = self.outcome.step_s.shape
        return Amount(runs, steps, self.outcome.warmup)

    @cached_property
    def notes(self) -> list[str]:
        """Caveats, a line each."""
        found = [self.assumed] if self.assumed else []
        found += notes(self.scenario, self.outcome, self.world, self.trace)
        if self.speeds:
            found.append(candidates.said(self.scenario, self.speeds))
        found += [str(self.search)] * (self.search is not None)
        return found + (cut_short(self.asked, self.done) or [CLOSED] * self.bounded)

    @cached_property
    def basis(self) -> list[Number]:
        """The numbers that the answer rests on, those first that make most of its variance."""
        return basis.of(self.scenario, self.outcome)

    def __repr__(self) -> str:
        return f"<Result: {summary.in_a_line(self.answer(), self.scenario)}>"

    def to_frame(self) -> pd.DataFrame:
        """One row a step: replication, step (from 0, after warm-up), step_s (seconds), samples."""
        import numpy as np
        import pandas as pd

        runs, steps = self.step_s.shape
        return pd.DataFrame(
            {
                "replication": np.repeat(np.arange(self.first, self.first + runs), steps),
                "step": np.tile(np.arange(steps), runs),
                "step_s": self.step_s.ravel(),
                "samples": self.samples.ravel(),
            }
        )

    def answer(self) -> dict:
        """The object that `sim.run --json` prints, schema answer/1; what is not known is None."""
        given = self.scenario, self.world, self.outcome, self.wall_s, self.search, self.runs, self.notes
        return summary.as_json(*given) | {"basis": [one.as_json() for one in self.basis]}

    def to_json(self) -> str:
        """`answer` as JSON, on one line."""
        return json.dumps(self.answer())
