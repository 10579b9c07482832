"""Changes to a job beside the job itself, on the same random numbers: the effect of each on its throughput.

Run by run both have the same sleeps, noise and drift. The difference is therefore known much better than either throughput. The
interval also contains unknowns that differ between the two: another protocol's messages, more hosts, the drift of two real runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.answers import extrapolation, paired
from sim.base import interval
from sim.base.printing import table
from sim.job import gpu_memory
from sim.studies import changes

if TYPE_CHECKING:
    from sim.answers.result import Result

HEADINGS = ("what if", "samples/s", "mean step", "throughput", "9 in 10 pairs")
COST, USD = "USD/M", "usd_per_million_samples"  # a further heading where a price is known, and its key in an answer
PRICED_WIDTH = 100  # of a page, at least, with that heading: names of changes are not cut


class Ratio(NamedTuple):
    """A throughput over another one.

    Args:
        value: the geometric mean over pairs of runs with equal random numbers.
        interval: low and high between which the ratio of one more pair, of real runs, falls nine times in ten; None if that is not known.
        pairs: of runs.
    """

    value: float
    interval: tuple[float, float] | None
    pairs: int


@dataclass(frozen=True)
class Compared:
    """A changed job beside the base.

    Args:
        change: what was changed, as the user wrote it.
        result: of the changed job.
        ratio, interval, pairs: of its throughput over the base's, see `Ratio`.
        payback: of a change that has a price, see `_payback`.
    """

    change: str
    result: Result
    ratio: float
    interval: tuple[float, float] | None
    pairs: int
    payback: dict | None = None

    @property
    def spread(self) -> str:
        """The interval as text."""
        if self.interval is None:
            return "one pair" if self.pairs == 1 else "all equal"
        return " to ".join(map(percent, self.interval))

    def as_json(self) -> dict:
        """The object of this change in the JSON answer."""
        return {
            "change": self.change,
            "throughput_ratio": self.ratio,
            "pairs": self.pairs,
            "interval": {"level": interval.LEVEL, "throughput_ratio": self.interval},
            **({"payback": self.payback} if self.payback else {}),
            "answer": self.result.answer(),
        }


def compare(change: str, base: Result, changed: Result, real: bool = False) -> Compared:
    """The changed job beside the base, run by run.

    Args:
        base, changed: whose first replications have the same number.
        real: both may be run for real, and what is not known of them counts; a job without messages cannot, and then what is
            unknown of costs does alone, which is the same in both.
    """
    unknown = paired.unknown(base, changed) if real else paired.of_same_numbers(base, changed)
    ratio = of_pairs(base.outcome.throughput(), changed.outcome.throughput(), unknown)
    if ratio.interval is not None:
        least, most = paired.possible(base.scenario, changed.scenario)
        low, high = ratio.interval
        ratio = ratio._replace(interval=(max(low, min(least, ratio.value)), min(high, max(most, ratio.value))))
    return Compared(change, changed, *ratio, _payback(changes.price(change), base, changed, ratio))


def _payback(usd: float | None, base: Result, changed: Result, ratio: Ratio) -> dict | None:
    """The hours of training as it is after which a change has saved its price, and their interval; None of these is never."""
    before, after = (one.scenario.cluster.usd_per_hour for one in (base, changed))
    if usd is None or before is None or after is None:
        return None
    saved = [before - after / times for times in (ratio.value, *(ratio.interval or (ratio.value,) * 2)[::-1])]
    mid, *ends = (usd / each if each > 0 else None for each in saved)
    return {"usd": usd, "hours": mid, "interval": {"level": interval.LEVEL, "hours": ends}}


def payback_said(change: str, payback: dict) -> str:
    """The payback of a change, in a line."""
    from sim.answers.summary import number

    every = payback["hours"], *payback["interval"]["hours"]
    mid, low, high = ("never" if hours is None else f"after {number(hours)} h" for hours in every)
    between = f" (90% of pairs: {low} to {high})" * (low != high)
    return f"{change}: saves its price {mid}{' of training as it is' * (mid != 'never')}{between}"


def of_pairs(base: np.ndarray, changed: np.ndarray, unknown: tuple[float, float]) -> Ratio:
    """The ratio of the throughputs of changed runs and base runs, of which those at equal places have equal random numbers.

    Args:
        base, changed: samples a second, shapes (runs,), of which the fewer count.
        unknown: logarithms by which the ratio may be lower and higher, besides the runs.
    """
    runs = min(len(base), len(changed))
    ratios = changed[:runs] / base[:runs]
    pair = interval.of_runs(ratios) if runs > 1 and np.ptp(ratios) > 0 else None
    ratio = interval.middle(ratios)
    return Ratio(ratio, widened(pair, ratio, *unknown), runs)


def widened(pair: tuple[float, float] | None, ratio: float, lower: float, higher: float) -> tuple[float, float] | None:
    """The interval of pairs of runs, widened by logarithms by which the ratio may be lower and higher; the pair's own without these."""
    if not ratio > 0 or not max(lower, higher) > 0:
        return pair
    return extrapolation.widened(pair or (ratio, ratio), ratio, [extrapolation.Unknown(lower, higher)])


def show(compared: list[Compared], base: dict) -> None:
    """Print the base and the changes, a row each.

    Args:
        base: the base's JSON answer.
    """
    from rich.console import Console

    headings, *found = rows(compared, base)
    width = max(Console().width, PRICED_WIDTH * (COST in headings))
    Console(highlight=False, width=width).print(table(headings, found))
    notes = (f"note: {line}" for line in (*too_large(compared), *still_slow(compared)))
    for line in (*(payback_said(one.change, one.payback) for one in compared if one.payback), *notes):
        Console(highlight=False, markup=False).print(line)


def too_large(compared: list[Compared]) -> list[str]:
    """A line for each changed job that does not fit the memory of its GPUs."""
    lines = ((one.change, line) for one in compared for line in gpu_memory.note(one.result.scenario))
    verdicts = gpu_memory.DOES_NOT_FIT, gpu_memory.RECOMPUTED
    return [f"{change}: {line}" for change, line in lines if line.startswith(verdicts)]


def still_slow(compared: list[Compared]) -> list[str]:
    """A line for each change of the number of workers that leaves ranks slow: the last ranks go, whichever are slow."""
    said = "{}: rank {} is slow here too, as the last ranks go; without it: stragglers=none"
    laws = {one.change: one.result.scenario.stragglers for one in compared if "workers=" in one.change}
    parts = ((change, part) for change, law in laws.items() for part in getattr(law, "of", [law]))
    return [said.format(change, ", ".join(map(str, part.rank))) for change, part in parts if part.kind == "slow-ranks"]


def rows(compared: Sequence[Compared], base: dict) -> Iterator[list[str]]:
    """The texts of the headings, of the base, and of each change; what a million samples cost is among them where a price is known."""
    from sim.answers.summary import digits, number

    answers = [base, *(one.result.answer() for one in compared)]
    priced = any(answer.get(USD) for answer in answers)
    yield [*HEADINGS, *([COST] if priced else [])]
    for answer, one in zip(answers, (None, *compared), strict=True):
        yield [*_cells(answer, one), *([number(answer.get(USD), digits(answer))] if priced else [])]


def _cells(answer: dict, compared: Compared | None) -> list[str]:
    """Below HEADINGS; of the base, `compared` is None."""
    from sim.answers.summary import digits, number, seconds

    cells = [number(answer["samples_per_s"], digits(answer)), seconds(answer["step_s"]["mean"], digits(answer))]
    if compared is None:
        return ["as it is", *cells, "", ""]
    return [compared.change, *cells, percent(compared.ratio), compared.spread]


def percent(ratio: float) -> str:
    """The difference in percent; as a factor if it is more than ten times."""
    return f"x {ratio:,.1f}" if ratio >= 10 else f"{ratio - 1:+.1%}"
