"""Answers of training in simulated time, for programs and for people: a job, and changes of it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from real.learning.learned import Learned, in_a_line, to
from sim.answers.summary import borne, digits, known, number, plus_minus, seconds
from sim.base.printing import table
from sim.plot import LEARNING
from sim.recording import panels
from sim.recording.panels import about
from sim.studies.what_if import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

Compared = tuple[str, Learned]
HEADINGS = ("what if", "time", "9 in 10 runs", "change", "9 in 10 pairs")


def as_json(base: Learned, compared: Sequence[Compared]) -> dict:
    """The object that `real.learn --json` prints; what is not known is None."""
    changes = []
    for change, one in compared:
        slower = one.slower_than(base)
        ratio = slower._asdict() if slower else None
        changes.append({"change": change, "time_ratio": ratio, "answer": one.answer()})
    return known(base.answer() | ({"what_if": changes} if changes else {}))


def frame(base: Learned, compared: Sequence[Compared]) -> pd.DataFrame:
    """The rows of Learned.to_frame, and the change that they are of in a column `change`, empty for the job itself."""
    import pandas as pd

    return pd.concat(
        [one.to_frame().assign(change=change) for change, one in (("", base), *compared)], ignore_index=True
    )


def steps_table(base: Learned, compared: Sequence[Compared]) -> str:
    """Batch (samples of an update, of all workers) and steps (updates until the target) of each run.

    sim.plan --until reads it. Runs that did not reach the target are left out.
    """
    lines = ["batch,steps"]
    for one in (base, *(other for _, other in compared)):
        reached = [steps for steps, time_s in zip(one.updates, one.times_s, strict=True) if isfinite(time_s)]
        lines += [f"{one.scenario.global_batch},{steps}" for steps in reached]
    return "\n".join(lines) + "\n"


def show(base: Learned, compared: Sequence[Compared]) -> None:
    """Print them."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.print(in_a_line(base))
    for name, said in lines(base):
        console.print(f"  {name:16}{said}")
    if compared:
        every = (("as it is", base), *compared)
        console.print(table(HEADINGS, (cells(change, one, None if one is base else base) for change, one in every)))
    for note in base.notes:
        console.print(f"note: {note}")
    for change, one in compared:
        for note in one.notes:
            if note not in base.notes:
                console.print(f"note: {change}: {note}")


def plot(path: str, base: Learned, compared: Sequence[Compared], asked: str) -> None:
    """Draw the curves of all runs, in all panels; `asked` is the command line."""
    jobs = {in_words(base): base.curves} | {change: one.curves for change, one in compared}
    panels.draw_curves(jobs, LEARNING, path, about(asked, [base.scenario.seed]))


def in_words(found: Learned) -> str:
    """The job, for a legend."""
    return f"{found.scenario.protocol.name}, {found.scenario.workload.name}, {found.scenario.workers} workers"


def lines(found: Learned) -> Iterator[tuple[str, str]]:
    """Further figures of an answer: a name, and text."""
    training = found.training
    rates = f"learning rate {training.learning_rate:g}, weight decay {training.weight_decay:g}"
    yield "optimiser", f"{training.optimiser}, {rates}"
    if found.run_to_run:
        yield "run to run", plus_minus(found.run_to_run)
        yield "not known", to(found.not_known)
    few, many = min(found.updates), max(found.updates)
    yield "updates", f"{few:,}" if few == many else f"{few:,} to {many:,}"
    few, many = (pick(int(one.samples[-1]) for one in found.curves) for pick in (min, max))
    yield "samples", f"{few:,}" if few == many else f"{few:,} to {many:,}"
    yield "best accuracy", f"{found.best_accuracy:.3f}"
    yield "throughput", f"{number(found.speed.samples_per_s, digits(found.speed.answer()))} samples/s"


def reached(time_s: float | None, figures: int = 4) -> str:
    """The seconds to the target, as text."""
    return "not reached" if time_s is None or not isfinite(time_s) else seconds(time_s, figures)


def cells(change: str, one: Learned, base: Learned | None) -> list[str]:
    """The texts of a row, below HEADINGS."""
    slower = one.slower_than(base) if base is not None else None
    return [
        change,
        "" if one.target is None else reached(one.time_s, borne(one.interval)),
        to(one.interval),
        "" if slower is None else percent(slower.value),
        "" if slower is None or slower.interval is None else " to ".join(map(percent, slower.interval)),
    ]
