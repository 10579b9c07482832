"""Tables as commands print them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.table import Table


def table(
    headings: Sequence[str],
    rows: Iterable[Iterable[str]],
    left: Collection[str] | None = None,
    folded: Collection[str] | None = None,
) -> Table:
    """A table of texts.

    Args:
        left: headings of columns whose texts begin at the left; the first by default.
        folded: headings of columns whose texts may take several lines; the first by default.
    """
    from rich.table import Table
    from rich.text import Text

    left, folded = (headings[:1] if several is None else several for several in (left, folded))
    made = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        justify: Literal["left", "right"] = "left" if heading in left else "right"
        overflow: Literal["fold", "ellipsis"] = "fold" if heading in folded else "ellipsis"
        made.add_column(heading, justify=justify, no_wrap=heading not in folded, overflow=overflow)
    for row in rows:
        made.add_row(*map(Text, row))
    return made
