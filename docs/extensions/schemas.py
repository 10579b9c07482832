"""```{schema} MODULE:CLASS``` is replaced by the keys of a file that users write, from its pydantic model."""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Schema(SphinxDirective):
    """A table of keys: what each is, its type, range and default."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].partition(":")
        model = getattr(import_module(module), name)
        described = _described(model.__doc__ or "")
        lines = [f"### {name}", "", cleandoc(model.__doc__ or "").partition("\n")[0].replace("|", "\\|"), ""]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        for key, field in model.model_fields.items():
            default = "required" if field.is_required() else _short(field.default)
            meaning = described.get(key, "")
            cells = (f"`{field.alias or key}`", _type(field.annotation), default, meaning)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def _described(text: str) -> dict[str, str]:
    """What the `Args:` of a docstring say of each name; several may share a line."""
    found, open_names = {}, []
    for line in cleandoc(text).partition("Args:")[2].splitlines():
        head, colon, rest = line.strip().partition(": ")
        names = [name.strip() for name in head.split(",")]
        if line.startswith("    ") and not line.startswith("     ") and colon and all(n.isidentifier() for n in names):
            open_names = names
            found |= dict.fromkeys(names, rest)
        else:
            found |= {name: f"{found[name]} {line.strip()}".strip() for name in open_names}
    return found


def _type(annotation: object) -> str:
    text = getattr(annotation, "__name__", None) if isinstance(annotation, type) else str(annotation)
    for longer in ("typing.", "sim.model.costs.", "sim.platform.cluster.", "sim.base.ranges.", "sim."):
        text = text.replace(longer, "")
    return f"`{text}`" if len(text) < 60 else "see the text"


def _short(default: object) -> str:
    text = "none" if default is None else str(default) or "empty"
    return text if len(text) < 30 else f"`{type(default).__name__}()`"


def setup(app) -> dict:
    app.add_directive("schema", Schema)
    return {"parallel_read_safe": True}
