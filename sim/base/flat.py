"""Objects of JSON as rows: a dotted path and a text for each value."""

from __future__ import annotations

from collections.abc import Iterator


def flattened(table: dict, path: str = "") -> Iterator[tuple[str, str]]:
    """Dotted paths of everything in a JSON object, and the values as text; what is null is left out."""
    for name, value in table.items():
        items = {str(i): item for i, item in enumerate(value)} if isinstance(value, list) else value
        if isinstance(items, dict):
            yield from flattened(items, f"{path}{name}.")
        elif value is not None:
            yield f"{path}{name}", str(value)
