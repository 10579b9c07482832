"""```{command} MODULE``` is replaced by what `python -m MODULE --help` says; ```{protocols}``` by the registry of protocols."""

from __future__ import annotations

from dataclasses import MISSING, fields
from importlib import import_module
from inspect import cleandoc

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Command(SphinxDirective):
    """A heading, and the help text of a command's parser."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        text = import_module(module).parser().format_help()
        return self.parse_text_to_nodes(f"## python -m {module}\n\n```text\n{text}```\n", allow_section_headings=True)


class Protocols(SphinxDirective):
    """Every protocol: its docstring, and its settings with their defaults."""

    def run(self) -> list[nodes.Node]:
        from sim.protocols import PROTOCOLS

        text = "\n".join(_of_protocol(name, found) for name, found in PROTOCOLS.items())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _of_protocol(name: str, protocol: type) -> str:
    text, _, arguments = cleandoc(protocol.__doc__ or "").partition("Args:")
    defaults = [f"`{f.name}={f.default}`" for f in fields(protocol) if f.default is not MISSING]
    settings = f"Settings and their defaults: {', '.join(defaults)}." if defaults else "It has no settings."
    meanings = f"\n```text\n{cleandoc(arguments)}\n```\n" if arguments else ""
    return f"## {name}\n\n{text.strip()}\n\n{settings}\n{meanings}"


def setup(app) -> dict:
    app.add_directive("command", Command)
    app.add_directive("protocols", Protocols)
    return {"parallel_read_safe": True}
