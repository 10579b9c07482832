"""The report of `sim.run`: made from its JSON answer and the steps that it simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim.answers import summary
from sim.answers.outcome import cut_short_in
from sim.answers.summary import number, seconds
from sim.base.tables import flattened
from sim.reports import figures
from sim.reports.page import page
from sim.reports.parts import Cell, Code, Part, Section, Table, Text
from sim.studies.what_if import COST, USD, payback_said, percent

if TYPE_CHECKING:
    from sim.answers.outcome import Outcome
    from sim.answers.result import Result

NOT_SETTINGS = ("digest", "law", "model")  # which are long, and in the data


def answer_page(
    answer: dict,
    found: Result,
    command: str,
    compared: dict[str, dict] | None = None,
) -> str:
    """The HTML of one answer.

    Args:
        answer: schema answer/1, with what questions add to it.
        found: the result that it sums up.
        command: that prints it.
        compared: answers of the same job without what costs throughput, by how that cost is called.
    """
    sections = [Section("The answer", list(_answer(answer, found, compared or {})))]
    sections.append(Section("Basis", list(_basis(answer["basis"]))))
    if "why" in answer:
        sections.append(Section("Why", list(_why(answer["why"]))))
    if "what_if" in answer:
        sections.append(Section("What if", list(_what_if(answer))))
    sections.append(Section("How steps and runs vary", list(_varies(answer, found.outcome))))
    sections.append(Section("Settings", [Table(("setting", "value"), list(_settings(answer)), "settings", (0, 1))]))
    version = f"anytime-trainsim {answer['version']}; the random seed is {answer['scenario']['seed']}."
    sections.append(Section("Reproduce it", [Code(command), Text(version)]))
    return page(title(answer), sections, answer)


def title(answer: dict) -> str:
    """The question in a line."""
    asked = answer["scenario"]
    settings = ", ".join(f"{name}={value}" for name, value in asked["settings"].items())
    protocol = f"{asked['protocol']} ({settings})" if settings else asked["protocol"]
    return f"{protocol}, {asked['workload']}, {asked['workers']} workers, batch {asked['batch']}"


def _answer(answer: dict, found: Result, compared: dict[str, dict]) -> Iterator[Part]:
    (_, throughput), *further = summary.lines(answer, compared, found.scenario.servers)
    yield Text(throughput, "answer")
    cut = list(_cut_short(answer))
    yield from (Text(line, "note") for line in cut)
    yield from (Text(f"{label}: {said}", "basis") for label, said in further)
    yield from (Text(note, "note") for note in answer["notes"] if note not in cut)
    yield Table(("throughput", "samples/s"), list(_throughputs(answer)), "throughput")


def _cut_short(answer: dict) -> Iterator[str]:
    """A line for whatever there was less time for than was asked: the job, and what is compared with it."""
    yield from cut_short_in(answer)
    for one in answer.get("what_if", ()):
        yield from (f"what if {one['change']}: {line}" for line in cut_short_in(one["answer"]))
    rows = list(_compared(answer["why"])) if "why" in answer else []
    fewer = sum(one["pairs"] < answer["done"]["runs"] for one in rows)
    if fewer:
        yield f"{fewer} of {len(rows)} rows of why are of fewer runs than the answer, because time ran out"


def _throughputs(answer: dict) -> Iterator[tuple[str, Cell]]:
    yield "expected", _n(answer["samples_per_s"])
    if pair := answer["interval"]["samples_per_s"]:
        yield from (("one more run, at least", _n(pair[0])), ("one more run, at most", _n(pair[1])))
    if lost := answer.get("failures"):
        yield "with failures", _n(lost["goodput"] * answer["samples_per_s"])


def _basis(numbers: list[dict]) -> Iterator[Part]:
    yield Text("The numbers that the answer rests on, and what each alone does to the throughput, nine times in ten.")
    ends = ("low", "high")
    rows = [
        (
            one["number"],
            one["value"],
            *(_ratio(one["throughput_ratio"][end]) for end in ends),
            Cell(f"{one['share_of_variance']:.0%}", one["share_of_variance"]),
            one["source"],
            one["measured_by"],
        )
        for one in numbers
    ]
    headings = "number", "value", "at least", "at most", "of the variance", "source", "measured by"
    yield Table(headings, rows, "basis", (0, 1, 5, 6))


def _why(why: dict) -> Iterator[Part]:
    critical = why["critical"]
    yield Text(f"The largest gain: {critical}." if critical else "No single cause matters.")
    rows = list(_compared(why))
    if rows:
        yield from _ratios("why", rows, [_s(one["step_s"]) for one in rows])
    yield Text("Causes overlap, so that gains do not add up. A change is advised only if it was simulated and helped.")


def _compared(why: dict) -> Iterator[dict]:
    """All jobs beside the base, as rows are called."""
    yield from why["causes"]
    if doubled := why["twice_the_workers"]:
        yield _called(doubled, "twice:")
    yield from (_called(one, "try") for one in why["advice"])


def _called(one: dict, before: str) -> dict:
    return one | {"change": f"{before} {one['change']}"}


def _what_if(answer: dict) -> Iterator[Part]:
    rows = answer["what_if"]
    answers = [answer, *(one["answer"] for one in rows)]
    further = {"samples/s": "samples_per_s"} | ({COST: USD} if any(one.get(USD) for one in answers) else {})
    steps = [_s(one["step_s"]["mean"]) for one in answers]
    first, *speeds = [tuple(_n(one.get(key)) for key in further.values()) for one in answers]
    base = ("as it is", steps[0], "", "", "", *first)
    yield from _ratios("what if", rows, steps[1:], speeds, [base], tuple(further))
    yield from (Text(payback_said(one["change"], one["payback"])) for one in rows if "payback" in one)


def _ratios(
    what: str,
    rows: list[dict],
    steps: list[Cell],
    speeds: Sequence = (),
    first: Sequence = (),
    further: Sequence[str] = (),
) -> Iterator[Part]:
    """Changes beside the base, run by run: a figure and a table; `speeds` has the columns `further`, `first` are rows on top."""
    key = what.replace(" ", "_")
    ratios = [one["throughput_ratio"] for one in rows]
    pairs = [one["interval"]["throughput_ratio"] for one in rows]
    names = [one["change"] for one in rows]
    caption = "Throughput over that of the job as it is. Bars: nine in ten pairs of runs with the same random numbers."
    yield figures.intervals(names, ratios, pairs, "times the throughput", caption, f"{key}_figure", reference=1.0)
    headings = [what, "mean step", "throughput", "at least", "at most", *further]
    table = [
        (name, step, _ratio(ratio), *(map(_ratio, pair) if pair else ("", "")), *speed)
        for name, step, ratio, pair, speed in zip(names, steps, ratios, pairs, speeds or [()] * len(rows), strict=True)
    ]
    yield Table(headings, [*first, *table], key)


def _varies(answer: dict, outcome: Outcome) -> Iterator[Part]:
    step_ms = {name: value * 1e3 for name, value in answer["step_s"].items()}
    runs, steps = outcome.step_s.shape
    said = f"All {runs * steps:,} measured steps of {runs} runs."
    yield figures.histogram(outcome.step_s * 1e3, step_ms, "step time, milliseconds", said, "step_times")
    if np.ptp(outcome.samples):
        mean = {"mean": answer["samples_per_step"]["mean"]}
        yield figures.histogram(outcome.samples, mean, "samples a step", said, "samples")


def _settings(answer: dict) -> Iterator[tuple[str, str]]:
    yield from flattened({k: v for k, v in answer["scenario"].items() if k not in NOT_SETTINGS})
    yield "world", answer["world"]
    for what in ("asked", "done"):
        yield what, ", ".join(f"{value} {name}" for name, value in answer[what].items())
    yield "simulated in", seconds(answer["wall_s"])


def _n(value: float | None) -> Cell:
    return Cell(number(value), value)


def _s(value: float) -> Cell:
    return Cell(seconds(value), value)


def _ratio(value: float) -> Cell:
    return Cell(percent(value), value)
