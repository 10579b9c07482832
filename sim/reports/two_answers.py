"""The page of a comparison of two answers (sim.studies.two_answers)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim.reports import figures
from sim.reports.page import page
from sim.reports.parts import Cell, Code, Part, Section, Table, Text

if TYPE_CHECKING:
    from sim.answers.basis import Number
    from sim.studies.two_answers import Comparison

OF_ONE = ("of the variance", "throughput", "value", "source")


def comparison_page(found: Comparison, command: str) -> str:
    """The HTML.

    Args:
        command: that makes the page.
    """
    sections = [
        Section("The answer", list(_answer(found))),
        Section("Settings that differ", list(_settings(found))),
        Section("Basis", list(_basis(found))),
        Section("Reproduce it", [Code(command)]),
    ]
    return page(" beside ".join(found.names), sections, found.as_json())


def _answer(found: Comparison) -> Iterator[Part]:
    yield Text(found.headline, "answer")
    yield from (Text(note, "note") for note in found.notes)
    rows = [(name, Cell(*base), Cell(*changed)) for name, base, changed in found.figures]
    yield Table(("", *found.names), rows, "throughput")
    known = [(name, one) for name, one in zip(found.names, found.both, strict=True) if one.samples_per_s is not None]
    if known:
        middles, pairs = zip(*((one.samples_per_s, one.interval.samples_per_s) for _, one in known), strict=True)
        names = [name for name, _ in known]
        yield figures.intervals(names, middles, pairs, "samples/s", "Bars: nine in ten runs of each.", "throughputs")


def _settings(found: Comparison) -> Iterator[Part]:
    if not found.settings:
        yield Text("None.")
        return
    rows = [(one.path, *one.texts) for one in found.few_settings]
    yield Table(("setting", *found.names), rows, "settings", (0, 1, 2))


def _basis(found: Comparison) -> Iterator[Part]:
    if not found.basis:
        yield Text("Real runs rest on what they measured.")
        return
    yield Text("The numbers that each answer rests on, and what each alone does to its throughput, nine times in ten.")
    headings = ["number", *(f"{name}: {what}" for name in found.names for what in OF_ONE)]
    rows = [(name, *_cells(base), *_cells(changed)) for name, base, changed in found.basis]
    yield Table(headings, rows, "basis", (0, 2, 3, 4, 6, 7, 8))


def _cells(one: Number | None) -> list[str | Cell]:
    return [Cell(f"{one.share:.0%}", one.share), one.limits, one.value, one.source] if one else [Cell(""), *[""] * 3]
