"""A plan on a page of text."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from typing import TYPE_CHECKING

from sim.answers.quantities import END
from sim.answers.summary import number, too_wide
from sim.base import printing
from sim.base.progress import duration
from sim.plans.plan import notes
from sim.plans.until import in_words

if TYPE_CHECKING:
    from sim.plans.candidates import Candidate
    from sim.plans.plan import Plan
    from sim.plans.prices import Currency
    from sim.plans.sensitivity import Value

HEADINGS = (
    "hosts",
    "offer",
    "protocol",
    "servers",
    "batch",
    "steps",
    "samples/s",
    "9 in 10 runs",
    "USD/h",
    "time",
    "USD",
    "P",
    "P best",
    "limited by",
)
WORDS = ("hosts", "offer", "protocol", "limited by")  # columns of text
MOST_OF_FRONT, MOST_REASONS, MOST_VALUES = 8, 8, 4
WIDTH = 1000  # of a page: rows are not cut, whoever reads them


def show(plan: Plan) -> None:
    """Print it: the answer first."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, width=WIDTH)
    console.print(Text(headline(plan), "bold"))
    for title, found in answers(plan):
        if title:
            console.print(Text(title))
        console.print(printing.table(*table([plan.row(one) for one in found], plan), WORDS, ()))
    console.print(Text(f"the first again: {plan.row(plan.best[0])['command']}", "dim"))
    if len(plan.front) > 1:
        console.print(Text("Nothing that was simulated is both cheaper and faster than these:"))
        rows = [plan.row(one) for one in plan.front]
        console.print(printing.table(*table(rows[:MOST_OF_FRONT], plan, limits=False), WORDS, ()))
        if len(rows) > MOST_OF_FRONT:
            console.print(Text(f"and {len(rows) - MOST_OF_FRONT} more that are faster; --json has them", "dim"))
    if plan.by_number:
        console.print(Text("The fastest of each number of hosts:"))
        console.print(printing.table(*table([plan.row(one) for one in plan.by_number], plan, limits=False), WORDS, ()))
    for line in further(plan):
        console.print(Text(line))
    for note in notes(plan):
        console.print(Text(f"note: {note}", "yellow"))


def answers(plan: Plan) -> Iterator[tuple[str, list[Candidate]]]:
    """The tables of the answer, a title and configurations each: the best of each kind of host before further ones."""
    yield "", plan.by_kind or plan.best
    if plan.by_kind and (further := [one for one in plan.best if one not in plan.by_kind]):
        yield "Further ones, of any kind of host:", further


def headline(plan: Plan) -> str:
    """The answer in a sentence or two."""
    asked, first = plan.question, plan.row(plan.best[0])
    target = " and ".join(targets(plan))
    if not plan.met:
        reached = f"{number(first['samples_per_s']['mid'])} samples/s where {number(first['needed_samples_per_s'])} are needed"
        chance = "" if first["p_target"] is None else f", met with a probability of {first['p_target']:.2f}"
        looked = f"{len(plan.simulated):,} that were simulated, of {plan.configurations:,}, before time was over"
        none = f"No configuration of {plan.configurations:,}" if plan.whole else f"None of the {looked},"
        return f"{none} meets {target}. The nearest reaches {reached}{chance}:"
    kind = "cheapest" if asked.cheapest else "fastest"
    chance = f"with a probability of {asked.probability:g} or more"
    if first["p_target"] is None:
        chance = f"(no probability: {first['why_no_interval']})"
    if any((plan.row(one)["p_target"] or 1) < asked.probability for one in plan.by_kind):
        chance += ", and the best of each kind of host that misses it"
    return (
        f"The {kind} of {plan.configurations:,} configuration{'s' * (plan.configurations != 1)} for {target}, {chance}:"
    )


def targets(plan: Plan) -> list[str]:
    """The target as text."""
    asked, found = plan.question, []
    if asked.samples_per_s:
        found.append(f"{number(asked.samples_per_s)} samples/s")
    if asked.work and asked.deadline:
        found.append(f"{number(asked.work)} samples in {duration(asked.deadline)}")
    name, per_usd = asked.money
    if asked.work and asked.budget:
        found.append(f"{number(asked.work)} samples for {number(asked.budget * per_usd)} {name}")
    if asked.until and asked.deadline:
        found.append(f"{in_words(asked.until)} in {duration(asked.deadline)}")
    if asked.until and asked.budget:
        found.append(f"{in_words(asked.until)} for {number(asked.budget * per_usd)} {name}")
    if asked.usd_per_hour:
        found.append(f"{number(asked.usd_per_hour * per_usd)} {name} an hour at most")
    return found


def table(rows: list[dict], plan: Plan, limits: bool = True) -> tuple[list[str], list[list[str]]]:
    """Headings and the texts below them, money in the question's currency.

    Args:
        limits: whether what limits each row is among them.
    """
    money, shown = plan.question.money, _headings(rows, plan, limits)
    cells = [_cells(row, money.per_usd) for row in rows]
    return [heading.replace("USD", money.name) for heading in shown], [[row[one] for one in shown] for row in cells]


def _headings(rows: list[dict], plan: Plan, limits: bool) -> list[str]:
    """Those of HEADINGS under which something stands."""
    has_end, has_servers = plan.question.has_end, any(row["servers"] for row in rows)
    offered = plan.question.offers != ("on-demand",)
    left_out = {
        "servers": not has_servers,
        "time": not has_end,
        "USD": not has_end,
        "steps": plan.question.until is None,
        "limited by": not limits,
        "offer": not offered,
        "P best": all(row["p_best"] is None for row in rows) or not limits,
    }
    return [heading for heading in HEADINGS if not left_out.get(heading)]


def _cells(row: dict, per_usd: float) -> dict[str, str]:
    speeds, hours = row["samples_per_s"], row["hours"]
    low, high = speeds["low"], speeds["high"]
    unknown = low is not None and too_wide((low, high))
    settings = f" ({', '.join(row['settings'])})" if row["settings"] else ""
    return {
        "hosts": row["hosts_told"],
        "offer": row["offer"],
        "protocol": f"{row['protocol']}{settings}",
        "servers": str(row["servers"] or ""),
        "batch": str(row["batch"]),
        "steps": number(row["work"]["steps"]["mid"]) if row["work"] else "",
        "samples/s": number(speeds["mid"]),
        "9 in 10 runs": "unknown" if low is None else f"{number(low)} to {number(high)}",
        "USD/h": f"{row['usd_per_hour'] * per_usd:,.2f}",
        "time": "" if hours is None else "unknown" if unknown else duration(hours * 3600),
        "USD": "" if hours is None else "unknown" if unknown else f"{row['usd'] * per_usd:,.2f}",
        "P": "" if row["p_target"] is None else f"{row['p_target']:.2f}",
        "P best": "" if row["p_best"] is None else f"{row['p_best']:.2f}",
        "limited by": row["limits"] or "",
    }


def further(plan: Plan) -> Iterator[str]:
    """The configurations that were thrown out, and the values of measuring."""
    simulated = f"{len(plan.simulated):,} {'was' if len(plan.simulated) == 1 else 'were'} simulated"
    yield f"Thrown out: {sum(plan.rejected.values()):,} of {plan.configurations:,}; {simulated}"
    reasons = plan.rejected.most_common()
    yield from (f"  {count:7,}  {reason}" for reason, count in reasons[:MOST_REASONS])
    if len(reasons) > MOST_REASONS:
        yield f"  {sum(count for _, count in reasons[MOST_REASONS:]):7,}  for {len(reasons) - MOST_REASONS} more reasons"
    for value in plan.values[:MOST_VALUES]:
        yield _value(value, plan.question.money)
        if value.changes:
            yield f"  {value.parameter.measured_by}"
    if further := sum(value.changes > 0 for value in plan.values[MOST_VALUES:]):
        yield f"and {further} more whose measurement may change the choice; --json has them"


def _value(value: Value, money: Currency) -> str:
    one, per_usd = value.parameter, 1.0 if value.unit == "hours" else money.per_usd
    if not value.changes:
        gain = "the choice stays"
    else:
        saves = f"{number(value.saves * per_usd)} {value.unit.replace('USD', money.name)} less on average"
        usd = (
            f" (an hour of a host: {number(one.usd_per_hour * money.per_usd)} {money.name})" if one.usd_per_hour else ""
        )
        gain = f"another choice in {value.changes:.0%} of cases, {saves}{usd}"
    known = f"{'taken to be ' * one.assumed}known within a factor {exp(END * one.deviation):.2f}"
    return f"Measured first, {one.name} ({known}): {gain}"
