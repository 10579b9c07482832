"""Two answers of files beside each other: settings that differ, the ratio of their throughputs, and the numbers that both rest on.

Simulated answers of one random seed are compared run by run, as `--what-if` compares them. Others are unpaired: the interval of their ratio
comes from both intervals, as if nothing that is unknown were the same in both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import exp, hypot, log
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sim.answers import amount, paired
from sim.answers.read import read
from sim.answers.summary import known, number, seconds
from sim.base import interval
from sim.base.errors import printable
from sim.base.flat import flattened
from sim.studies.what_if import Ratio, of_pairs, percent
from sim.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sim.answers.basis import Number
    from sim.answers.read import Answer

SCHEMA = "comparison/1"
SAME_DRAWS = {
    "seed": "their random seeds are {} and {}",
    "sleeps_of": "their sleeps are those of runs {} and {}",
    "steps": "they have {} and {} steps",
    "warmup": "they have {} and {} steps of warm-up",
}
NOT_SET = "not set"
LONGEST_NAME = 33  # of a file, in a heading
MOST_SETTINGS = 12  # that are shown of one table, as `cluster`


class Setting(NamedTuple):
    """A setting that differs: its dotted path, and its text in either answer; None where it is not set."""

    path: str
    base: str | None
    changed: str | None

    @property
    def texts(self) -> tuple[str, str]:
        """Both, with words for None."""
        return self.base or NOT_SET, self.changed or NOT_SET


class Figure(NamedTuple):
    """A figure as text, and as a number if it is one that is known."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Comparison:
    """An answer beside another one.

    Args:
        names: of their files.
        base, changed: the answers.
    """

    names: tuple[str, str]
    base: Answer
    changed: Answer

    @property
    def both(self) -> tuple[Answer, Answer]:
        """The answers."""
        return self.base, self.changed

    @cached_property
    def unpaired(self) -> str:
        """Why their runs are no pairs; empty if they are."""
        return next(_apart(*self.both), "")

    @cached_property
    def ratio(self) -> Ratio | None:
        """The throughput of `changed` over that of `base`, of 0 pairs if they are unpaired; None if it is not known."""
        return _unpaired(*self.both) if self.unpaired else _paired(*self.both)

    @cached_property
    def settings(self) -> list[Setting]:
        """All settings that differ, and the world, version and number of runs."""
        base, changed = (dict(_told(one)) for one in self.both)
        paths = dict.fromkeys([*base, *changed])
        every = (Setting(path, base.get(path), changed.get(path)) for path in paths)
        return [one for one in every if one.base != one.changed]

    @cached_property
    def few_settings(self) -> list[Setting]:
        """The same with the first of each table alone, and a row for the number of the others."""
        of, found = Counter(_top(one.path) for one in self.settings), []
        seen: Counter[str] = Counter()
        for one in self.settings:
            top = _top(one.path)
            seen[top] += 1
            if seen[top] <= MOST_SETTINGS:
                found.append(one)
            elif seen[top] == of[top]:
                found.append(Setting(f"{top}: {of[top] - MOST_SETTINGS:,} more", "...", "..."))
        return found

    @cached_property
    def basis(self) -> list[tuple[str, Number | None, Number | None]]:
        """The numbers that either rests on, by name, in the order of their shares of the variance."""
        base, changed = ({one.name: one for one in answer.numbers} for answer in self.both)
        rows = [(name, base.get(name), changed.get(name)) for name in dict.fromkeys([*base, *changed])]
        return sorted(rows, key=lambda row: -max(one.share for one in row[1:] if one))

    @cached_property
    def notes(self) -> list[str]:
        """Caveats: of the comparison first, then those of both answers and of either."""
        found = [] if not self.unpaired else [f"unpaired, because {self.unpaired}: what both share does not cancel"]
        if self.ratio is None:
            found.append(f"the ratio is not known: {_without(*zip(self.names, self.both, strict=True))}")
        found += _held(*self.both)
        of_both = [
            list(dict.fromkeys([*amount.cut_short(one.asked.amount, one.done.amount), *one.notes])) for one in self.both
        ]
        shared = [note for note in of_both[0] if note in of_both[1]]
        found += [f"both: {note}" for note in shared]
        own = zip(self.names, of_both, strict=True)
        return found + [f"{name}: {note}" for name, notes in own for note in notes if note not in shared]

    @property
    def figures(self) -> list[tuple[str, Figure, Figure]]:
        """Figures of both answers, by name."""
        columns = (figures_of(one) for one in self.both)
        return [(name, figure, other) for (name, figure), (_, other) in zip(*columns, strict=True)]

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        base, changed = self.names
        if self.ratio is None:
            return f"throughput of {changed} over {base}: unknown"
        what = "9 in 10 pairs" if self.ratio.pairs else "9 in 10, unpaired"
        spread = f"{what}: {self.ratio.spread}" if self.ratio.interval else self._no_interval
        return f"throughput of {changed} over {base}: {percent(self.ratio.value)} ({spread})"

    @property
    def _no_interval(self) -> str:
        assert self.ratio
        return self.ratio.spread if self.ratio.pairs else "no interval"

    def as_json(self) -> dict:
        """The object of schema comparison/1; what is not known is None."""
        ratio = self.ratio or Ratio(float("nan"), None, 0)
        answers = [
            {"file": name, **one.model_dump(mode="json", exclude={"scenario", "basis", "pairing"})}
            for name, one in zip(self.names, self.both, strict=True)
        ]
        found = {
            "schema": SCHEMA,
            "version": VERSION,
            "answers": answers,
            "throughput_ratio": ratio.value,
            "pairs": ratio.pairs,
            "unpaired": self.unpaired or None,
            "interval": {"level": interval.LEVEL, "throughput_ratio": ratio.interval},
            "settings": [one._asdict() for one in self.settings],
            "basis": [
                {"number": name, "base": base and base.as_json(), "changed": changed and changed.as_json()}
                for name, base, changed in self.basis
            ],
            "notes": self.notes,
        }
        return known(found)


def compare(base: str | Path, changed: str | Path) -> Comparison:
    """The answers of two files.

    Raises:
        WrongSetting: one cannot be read, or is no answer.
    """
    paths = printable(str(base)), printable(str(changed))
    short = _shortened(Path(paths[0]).name), _shortened(Path(paths[1]).name)
    first, second = short if short[0] != short[1] else paths
    return Comparison((first, f"{second} (again)" if first == second else second), read(base), read(changed))


def _shortened(name: str) -> str:
    """A name that a column's heading has room for: its beginning and its end.

    >>> _shortened("resnet50_on_four_hosts_with_sixteen_workers.json")
    'resnet50_on_f...teen_workers.json'
    """
    return name if len(name) <= LONGEST_NAME else f"{name[:13]}...{name[-17:]}"


def figures_of(one: Answer) -> Iterator[tuple[str, Figure]]:
    """The figures of an answer, by name: samples a second, seconds, and how much was simulated or run."""
    low, high = one.interval.samples_per_s or (None, None)
    speeds = {"samples/s": one.samples_per_s, "one more run, at least": low, "one more run, at most": high}
    yield from ((name, Figure(number(value), value)) for name, value in speeds.items())
    for name in ("mean", "p50", "p95", "p99"):
        value_s = one.step_s.get(name)
        yield f"step time, {name}", Figure("unknown" if value_s is None else seconds(value_s), value_s)
    yield "world", Figure(one.world)
    yield "done", Figure(f"{one.done.runs:,} of {one.asked.runs:,} runs of {one.done.steps:,} steps")


def _apart(base: Answer, changed: Answer) -> Iterator[str]:
    """Whatever keeps the runs of two answers from being pairs."""
    measured = base.measured + changed.measured
    if measured:
        yield "both were run for real" if measured == 2 else "one of them was run for real"
    if base.version != changed.version:
        yield f"versions {base.version} and {changed.version} may draw other random numbers"
    for name, said in SAME_DRAWS.items():
        pair = base.scenario.get(name), changed.scenario.get(name)
        if pair[0] != pair[1]:
            yield said.format(*pair)
    if base.pairing is None or changed.pairing is None:
        yield "a file does not have each run's throughput"
        return
    if base.pairing.first != changed.pairing.first:
        yield f"their first runs are {base.pairing.first} and {changed.pairing.first}"
    if base.done.amount[1:] != changed.done.amount[1:]:
        yield f"{base.done.steps} and {changed.done.steps} steps were simulated of them before time ran out"
    if not all([*base.pairing.samples_per_s, *changed.pairing.samples_per_s]):
        yield "a run summed nothing"


def _paired(base: Answer, changed: Answer) -> Ratio:
    assert base.pairing
    assert changed.pairing
    ours, theirs = (np.array(one.samples_per_s, float) for one in (base.pairing, changed.pairing))
    unknown = [[one.unknown for one in pairing.unknown] for pairing in (base.pairing, changed.pairing)]
    nothing = np.array_equal(ours, theirs) and base.step_s == changed.step_s
    return of_pairs(ours, theirs, (0.0, 0.0) if nothing else paired.difference(*unknown))


def _unpaired(base: Answer, changed: Answer) -> Ratio | None:
    """The ratio by both intervals, as of independent logarithms."""
    ours, theirs = base.samples_per_s, changed.samples_per_s
    if not ours or theirs is None:
        return None
    ends = base.interval.samples_per_s, changed.interval.samples_per_s
    if not theirs or not all(ends) or {base.interval.level, changed.interval.level} != {interval.LEVEL}:
        return Ratio(theirs / ours, None, 0)
    (our_low, our_high), (low, high) = ends  # type: ignore[misc]
    lower, higher = hypot(log(theirs / low), log(our_high / ours)), hypot(log(high / theirs), log(ours / our_low))
    ratio = theirs / ours
    return Ratio(ratio, (ratio * exp(-lower), ratio * exp(higher)), 0)


def _without(*named: tuple[str, Answer]) -> str:
    return " and ".join(f"{name} summed nothing, or in no time" for name, one in named if not one.samples_per_s)


def _held(base: Answer, changed: Answer) -> Iterator[str]:
    """Whether a measured throughput is inside the interval of the simulated one."""
    if base.measured == changed.measured:
        return
    real, simulated = (base, changed) if base.measured else (changed, base)
    ends = simulated.interval.samples_per_s
    if ends and real.samples_per_s:
        inside = ends[0] <= real.samples_per_s <= ends[1]
        said = f"the measured {number(real.samples_per_s)} samples/s are {'inside' if inside else 'outside'} the predicted interval"
        yield f"{said}, {number(ends[0])} to {number(ends[1])}"


def _told(one: Answer) -> Iterator[tuple[str, str]]:
    """Everything that was asked, and how it was answered, as dotted paths and text. A model's digest stands for its description."""
    yield from flattened({name: value for name, value in one.scenario.items() if name != "model"})
    yield from flattened({"world": one.world, "version": one.version, "done": one.done.model_dump()})


def _top(path: str) -> str:
    return path.partition(".")[0]
