"""A plan: the configurations that answer a question, and all that was learned on the way. Its rows are what pages and tables draw."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING

from sim.answers.summary import number
from sim.base.errors import RunFailed
from sim.base.progress import Progress
from sim.job import gpu_memory, measured_steps, reading
from sim.model import workload_text
from sim.plans import search, sensitivity
from sim.plans.candidates import EFFORTS, Candidate
from sim.plans.configurations import Room
from sim.plans.simulating import Simulating
from sim.plans.until import by_name, in_words
from sim.version import VERSION

if TYPE_CHECKING:
    import pandas as pd

    from sim.job.scenario import Scenario
    from sim.plans.question import Question
    from sim.plans.sensitivity import Value
    from sim.sweeps.pools import Pool

SCHEMA = "plan/1"
# Shares of the time that are over when no further configuration is looked at, when the search ends, and when the front and each kind of
# host are known.
SCREENED_UNTIL, SEARCH_UNTIL, FRONT_UNTIL = 0.5, 0.75, 0.94
EASILY_SHARE = 0.3  # of the search's time, for what meets the target easily, where nothing was found before
EASILY = 1.2  # times as fast as needed, by the bound
FRONT_EFFORT = 2
CUT = "the search was cut short: what was not looked at may be better; --within SECONDS gives it more time"
AS_GOOD = 3  # that are shown where no configuration meets the target


@dataclass(frozen=True, repr=False)
class Plan:
    """The answer to a question.

    Args:
        best: configurations that meet the target with the asked probability, the best first; if none does, the nearest.
        met: whether they meet it.
        front: simulated configurations that none beats in both cost and time, the cheapest first.
        simulated: every configuration that was simulated.
        rejected: numbers of configurations that are not among the best, by reason.
        values: the values of measuring.
        by_kind: where there are several, the best of each kind of host and way of renting it; those that meet the target first.
        whole: whether there was time for the whole search.
    """

    question: Question
    room: Room
    best: list[Candidate]
    met: bool
    front: list[Candidate]
    simulated: list[Candidate]
    rejected: Counter[str]
    values: list[Value] = field(default_factory=list)
    by_kind: list[Candidate] = field(default_factory=list)
    whole: bool = True
    wall_s: float = 0.0

    @property
    def configurations(self) -> int:
        """The number of configurations."""
        return len(self.room.all)

    def row(self, one: Candidate) -> dict:
        """The knowledge about a configuration; units are in the names, unknown values are None."""
        asked, figures = one.configuration, one.figures
        assert figures
        hours, known = one.hours_at(figures.mid), figures.why_none is None
        low, high = (figures.low, figures.high) if known else (None, None)
        chosen = {name: value for name, value in vars(asked).items() if name != "subset"}
        return chosen | {
            "settings": list(asked.settings),
            "hosts_told": self.room.told(asked),
            "workers": one.workers,
            "samples_per_s": {"low": low, "mid": figures.mid, "high": high},
            "why_no_interval": figures.why_none,
            "goodput": figures.goodput,
            "hours": hours,
            "usd": None if hours is None else one.cost_at(figures.mid),
            "needed_samples_per_s": one.needed,
            "p_target": one.chance if known else None,
            "p_best": one.p_best,
            "work": one.work.as_json() if one.work else None,
            "world": figures.world,
            "effort": EFFORTS[one.effort].name,
            "steps": figures.steps,
            "runs": figures.runs,
            "command": self.room.command(asked, figures),
        }

    def as_json(self) -> dict:
        """The object of schema plan/1."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "question": self.question.model_dump(mode="json", by_alias=True),
            "met": self.met,
            "configurations": self.configurations,
            "best": [self.row(one) for one in self.best],
            "front": [self.row(one) for one in self.front],
            "by_kind": [self.row(one) for one in self.by_kind],
            "rows": [self.row(one) for one in self.simulated],
            "rejected": dict(self.rejected.most_common()),
            "sensitivity": [one.as_json() for one in self.values],
            "whole": self.whole,
            "notes": notes(self),
            "wall_s": self.wall_s,
        }

    def to_json(self) -> str:
        """`as_json`, on one line."""
        return json.dumps(self.as_json(), allow_nan=False)

    def __repr__(self) -> str:
        from sim.plans import show

        best = self.best[0].configuration
        return f"<Plan: {show.headline(self)} {self.room.told(best)}, {best.protocol}>"

    def to_frame(self) -> pd.DataFrame:
        """A flat row for each configuration that was simulated."""
        import pandas as pd

        return pd.DataFrame([flat(self.row(one)) for one in self.simulated])


def notes(plan: Plan) -> list[str]:
    """Caveats for the reader."""
    found = [CUT] if not plan.whole else []
    asked = {(one.configuration.protocol, one.configuration.settings) for one in plan.best}
    if stale := sorted({name for name, settings in asked if plan.room.protocol(name, settings).stale}):
        found.append(
            f"gradients are stale with {', '.join(stale)}: a sample may be worth less than with a synchronous protocol"
        )
    if why := plan.best[0].figures and plan.best[0].figures.why_none:
        found.append(f"no intervals and no probabilities: {why}; {workload_text.calibrated(plan.room.workload)}")
    found += _extrapolated(plan)
    if plan.question.until and by_name(plan.question.until):
        found.append(
            "steps are of published runs, each with its own learning rate; runs of yours, as --until steps.csv, say it of your recipe"
        )
    first = plan.room.scenario(plan.best[0].configuration)
    found += [f"the first: {line}" for line in (*gpu_memory.note(first), *_of_reading(plan.best[0], first))]
    return found + plan.room.notes + plan.room.prices.notes


def _of_reading(best: Candidate, job: Scenario) -> list[str]:
    """Where reading data binds; or what a host has to read, where nothing says how fast it does."""
    if job.workload.reading or job.has_measured_costs or not best.figures:
        return reading.notes(job)
    each = best.figures.mid / len(set(job.computing_hosts))
    return [
        f"a host has to read {number(each)} samples/s, which is taken as free: a model's file says how fast it is (reading)"
    ]


def _extrapolated(plan: Plan) -> list[str]:
    """Whether the first's global batch is beyond those whose steps are known."""
    work = plan.best[0].work
    if not (work and work.beyond):
        return []
    assert plan.room.until
    known = plan.room.until.batches
    ends = " to ".join(f"{end:,.0f}" for end in sorted({known[0], known[-1]}))
    mid, low, high = map(number, work.steps)
    said = f"{in_words(str(plan.question.until))} is known of batches of {ends}, and the first has {work.batch:,}"
    return [f"{said}: its {mid} steps are extrapolated ({low} to {high}, nine times in ten)"]


def flat(row: dict) -> dict:
    """A row without objects in it."""
    speeds = row["samples_per_s"]
    found = {name: value for name, value in row.items() if name not in ("samples_per_s", "settings", "work")}
    found["settings"] = " ".join(row["settings"])
    several = {"samples_per_s": speeds}
    if work := row["work"]:
        found |= {name: work[name] for name in ("global_batch", "doublings_beyond")}
        several = {"steps_to_target": work["steps"]} | several
    ends = {"mid": "", "low": "_low", "high": "_high"}
    return found | {f"{name}{end}": of[key] for name, of in several.items() for key, end in ends.items()}


def answer(question: Question, pool: Pool, within_s: float = 60.0) -> Plan:
    """The plan that answers a question.

    Args:
        pool: of processes that simulate, see sim.sweeps.pools.
        within_s: seconds after which the plan is made of what is known then.

    Raises:
        WrongSetting: a name that there is not, a host without a price, or no configuration that can be.
        RunFailed: no configuration could be simulated.
    """
    start_s = time.monotonic()
    room = Room(question)
    with Progress("planning"):
        candidates, thrown = search.screened(room, start_s + SCREENED_UNTIL * within_s)
        of_hosts = {(one.configuration.host, one.configuration.subset): one.configuration for one in candidates}
        measured_steps.check_one_kind(map(room.scenario, of_hosts.values()))
        if not candidates:
            why = "; ".join(f"{count}: {reason}" for reason, count in thrown.most_common(3))
            raise RunFailed(f"none of {len(room.all):,} configurations can be ({why})")
        with pool as opened:
            simulating = Simulating(room, opened, within_s, start_s + SEARCH_UNTIL * within_s, candidates)
            best, met = _best(question, candidates, simulating)
            whole = simulating.left_s > 0 and not thrown[search.NO_TIME]
            simulating.until_s = start_s + FRONT_UNTIL * within_s
            front = search.front(candidates, _axes, simulating, FRONT_EFFORT)
            by_kind = search.of_each_kind(candidates, _hoped, _known, simulating)
            by_kind = sorted(by_kind, key=_known) if len(by_kind) > 1 else []
            simulated = [one for one in candidates if one.figures]
            best, met = _ranked(question.keep, simulated, best, met)
    if not best:
        raise RunFailed(_nothing(candidates, within_s))
    rejected = thrown + search.thrown_out(candidates, best if met else [])
    numbers = sensitivity.parameters([best[0], *(one for one in simulated if one is not best[0])], room)
    values = sensitivity.values(numbers, best[0], simulated)
    if by_kind and all(one.figures and one.figures.why_none is None for one in by_kind):
        for one, share in zip(by_kind, sensitivity.chances(numbers, by_kind), strict=True):
            one.p_best = share
    whole = whole and not simulating.cut
    wall_s = time.monotonic() - start_s
    return Plan(question, room, best, met, front, simulated, rejected, values, by_kind, whole, wall_s)


def _best(question: Question, candidates: list[Candidate], simulating: Simulating) -> tuple[list[Candidate], bool]:
    """Those that meet the target, or else those that come nearest to it; and whether they meet it."""
    hopeful, key, ends_s = attrgetter("may_meet"), attrgetter("key"), simulating.until_s
    simulating.until_s -= EASILY_SHARE * simulating.left_s
    found = search.best_first(candidates, key, question.keep, simulating, hopeful)
    over, simulating.until_s = not simulating.left_s, ends_s
    if over and not found:  # among the cheapest, which may all miss it by little
        simulating.cut = True
        easily = [one for one in candidates if one.least_likely >= EASILY * one.needed and not one.problem]
        found = search.best_first(easily, key, question.keep, simulating, hopeful)
    elif over:  # it goes on where it was
        found = search.best_first(candidates, key, question.keep, simulating, hopeful)
    simulated = [one for one in candidates if one.figures]
    if found or any(one.meets for one in simulated):
        return found, True
    able = [one for one in candidates if not one.problem]
    nearest = search.best_first(able, _lacking, min(AS_GOOD, question.keep), simulating)
    return nearest or sorted(simulated, key=_lacking)[:AS_GOOD], False


def _lacking(one: Candidate) -> tuple[float, ...]:
    """Its place among those that miss the target, the nearest first."""
    speed = one.samples_per_s * EFFORTS[one.effort].optimism
    return one.needed / speed if speed else math.inf, one.usd_per_hour


def _hoped(one: Candidate) -> tuple[float, ...]:
    """Its place, as good as more simulation may find it: those that may meet the target first."""
    return (0, *one.key) if one.may_meet else (1, *_lacking(one))


def _known(one: Candidate) -> tuple[float, ...]:
    """Its place by what was simulated, in the one order that lists, front and page have: those that meet the target first."""
    return (0, *one.key_at(one.samples_per_s)) if one.meets else (1, *_lacking(one))


def _ranked(keep: int, simulated: list[Candidate], best: list[Candidate], met: bool) -> tuple[list[Candidate], bool]:
    """The best in the order of `_known`, also where time was over before the search was whole."""
    meeting = sorted((one for one in simulated if one.meets), key=_known)
    return (meeting[:keep], True) if meeting else (best, met)


def _axes(one: Candidate) -> tuple[float, float]:
    """The axes of the front: the cost and the time of a configuration, as far as known."""
    speed = one.samples_per_s
    return (one.cost_at(speed), (one.samples or 1) / speed) if speed else (math.inf, math.inf)


def _nothing(candidates: list[Candidate], within_s: float) -> str:
    """Why there is no answer at all."""
    problems = Counter(one.problem for one in candidates if one.problem)
    if problems:
        (reason, count), *_ = problems.most_common(1)
        return f"no configuration could be simulated; of {count} because: {reason}"
    return f"{within_s:g} s are too few to simulate any configuration; --within SECONDS gives more"
