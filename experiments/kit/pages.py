"""Tables and figures as all experiments make them: no frames, numbers to the right, no window system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from sim import command
from sim.base.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table


def table(title: str, *headings: str) -> Table:
    """A table without rows."""
    from rich.table import Table

    made = Table(title=title, box=None)
    for heading in headings:
        made.add_column(heading, justify="right")
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


def figure(rows: int, columns: int, inches: tuple[float, float], **shared):
    """A figure and its panels, one or an array; `shared` as of Figure.subplots."""
    from matplotlib.figure import Figure

    made = Figure(figsize=inches, layout="constrained")
    return made, made.subplots(rows, columns, **shared)


def save(drawing: Figure, path: Path) -> None:
    """Write the picture whole, or not at all.

    Raises:
        WrongSetting: a folder that cannot be written.
    """
    write_whole(path, lambda file: drawing.savefig(file, dpi=150))
