"""A fence with the name of a file (```` ```toml grid.toml ````) shows that name above it."""

from __future__ import annotations

import re

NAMED = re.compile(r"^```(\w+) (\S+\.\w+)$", re.MULTILINE)


def captioned(app, document: str, source: list[str]) -> None:
    """Make directives with captions of such fences, as Sphinx reads a page."""
    source[0] = NAMED.sub(r"```{code-block} \1\n:caption: \2\n", source[0])


def setup(app) -> dict:
    app.connect("source-read", captioned)
    return {"parallel_read_safe": True}
