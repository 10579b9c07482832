"""An answer as one page for a browser: all that the command prints, the command, and its data. Nothing is loaded from a network."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stdout
from html import escape
from urllib.parse import quote

from sim.base.files import write_text
from sim.version import VERSION

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
    from unittest.mock import patch

    with patch.dict(os.environ, COLUMNS=WIDTH), redirect_stdout(io.StringIO()) as said:
        os.environ.pop("FORCE_COLOR", None)
        show()
    return "\n".join(line.rstrip() for line in said.getvalue().splitlines())
