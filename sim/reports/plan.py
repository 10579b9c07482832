"""The page of a plan: what sim.plan prints, and each configuration that was simulated by its cost and its throughput."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim.base.tables import flattened
from sim.plans import show
from sim.plans.plan import notes
from sim.reports.figures import scatter
from sim.reports.page import page
from sim.reports.parts import Code, Figure, Part, Section, Table, Text

if TYPE_CHECKING:
    from sim.plans.candidates import Candidate
    from sim.plans.plan import Plan

CAPTION = "Each point is a configuration that was simulated; bars hold nine in ten runs. Nothing is both cheaper and faster than the front."


def plan_page(plan: Plan) -> str:
    """The HTML of a plan."""
    answer, asked = plan.as_json(), plan.question
    sections = [Section("The answer", list(_answer(plan))), Section("Cost and throughput", [_costs(plan)])]
    sections.append(Section("The front of cost and time", [_table(plan, plan.front, "front")]))
    if plan.by_number:
        named = _table(plan, plan.by_number, "by_number")
        sections.append(Section("The fastest of each number of hosts", [named]))
    sections.append(Section("What was thrown out, and what to measure", [Code("\n".join(show.further(plan)))]))
    settings = Table(("setting", "value"), list(flattened(answer["question"])), "question", (0, 1))
    sections.append(Section("The question", [settings]))
    return page(f"Plan: {asked.workload}, {' and '.join(show.targets(plan))}", sections, answer)


def _answer(plan: Plan) -> Iterator[Part]:
    yield Text(show.headline(plan), "answer")
    yield from (Text(note, "note") for note in notes(plan))
    for title, found in show.answers(plan):
        if title:
            yield Text(title)
        yield _table(plan, found, "best" if title or not plan.by_kind else "by_kind")
    yield Text("The command of the first:")
    yield Code(plan.row(plan.best[0])["command"])


def _table(plan: Plan, found: list[Candidate], name: str) -> Table:
    headings, rows = show.table([plan.row(one) for one in found], plan)
    return Table(headings, rows, name, [place for place, one in enumerate(headings) if one in show.WORDS])


def _costs(plan: Plan) -> Figure:
    best, front = ({id(one) for one in some} for some in (plan.best, plan.front))
    groups: dict[str, list[dict]] = {"the best": [], "the front": [], "others": []}
    for one in plan.simulated:
        name = "the best" if id(one) in best else "the front" if id(one) in front else "others"
        groups[name].append(plan.row(one))
    cost, unit = ("usd", "") if plan.question.has_end else ("usd_per_hour", " an hour")
    money = plan.question.money
    points = {name: _points(rows, cost, money.per_usd) for name, rows in groups.items() if rows}
    return scatter(points, (f"{money.name}{unit}", "samples/s"), CAPTION, "costs", diagonal=False)


def _points(rows: list[dict], cost: str, per_usd: float) -> dict[str, list]:
    speeds = [row["samples_per_s"] for row in rows]
    return {
        "x": [row[cost] * per_usd for row in rows],
        "y": [one["mid"] for one in speeds],
        "pairs": [None if one["low"] is None else (one["low"], one["high"]) for one in speeds],
        "text": [f"{row['hosts_told']}, {row['protocol']}, batch {row['batch']}" for row in rows],
    }
