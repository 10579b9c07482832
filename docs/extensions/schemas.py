"""```{schema} MODULE:CLASS``` is replaced by the keys of a file that users write, from its pydantic model."""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc

from docstrings import called, described
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Schema(SphinxDirective):
    """A table of keys: what each is, its type, range and default."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].partition(":")
        model = getattr(import_module(module), name)
        meanings = described(model.__doc__ or "")
        lines = [f"### {name}", "", cleandoc(model.__doc__ or "").partition("\n")[0].replace("|", "\\|"), ""]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        for key, field in model.model_fields.items():
            default = "required" if field.is_required() else _short(field.default)
            meaning = meanings.get(key, "")
            cells = (f"`{field.alias or key}`", _kind(field.annotation), default, meaning)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def _kind(annotation: object) -> str:
    said = called(annotation)
    return said if len(said) < 40 else "one of several"


def _short(default: object) -> str:
    text = "none" if default is None else str(default) or "empty"
    return text if len(text) < 30 else f"`{type(default).__name__}()`"


def setup(app) -> dict:
    app.add_directive("schema", Schema)
    return {"parallel_read_safe": True}
