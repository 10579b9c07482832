"""The parts that a report is composed of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple


class Cell(NamedTuple):
    """A number as shown to people.

    Args:
        text: the shown text.
        value: the number itself, for programs that read the page; None if it is not known.
    """

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Text:
    """A paragraph.

    Args:
        kind: plain, note (something that the reader should beware of), answer (the one sentence that was asked for), or basis (what that
            rests on).
    """

    template: ClassVar[str] = "text.html"
    text: str
    kind: str = "plain"


@dataclass(frozen=True)
class Table:
    """A table; the first column is text, the others are numbers, aligned to the right.

    Args:
        headings: of the columns.
        rows: of words or cells, each as long as `headings`.
        name: by which a program that reads the page finds it.
        words: further columns of text, by their number from 0.
    """

    template: ClassVar[str] = "table.html"
    headings: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    name: str = ""
    words: Sequence[int] = (0,)


@dataclass(frozen=True)
class Figure:
    """An interactive plot, as plotly.js describes them.

    Args:
        data, layout: of plotly.js; numbers and None only, neither NaN nor infinite.
        caption: how it is read.
        name: by which a program that reads the page finds it.
    """

    template: ClassVar[str] = "figure.html"
    data: Sequence[dict]
    layout: dict
    caption: str = ""
    name: str = ""


@dataclass(frozen=True)
class Code:
    """A command, or a file, as it is."""

    template: ClassVar[str] = "code.html"
    text: str


Part = Text | Table | Figure | Code


@dataclass(frozen=True)
class Section:
    """A heading and what is under it."""

    heading: str
    parts: Sequence[Part]
