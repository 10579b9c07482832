"""Are a plan's ten best those of simulating every configuration of a grid?

Both have the same configurations and random numbers: first the plan as by `sim.plan`, and then every configuration with the whole
effort. Where they differ, the two configurations are simulated side by side. It is a tie if the interval of their paired runs covers
equal prices. Nothing is measured.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.kit import pages
from sim.base.progress import Progress
from sim.plans import plan, question, search
from sim.plans.candidates import EFFORTS, WHOLE, Candidate
from sim.plans.configurations import Configuration, Room
from sim.plans.simulating import Simulating
from sim.sweeps import pools

if TYPE_CHECKING:
    from rich.table import Table

    from sim.plans.question import Question

GRID: dict[str, Any] = {
    "workload": "vgg16",
    "hosts": ["p3.2xlarge", "p3.8xlarge", "g4dn.xlarge", "g5.xlarge", "g5.12xlarge"],
    "counts": [1, 2, 4, 8, 16],
    "batches": [16, 32, 64, 128, 256],
    "protocols": ["allreduce", "fmb", "ps-sync"],
    "servers": [1, 2],
}
DEMO: dict[str, Any] = GRID | {
    "workload": "toy_fc",
    "hosts": GRID["hosts"][:2],
    "counts": [1, 2],
    "batches": [256, 512],
}
TARGETS: dict[str, dict[str, Any]] = {
    "200 samples/s": {"samples_per_s": 200},
    "20 M samples in 24 h": {"samples": 2 * 10**7, "deadline": "24 h"},
    "20 M samples for 400 USD": {"samples": 2 * 10**7, "budget": 400},
}
WITHIN_S, AT_LENGTH_S = 60.0, 1e5


@dataclass(frozen=True)
class Found:
    """The best of a target, by the plan and by simulating everything.

    Args:
        same: how many configurations are among both.
        ties: further places, of two configurations between which paired runs do not decide.
        worse: further places, by how much the plan's price is above the other, as a share.
        unmet: further places with a configuration that does not meet the target once it is simulated whole: a plan that was cut short
            may have it.
        empty: further places, for which the plan has no configuration.
        planned_s: seconds that the plan took.
    """

    target: str
    best: int
    same: int
    ties: int
    worse: list[float]
    unmet: int
    empty: int
    planned_s: float

    @property
    def dearer(self) -> str:
        """By how much the plan is worse at most, and where it has nothing that meets the target."""
        counts = (self.unmet, "that miss the target"), (self.empty, "not found")
        said = [f"{max(self.worse):.1%}"] if self.worse else []
        return ", ".join(said + [f"{count} {what}" for count, what in counts if count]) or "-"


def run(out: Path, seed: int = 0, demo: bool = False) -> None:
    """Print a line for each target; `demo` is a grid of 32, of a small model."""
    grid = (DEMO if demo else GRID) | {"seed": seed}
    with Progress("simulating everything"):
        start_s = time.monotonic()
        every = simulated(asked(grid, next(iter(TARGETS.values()))))
        took_s = time.monotonic() - start_s
    found = []
    for name, target in TARGETS.items():
        found.append(compared(name, asked(grid, target), every))
    pages.show(table(found, len(every)))
    looked = f"every configuration, with {EFFORTS[WHOLE].steps} steps and {EFFORTS[WHOLE].runs} runs: {took_s:,.0f} s"
    pages.show(f"{len(grid['hosts'])} kinds of hosts, {grid['workload']}; {looked}")


def asked(grid: dict[str, Any], target: dict[str, Any]) -> Question:
    """The question of a target."""
    return question.read(None, grid | target)


def simulated(asked: Question) -> list[Candidate]:
    """Every configuration that can be, with the whole effort."""
    room = Room(asked)
    found, _ = search.screened(room)
    with pools.of_size(None) as pool:
        Simulating(room, pool, AT_LENGTH_S, float("inf")).simulate(found, WHOLE)
    return [one for one in found if one.figures]


def compared(name: str, asked: Question, every: list[Candidate]) -> Found:
    """The plan's best beside the best of all."""
    start_s = time.monotonic()
    planned = plan.answer(asked, pools.of_size(None), WITHIN_S)
    took_s = time.monotonic() - start_s
    meeting = [one for one in every if one.chance(asked) >= asked.probability]
    wanted = sorted(meeting, key=lambda one: one.key(asked))[: asked.keep]
    ours = [one.configuration for one in planned.best] if planned.met else []
    theirs = [one.configuration for one in wanted]
    prices = {one.configuration: one.key(asked)[0] for one in every}
    meets = {one.configuration for one in meeting}
    left = [one for one in ours if one not in theirs]
    missed = [one for one in theirs if one not in ours]
    unmet = [one for one in left if one not in meets]
    pairs = list(zip([one for one in left if one in meets], missed, strict=False))
    ties = [pair for pair in pairs if prices[pair[0]] == prices[pair[1]] or is_tie(planned.room, *pair)]
    worse = [prices[one] / prices[other] - 1 for one, other in pairs if (one, other) not in ties]
    empty = max(0, len(missed) - len(pairs) - len(unmet))
    return Found(name, len(theirs), len(theirs) - len(missed), len(ties), worse, len(unmet), empty, took_s)


def is_tie(room: Room, one: Configuration, other: Configuration) -> bool:
    """Whether paired runs of two configurations leave open which of them is the cheaper for a sample."""
    from sim.simulation import simulate
    from sim.studies import what_if

    whole = EFFORTS[WHOLE]
    scenarios = [replace(room.scenario(each), steps=whole.steps, warmup=whole.warmup) for each in (one, other)]
    first, second = (simulate(each, replications=whole.runs) for each in scenarios)
    pair = what_if.compare("", first, second)
    low, high = pair.interval or (pair.ratio, pair.ratio)
    return low <= other.usd_per_hour / one.usd_per_hour <= high


def table(found: list[Found], configurations: int) -> Table:
    """A line for each target."""
    title = f"The best of {configurations} configurations, planned and by simulating all"
    made = pages.table(title, "target", "best", "the same", "ties", "worse", "dearer by at most", "plan, s")
    for one in found:
        counts = (one.best, one.same, one.ties, len(one.worse) + one.unmet + one.empty)
        made.add_row(one.target, *map(str, counts), one.dearer, f"{one.planned_s:.0f}")
    return made
