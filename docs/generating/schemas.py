"""The keys of a file that users write, from its pydantic model."""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc

from docstrings import called, described


def schema(path: str) -> str:
    """A table of keys: the type, default and meaning of each.

    Args:
        path: MODULE:CLASS of the model.
    """
    module, _, name = path.partition(":")
    model = getattr(import_module(module), name)
    meanings = described(model.__doc__ or "")
    lines = [f"### {name}", "", cleandoc(model.__doc__ or "").partition("\n")[0].replace("|", "\\|"), ""]
    lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key, field in model.model_fields.items():
        default = "required" if field.is_required() else _short(field.default)
        cells = (f"`{field.alias or key}`", _kind(field.annotation), default, meanings.get(key, ""))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _kind(annotation: object) -> str:
    said = called(annotation)
    return said if len(said) < 40 else "one of several"


def _short(default: object) -> str:
    text = "none" if default is None else str(default) or "empty"
    return text if len(text) < 30 else f"`{type(default).__name__}()`"
