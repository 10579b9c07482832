"""Tables as all experiments make them: no frames, numbers to the right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from sim import command

if TYPE_CHECKING:
    from rich.table import Table


def table(title: str, *headings: str) -> Table:
    """A table without rows."""
    from rich.table import Table

    made = Table(title=title, box=None)
    for heading in headings:
        made.add_column(heading, justify="right")
    return made


def listed(title: str, columns: Sequence[tuple[str, Callable[[Any], str]]], rows: Iterable) -> Table:
    """A table of rows, by columns: a heading, and what a row has there. The first is of words."""
    made = table(title, *(heading for heading, _ in columns))
    made.columns[0].justify, made.columns[0].no_wrap = "left", True
    for row in rows:
        made.add_row(*(cell(row) for _, cell in columns))
    return made


WIDE = 132  # characters of a line
Shown = list["Table | str | list[dict]"]
_SHOWN: ContextVar[Shown | None] = ContextVar("shown", default=None)


def show(*parts: Table | str, sep: str = "\n", end: str = "\n", width: int = WIDE) -> None:
    """Print tables and lines of at most `width` characters; within `keeping`, keep them too."""
    from rich.console import Console

    with command.printing():
        Console(highlight=False, width=width).print(*parts, sep=sep, end=end)
    kept = _SHOWN.get()
    if kept is not None:
        kept.extend(parts)


def keep(cells: list[dict]) -> None:
    """Within `keeping`, keep rows of figures that are not shown."""
    kept = _SHOWN.get()
    if kept is not None:
        kept.append(cells)


@contextmanager
def keeping() -> Iterator[Shown]:
    """The list to which `show` adds all tables and lines within it, and `keep` rows."""
    kept: Shown = []
    token = _SHOWN.set(kept)
    try:
        yield kept
    finally:
        _SHOWN.reset(token)
