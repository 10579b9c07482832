"""Blocks of pages that are written from the code and from kept results, so that pages can be read in a clone, too.

A block begins with a comment that names its writer and its subject, `<!-- schema sim.platform.cluster:Cluster -->`, and ends with
`<!-- end -->`. As a program, this file writes the blocks of README.md and docs/ anew, and prints the pages that it changed. With
`--check` it only prints them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import commands
import members
import results
import schemas

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(<!-- (?P<writer>[a-z]+)(?: (?P<subject>\S+))? -->\n).*?(<!-- end -->)", re.DOTALL)
COLUMNS = "84"  # of help texts
WRITERS: dict[str, Callable[..., str]] = {
    "command": commands.command,
    "commands": commands.commands,
    "protocols": commands.protocols,
    "schema": schemas.schema,
    "function": members.function,
    "class": members.class_,
    "functions": members.functions,
    "result": results.page,
    "summary": results.summary,
}


def current(text: str) -> str:
    """A page with its blocks as the code writes them now."""
    with _columns():
        return BLOCK.sub(_written, text)


def _written(block: re.Match) -> str:
    subject = [block["subject"]] if block["subject"] else []
    text = WRITERS[block["writer"]](*subject).strip()
    return f"{block[1]}{text}\n{block[4]}"


@contextmanager
def _columns():
    """Help texts are as wide on every terminal."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = COLUMNS
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def stale() -> list[Path]:
    """Pages whose blocks the code would write otherwise."""
    return [page for page in PAGES if current(page.read_text()) != page.read_text()]


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    found = stale()
    for page in found:
        print(page.relative_to(ROOT))
        if "--check" not in sys.argv:
            page.write_text(current(page.read_text()))
    sys.exit(bool(found) and "--check" in sys.argv)
