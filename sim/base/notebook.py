"""Answers as notebooks show them: HTML of a headline, a table and notes, in which everything is text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from sim.base.errors import printable


def shown(headline: str, headings: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """The HTML of an answer.

    >>> shown("<b>", (), [("a", "1 < 2")])
    '<p><b>&lt;b&gt;</b></p><table><tbody><tr><th>a</th><td>1 &lt; 2</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{_text(heading)}</th>" for heading in headings)
    body = "".join(_row(row) for row in rows)
    table = f"{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody>"
    said = "".join(f"<p>note: {_text(note)}</p>" for note in notes)
    return f"<p><b>{_text(headline)}</b></p><table>{table}</table>{said}"


def _row(cells: Sequence[str]) -> str:
    first, *others = map(_text, cells)
    return f"<tr><th>{first}</th>{''.join(f'<td>{cell}</td>' for cell in others)}</tr>"


def _text(text: str) -> str:
    return escape(printable(text))
