"""```{command} MODULE``` is replaced by what `python -m MODULE --help` says; ```{commands}``` and ```{protocols}``` by these registries."""

from __future__ import annotations

from dataclasses import MISSING, fields
from importlib import import_module
from inspect import cleandoc

from docstrings import described
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Command(SphinxDirective):
    """A heading, and the help text of a command's parser."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        parser = import_module(module).parser()
        typed = parser.prog if module.startswith("trainsim.") else f"python -m {module}"
        text = parser.format_help()
        return self.parse_text_to_nodes(f"## {typed}\n\n```text\n{text}```\n", allow_section_headings=True)


class Commands(SphinxDirective):
    """Names of `trainsim`, the module of each, and a line about it."""

    def run(self) -> list[nodes.Node]:
        from trainsim.commands import COMMANDS

        rows = [f"| `trainsim {name}` | `{one.module}` | {one.about} |" for name, one in COMMANDS.items()]
        return self.parse_text_to_nodes("\n".join(["| command | module | it does |", "|---|---|---|", *rows]))


class Protocols(SphinxDirective):
    """Every protocol: its docstring, and its settings with their defaults."""

    def run(self) -> list[nodes.Node]:
        from sim.protocols import PROTOCOLS

        text = "\n".join(_of_protocol(name, found) for name, found in PROTOCOLS.items())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _of_protocol(name: str, protocol: type) -> str:
    """A heading, the text of its docstring, and a line for each setting."""
    text = cleandoc(protocol.__doc__ or "")
    meanings = {name: said for base in protocol.__mro__[::-1] for name, said in described(base.__doc__ or "").items()}
    lines = [
        f"- `{setting.name}` ({setting.default}): {meanings.get(setting.name, '')}"
        for setting in fields(protocol)
        if setting.default is not MISSING
    ]
    said = "Settings, with their defaults:\n\n" + "\n".join(lines) if lines else "It has no settings."
    return f"## {name}\n\n{text.partition('Args:')[0].strip()}\n\n{said}\n"


def setup(app) -> dict:
    app.add_directive("command", Command)
    app.add_directive("commands", Commands)
    app.add_directive("protocols", Protocols)
    return {"parallel_read_safe": True}
