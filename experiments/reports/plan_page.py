"""The page of a plan: sliders for a need, a budget and a probability; the cheapest, the front and a table follow from its rows.

It reads the JSON of a plan alone, schema plan/1. Each of its rows has protocol, host (a kind), hosts, workers, servers, batch,
samples_per_s (low, middle and high), usd_per_hour, hours and usd (null unless the training has an end), p_target, limits and command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

from sim.answers.summary import number
from sim.base.errors import WrongSetting
from sim.reports import Cell, Code, Section, Table, Text, page
from sim.reports.answer import flattened
from sim.reports.parts import Part, Script

SCHEMA = "plan/1"
COLUMNS = {
    "protocol": "protocol",
    "host": "host",
    "hosts": "hosts",
    "workers": "workers",
    "servers": "servers",
    "batch": "batch",
    "usd_per_hour": "USD/h",
    "hours": "hours",
    "usd": "USD",
    "p_target": "P(target)",
    "limits": "limited by",
}
WORDS = ("protocol", "host", "limits")
SPEEDS = ("at least", "samples/s", "at most")


def plan_page(plan: dict, asked: dict[str, float] | None = None) -> str:
    """The HTML of a plan.

    Args:
        plan: its JSON.
        asked: where the sliders stand at first: need (samples/s, or hours where the training has an end), budget (USD an hour, or
            USD), probability; whatever is missing starts where most is allowed.

    Raises:
        WrongSetting: another schema, or a plan without rows.
    """
    if plan.get("schema") != SCHEMA:
        raise WrongSetting("plan: schema", plan.get("schema"), SCHEMA)
    if not plan["rows"]:
        raise WrongSetting("plan: rows", "none", "one row at least")
    question = plan["question"]
    title = question if isinstance(question, str) else ", ".join(f"{k} {v}" for k, v in flattened(question))
    sections = [
        Section("Choose", [_explorer(asked or {})]),
        Section("As it was asked", list(_best(plan["best"]))),
        Section("The front of cost and time", [_table(plan["front"], "front_table")]),
        Section("What was thrown out", list(_rejected(plan["rejected"]))),
        Section("What would change the answer most", list(_sensitivity(plan["sensitivity"]))),
    ]
    if plan.get("command"):
        sections.append(Section("Reproduce it", [Code(plan["command"])]))
    return page(f"Plan: {title}", sections, plan)


def _explorer(asked: dict[str, float]) -> Script:
    said = " ".join(f'data-{name}="{float(value)!r}"' for name, value in asked.items())
    here = files("experiments.reports")
    html = f'<div id="asked" {said}></div>\n{(here / "plan.html").read_text()}'
    return Script(html, (here / "plan.js").read_text())


def _best(rows: Sequence[dict]) -> Iterator[Part]:
    if not rows:
        yield Text("No configuration meets it.")
        return
    yield _table(rows, "best")
    yield Text("The command of the first:")
    yield Code(rows[0]["command"])


def _table(rows: Sequence[dict], name: str) -> Table:
    known = [key for key in COLUMNS if any(row.get(key) is not None for row in rows)]
    at = known.index("batch") + 1 if "batch" in known else len(known)
    headings = [*(COLUMNS[key] for key in known[:at]), *SPEEDS, *(COLUMNS[key] for key in known[at:])]
    cells = [
        [
            *(_cell(row.get(key)) for key in known[:at]),
            *map(_cell, row["samples_per_s"]),
            *(_cell(row.get(key)) for key in known[at:]),
        ]
        for row in rows
    ]
    return Table(headings, cells, name, [headings.index(COLUMNS[key]) for key in WORDS if key in known])


def _cell(value: object) -> str | Cell:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Cell(number(value), value)
    return "" if value is None else str(value)


def _rejected(rejected: dict[str, int]) -> Iterator[Part]:
    if not rejected:
        yield Text("Nothing.")
        return
    yield Table(("why", "configurations"), [(why, _cell(count)) for why, count in rejected.items()], "rejected")


def _sensitivity(found: Sequence[dict]) -> Iterator[Part]:
    if not found:
        yield Text("Not asked.")
        return
    names = list(dict.fromkeys(name for one in found for name in one))
    words = [i for i, name in enumerate(names) if any(isinstance(one.get(name), str) for one in found)]
    rows = [[_cell(one.get(name)) for name in names] for one in found]
    yield Table([name.replace("_", " ") for name in names], rows, "sensitivity", words)
