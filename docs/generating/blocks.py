"""`<!-- WRITER SUBJECT... -->` in a page is replaced by what the writer says of each subject, from the code or docs/data.

Sphinx asks for it as it reads a page. A file in the tree has the comment alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import commands
import members
import results
import schemas

BLOCK = re.compile(r"^<!-- (\w+)(.*?) -->$", re.MULTILINE | re.DOTALL)
WRITERS: dict[str, Callable[..., str]] = {
    "commands": commands.commands,
    "helps": commands.helps,
    "protocols": commands.protocols,
    "schema": schemas.schema,
    "member": members.member,
    "functions": members.functions,
    "results": results.pages,
    "summary": results.summary,
}


def written(text: str) -> str:
    """A page with what its comments stand for."""
    return BLOCK.sub(_written, text)


def _written(block: re.Match) -> str:
    writer, subjects = WRITERS[block[1]], block[2].split()
    return "\n\n".join(map(writer, subjects)) if subjects else writer()


def _read(app, document: str, source: list[str]) -> None:
    source[0] = written(source[0])


def setup(app) -> dict:
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
