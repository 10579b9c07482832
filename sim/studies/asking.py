"""The questions of `--what-if` and `--why`, for programs: about a scenario, or about a result that is there already."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.answers.result import Result
from sim.base.ranges import check_kind
from sim.job.scenario import Scenario
from sim.simulation import simulate
from sim.studies import changes
from sim.studies import what_if as comparing
from sim.studies import why as causes

if TYPE_CHECKING:
    import pandas as pd

    from sim.studies.what_if import Compared
    from sim.studies.why import Why


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf(Sequence["Compared"]):
    """Changes of a job beside the job, as a sequence.

    Args:
        base: the job's result.
        compared: each change, in the order in which they were asked.
    """

    base: Result
    compared: tuple[Compared, ...]

    def __getitem__(self, index):
        return self.compared[index]

    def __len__(self) -> int:
        return len(self.compared)

    def __repr__(self) -> str:
        _, *rows = comparing.rows(self.compared, self.base.answer())
        return "\n".join("  ".join(cells) for cells in rows)

    def to_frame(self) -> pd.DataFrame:
        """A row each: change, samples_per_s, ratio (of throughputs), its 90 % limits ratio_low and ratio_high, pairs (of runs).

        usd_per_million_samples is NaN where a price is not known.
        """
        import pandas as pd

        columns = ["change", "samples_per_s", "ratio", "ratio_low", "ratio_high", "pairs"]
        ends = [one.interval or (math.nan, math.nan) for one in self.compared]
        told = [
            (one.change, one.result.samples_per_s, one.ratio, *of, one.pairs)
            for one, of in zip(self.compared, ends, strict=True)
        ]
        usd = [one.result.answer().get(comparing.USD, math.nan) for one in self.compared]
        return pd.DataFrame(told, columns=columns).assign(**{comparing.USD: usd})


def what_if(
    base: Scenario | Result,
    *changed: str | Scenario,
    world: str = "auto",
    replications: int | None = None,
    within_s: float = math.inf,
) -> WhatIf:
    """Changes of a job beside the job, on the same random numbers.

    Args:
        base: the job; a result is not simulated again.
        changed: each a text as `--what-if` takes it, such as "workers=8" or "network.bandwidth=25 Gbit/s", or another job.
        world, replications, within_s: of each simulation, see trainsim.simulate; a result's own if it is given.

    Raises:
        WrongSetting: no job, a change that cannot be, or see trainsim.simulate.
        RunFailed: see trainsim.simulate.
    """
    found, other = _asked(base, world, replications, within_s)
    jobs = [
        (one, changes.of_job(one, found.scenario)) if isinstance(one, str) else (f"job {n}", one)
        for n, one in enumerate(changed, 1)
    ]
    return WhatIf(found, tuple(comparing.compare(said, found, other(job, None), real=True) for said, job in jobs))


def why(
    base: Scenario | Result, *, world: str = "auto", replications: int | None = None, within_s: float = math.inf
) -> Why:
    """The job without each cause of its step time, and with changes that would help.

    Args:
        base, world, replications, within_s: see `what_if`.

    Raises:
        WrongSetting: see `what_if`.
        RunFailed: see trainsim.simulate.
    """
    found, other = _asked(base, world, replications, within_s)
    return causes.why(found, other, lambda text: changes.of_job(text, found.scenario))


def _asked(
    base: Scenario | Result, world: str, replications: int | None, within_s: float
) -> tuple[Result, causes.Simulate]:
    """The result of the base; and what simulates other jobs on its random numbers, in so many runs, or as many as there are of it."""
    check_kind("base", base, Scenario | Result, "a Scenario, or the Result of one")
    found = base if isinstance(base, Result) else simulate(base, world, replications, within_s=within_s)
    return found, lambda job, runs: simulate(job, world, runs or found.done.runs, first=found.first, within_s=within_s)
