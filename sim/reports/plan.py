"""The page of a plan: sliders for a need, a budget and a probability; the cheapest, the front and a table follow from its rows.

It is made from the JSON of a plan alone, schema plan/1. Of each of its rows it reads protocol, settings, hosts_told, offer, hosts,
workers, servers, batch, samples_per_s (low, mid and high), usd_per_hour, hours and usd (null unless the training has an end), p_target,
work (null unless steps to a target are of a table; of it the steps: low, mid and high), limits and command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

from sim.answers.summary import number
from sim.base.errors import WrongSetting
from sim.base.flat import flattened
from sim.base.home import installed
from sim.base.progress import duration
from sim.plans.until import in_words
from sim.reports.page import page
from sim.reports.parts import Cell, Code, Part, Script, Section, Table, Text

SCHEMA = "plan/1"
HOUR_S = 3600.0
MEASURED_BY = "measured_by"
COLUMNS = {
    "protocol": "protocol",
    "hosts": "hosts",
    "workers": "workers",
    "servers": "servers",
    "batch": "batch",
    "work.steps.mid": "steps",
    "samples_per_s.low": "at least",
    "samples_per_s.mid": "samples/s",
    "samples_per_s.high": "at most",
    "usd_per_hour": "USD/h",
    "hours": "hours",
    "usd": "USD",
    "p_target": "P(target)",
    "limits": "limited by",
}
WORDS = ("protocol", "hosts", "limits")


def plan_page(plan: dict) -> str:
    """The HTML of a plan.

    Args:
        plan: its JSON. Where its question has a target, a deadline or a budget, the sliders stand there at first.

    Raises:
        WrongSetting: the schema is another one, or the plan has no rows.
    """
    if plan.get("schema") != SCHEMA:
        raise WrongSetting("plan: schema", plan.get("schema"), SCHEMA)
    if not plan["rows"]:
        raise WrongSetting("plan: rows", None, "at least one row")
    notes = [Text(note, "note") for note in plan.get("notes", ())]
    sections = [
        Section(
            "Choose",
            [*notes, *_basis(plan["sensitivity"]), _explorer(standing(plan["question"]), cheapest(plan["question"]))],
        ),
        Section("As it was asked", list(_best(plan["best"]))),
        Section("The front of cost and time", [_table(plan["front"], "front_table")]),
        *(
            [Section("The fastest of each number of hosts", [_table(plan["by_number"], "by_number")])]
            if plan["by_number"]
            else []
        ),
        Section("What was thrown out", list(_rejected(plan["rejected"]))),
        Section("What would change the answer most", list(_sensitivity(plan["sensitivity"]))),
        Section("The question", [Table(("setting", "value"), list(flattened(plan["question"])), "question", (0, 1))]),
    ]
    return page(title(plan["question"]), sections, plan)


def title(question: dict) -> str:
    """The question in a line."""
    asked = {
        "samples_per_s": "at {} samples/s",
        "epochs": "for {} epochs",
        "samples": "for {} samples",
        "until": "until {}",
        "budget": "for at most {} USD",
        "usd_per_hour": "for at most {} USD/h",
    }
    question = question | ({"until": in_words(question["until"])} if question.get("until") else {})
    said = [words.format(_said(question[name])) for name, words in asked.items() if question.get(name) is not None]
    if deadline := question.get("deadline"):
        said.append(f"within {duration(deadline)}")
    return " ".join(["Plan:", str(question["workload"]), *said])


def _said(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)


def standing(question: dict) -> dict[str, float]:
    """The positions of the sliders that are asked for: need (hours, or samples/s), budget (USD, or USD an hour) and probability."""
    deadline, timed = question.get("deadline"), any(question.get(name) for name in ("samples", "epochs", "until"))
    asked = {
        "need": deadline / HOUR_S if deadline else question.get("samples_per_s"),
        "budget": question.get("budget") or (None if timed else question.get("usd_per_hour")),
        "probability": question.get("probability"),
    }
    return {name: value for name, value in asked.items() if value}


def cheapest(question: dict) -> bool:
    """Whether the cheapest is wanted, as `Question.cheapest` has it; else the fastest."""
    return bool(question.get("samples_per_s") or question.get("deadline"))


def _explorer(asked: dict[str, float], cheapest: bool) -> Script:
    said = " ".join(f'data-{name}="{float(value)!r}"' for name, value in asked.items())
    said += f' data-kind="{"cheapest" if cheapest else "fastest"}"'
    here = files(installed("sim.reports")) / "templates"
    html = f'<div id="asked" {said}></div>\n{(here / "plan.html").read_text(encoding="utf-8")}'
    return Script(html, (here / "plan.js").read_text(encoding="utf-8"))


def _best(rows: Sequence[dict]) -> Iterator[Part]:
    if not rows:
        yield Text("No configuration meets it.")
        return
    yield _table(rows, "best")
    yield Text("The command of the first:")
    yield Code(rows[0]["command"])


def _table(rows: Sequence[dict], name: str) -> Table:
    flat = [_flat(row) for row in rows]
    known = [key for key in COLUMNS if any(row.get(key) is not None for row in flat)]
    cells = [[_cell(row.get(key)) for key in known] for row in flat]
    return Table([COLUMNS[key] for key in known], cells, name, [known.index(key) for key in WORDS if key in known])


def _flat(row: dict) -> dict:
    speeds = {f"samples_per_s.{name}": value for name, value in row["samples_per_s"].items()}
    protocol = " ".join([row["protocol"], *row.get("settings", ())])
    offer = row.get("offer", "on-demand")
    hosts = row["hosts_told"].replace(" ", "\u00a0") + ("" if offer == "on-demand" else f", {offer}")
    steps = {"work.steps.mid": row["work"]["steps"]["mid"]} if row.get("work") else {}
    return row | speeds | steps | {"protocol": protocol, "hosts": hosts}


def _cell(value: object) -> str | Cell:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Cell(number(value), value)
    return "" if value is None else str(value)


def _rejected(rejected: dict[str, int]) -> Iterator[Part]:
    if not rejected:
        yield Text("Nothing.")
        return
    yield Table(("why", "configurations"), [(why, _cell(count)) for why, count in rejected.items()], "rejected")


def _basis(found: Sequence[dict]) -> Iterator[Part]:
    """The number whose knowledge would change the choice most, and the run that measures it."""
    first = max(found, key=lambda one: one["choice_changes"], default=None)
    if first is None or not first["choice_changes"]:
        yield Text("nothing that can be measured beforehand would change the choice", "basis")
        return
    changed = f"in {first['choice_changes']:.0%} of cases it changes the choice"
    yield Text(f"measure first: {first['parameter']}, {changed}: {first[MEASURED_BY]}", "basis")


def _sensitivity(found: Sequence[dict]) -> Iterator[Part]:
    """A row a parameter, a column for everything that is said of it; then how each would be measured."""
    if not found:
        yield Text("Nothing that was asked.")
        return
    rows = [{name: value for name, value in _leaves(one) if name != MEASURED_BY} for one in found]
    names = list(dict.fromkeys(name for row in rows for name in row))
    words = [i for i, name in enumerate(names) if any(isinstance(row.get(name), str) for row in rows)]
    headings = [name.replace("_", " ").replace(".", " ") for name in names]
    yield Table(headings, [[_cell(row.get(name)) for name in names] for row in rows], "sensitivity", words)
    for one in found:
        if how := one.get(MEASURED_BY):
            yield Text(f"What measures it ({one['parameter']}):")
            yield Code(how)


def _leaves(table: dict, path: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
