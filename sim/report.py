"""An answer as one page for a browser: all that the command prints, the command, and its data. Nothing is loaded from a network."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stdout
from html import escape
from urllib.parse import quote

from sim.base.files import check_ending, check_output, write_text
from sim.version import VERSION

OPTION, ENDINGS = "--report", (".html", ".htm")
WIDTH = "132"  # characters of a line
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>body {{ font-family: sans-serif; margin: 2em }} pre {{ overflow-x: auto }}</style></head>
<body><h1>{title}</h1>
<pre>{said}</pre>
<h2>Reproduce it</h2><pre>{command}</pre>
<p>anytime-trainsim {version}. <a download="answer.json" href="data:application/json,{data}">Save its data as JSON</a></p>
</body></html>
"""


def check(path: str | None) -> None:
    """Refuse a report that could not be written, before anything is run for it; None is fine.

    Raises:
        WrongSetting: another ending than .html, or a path that cannot be written.
    """
    if path is not None:
        check_output(OPTION, path)
        check_ending(OPTION, path, ENDINGS)


def write(path: str, title: str, show: Callable[[], object], command: str, data: dict) -> None:
    """Write the page whole, or not at all.

    Args:
        show: prints the answer.
        command: that prints it.
        data: the JSON answer; NaN and infinite become null.

    Raises:
        WrongSetting: a folder that cannot be written.
        RunFailed: the system does not take the file.
    """
    from sim.answers.summary import known

    parts = {"title": title, "said": printed(show), "command": command, "version": VERSION}
    texts = {name: escape(text) for name, text in parts.items()}
    write_text(path, PAGE.format(**texts, data=quote(json.dumps(known(data)))))


def printed(show: Callable[[], object]) -> str:
    """What a function prints, in lines of at most WIDTH characters."""
    before = dict(os.environ)
    os.environ["COLUMNS"] = WIDTH
    os.environ.pop("FORCE_COLOR", None)
    try:
        with redirect_stdout(io.StringIO()) as said:
            show()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return "\n".join(line.rstrip() for line in said.getvalue().splitlines())
