"""The table of commands, the help text of each, and all protocols."""

from __future__ import annotations

import os
from dataclasses import MISSING, fields
from importlib import import_module
from unittest.mock import patch

from docstrings import described

from trainsim.commands import COMMANDS

COLUMNS = "84"  # of help texts, as wide on every terminal


def commands() -> str:
    """Names of `trainsim`, the module of each, and a line about it."""
    rows = [f"| `trainsim {name}` | `{one.module}` | {one.about} |" for name, one in COMMANDS.items()]
    return "\n".join(["| command | module | it does |", "|---|---|---|", *rows])


def helps() -> str:
    """Every command: a heading, and the help text of its parser."""
    with patch.dict(os.environ, COLUMNS=COLUMNS):
        return "\n\n".join(_help(one.module) for one in COMMANDS.values())


def _help(module: str) -> str:
    parser = import_module(module).parser()
    typed = parser.prog if module.startswith("trainsim.") else f"python -m {module}"
    return f"## {typed}\n\n```text\n{parser.format_help()}```"


def protocols() -> str:
    """Every protocol: its docstring, and its settings with their defaults."""
    from sim.protocols import PROTOCOLS

    return "\n".join(_of_protocol(name, found) for name, found in PROTOCOLS.items())


def _of_protocol(name: str, protocol: type) -> str:
    """A heading, the text of its docstring, and a line for each setting."""
    from sim.protocols.own import about

    text = about(protocol.text_class)
    meanings = {
        name: said for base in protocol.text_class.__mro__[::-1] for name, said in described(base.__doc__ or "").items()
    }
    meanings |= described(text)
    lines = [
        f"- `{setting.name}` ({setting.default}): {meanings.get(setting.name, '')}"
        for setting in fields(protocol)
        if setting.default is not MISSING
    ]
    said = "Settings, with their defaults:\n\n" + "\n".join(lines) if lines else "It has no settings."
    return f"## {name}\n\n{text.partition('Args:')[0].strip()}\n\n{said}\n"
