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
    from rich.table import Table

    from sim.plans.candidates import Candidate
    from sim.plans.plan import Plan
    from sim.plans.question import Question
    from sim.plans.sensitivity import Value

WORDS = ("hosts", "offer", "protocol")  # columns of text
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
        console.print(_table(found, plan))
    console.print(Text(f"the first again, where --why says what limits it: {plan.row(plan.best[0])['command']}", "dim"))
    if len(plan.front) > 1:
        console.print(Text("Nothing that was simulated is both cheaper and faster than these:"))
        console.print(_table(plan.front[:MOST_OF_FRONT], plan))
        if (more := len(plan.front) - MOST_OF_FRONT) > 0:
            console.print(Text(f"and {more} more that are faster; --json has them", "dim"))
    for line in further(plan):
        console.print(Text(line))
    for note in notes(plan):
        console.print(Text(f"note: {note}", "yellow"))


def answers(plan: Plan) -> Iterator[tuple[str, list[Candidate]]]:
    """The tables of the answer, a title and configurations each: the best of each kind of host before further ones."""
    yield "", plan.by_kind or plan.best
    if plan.by_kind and (others := [one for one in plan.best if one not in plan.by_kind]):
        yield "Further ones, of any kind of host:", others


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
    several = f"{plan.configurations:,} configuration{'s' * (plan.configurations != 1)}"
    return f"The {kind} of {several} for {target}, {chance}:"


def targets(plan: Plan) -> list[str]:
    """The target as text."""
    asked, found = plan.question, []
    if asked.samples_per_s:
        found.append(f"{number(asked.samples_per_s)} samples/s")
    goal = in_words(asked.until) if asked.until else f"{number(asked.work)} samples"
    if asked.deadline:
        found.append(f"{goal} in {duration(asked.deadline)}")
    if asked.budget:
        found.append(f"{goal} for {number(asked.budget)} USD")
    if asked.usd_per_hour:
        found.append(f"{number(asked.usd_per_hour)} USD an hour at most")
    return found


def _table(found: list[Candidate], plan: Plan) -> Table:
    """A row for each; columns without a text are left out."""
    rows = [_cells(plan.row(one), plan.question) for one in found]
    shown = [heading for heading in rows[0] if any(row[heading] for row in rows)]
    return printing.table(shown, [[row[heading] for heading in shown] for row in rows], WORDS, ())


def _cells(row: dict, question: Question) -> dict[str, str]:
    """The texts below the headings; empty where there is nothing to say."""
    speeds, hours = row["samples_per_s"], row["hours"]
    low, high = speeds["low"], speeds["high"]
    unknown = low is not None and too_wide((low, high))
    settings = f" ({', '.join(row['settings'])})" if row["settings"] else ""
    return {
        "hosts": row["hosts_told"],
        "offer": "" if question.offers == ("on-demand",) else row["offer"],
        "protocol": f"{row['protocol']}{settings}",
        "servers": str(row["servers"] or ""),
        "batch": str(row["batch"]),
        "steps": number(row["work"]["steps"]["mid"]) if row["work"] else "",
        "samples/s": number(speeds["mid"]),
        "9 in 10 runs": "unknown" if low is None else f"{number(low)} to {number(high)}",
        "USD/h": f"{row['usd_per_hour']:,.2f}",
        "time": "" if hours is None else "unknown" if unknown else duration(hours * 3600),
        "USD": "" if hours is None else "unknown" if unknown else f"{row['usd']:,.2f}",
        "P": "" if row["p_target"] is None else f"{row['p_target']:.2f}",
        "P best": "" if row["p_best"] is None else f"{row['p_best']:.2f}",
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
        yield _value(value)
        if value.changes:
            yield f"  {value.parameter.measured_by}"
    if more := sum(value.changes > 0 for value in plan.values[MOST_VALUES:]):
        yield f"and {more} more whose measurement may change the choice; --json has them"


def _value(value: Value) -> str:
    one = value.parameter
    gain = "the choice stays"
    if value.changes:
        gain = f"another choice in {value.changes:.0%} of cases, {number(value.saves)} {value.unit} less on average"
        gain += f" (an hour of a host: {number(one.usd_per_hour)} USD)"
    known = f"{'taken to be ' * one.assumed}known within a factor {exp(END * one.deviation):.2f}"
    return f"Measured first, {one.name} ({known}): {gain}"
