"""Functions and classes as Markdown: signature and docstring."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes):$")
EXAMPLE = re.compile(r"((?:^>>> .*\n(?:(?!>>>|\n).+\n)*)+)", re.MULTILINE)
TOLD = re.compile(r"^(\*{0,2}[\w., *]+): (.*)$")


def member(path: str) -> str:
    """A function or a class: a heading with the signature, the docstring, and public methods and properties."""
    found = _found(path)
    called = not inspect.isclass(found) or not (
        issubclass(found, BaseException) or getattr(found, "_is_protocol", False)
    )
    parts = [f"### `{path}{_signature(found) if called else ''}`", prose(inspect.getdoc(found) or "")]
    if inspect.isclass(found):
        parts += map(_part, _parts(found))
    return "\n\n".join(part for part in parts if part)


def functions(path: str) -> str:
    """All public functions that a package offers, by name."""
    module = import_module(path)
    names = [name for name in dir(module) if not name.startswith("_") and inspect.isfunction(getattr(module, name))]
    return "\n\n".join(member(f"{path}.{name}") for name in names)


def prose(docstring: str) -> str:
    """A docstring of Google's form as Markdown: its sections are lists, its examples fences."""
    lines: list[str] = []
    section = ""
    for line in docstring.splitlines():
        if found := SECTION.match(line):
            section = found[1]
            lines += [line, ""]
        elif section and line.startswith("    "):
            lines.append(_item(line[4:]) if section != "Returns" else line.strip())
        else:
            section = section if not line else ""
            lines.append(line)
    return EXAMPLE.sub(r"```pycon\n\1```\n", "\n".join(lines) + "\n").strip()


def _item(line: str) -> str:
    told = None if line.startswith(" ") else TOLD.match(line)
    return f"- `{told[1]}`: {told[2]}" if told else f"  {line.strip()}"


def _found(path: str):
    for parts in range(path.count("."), 0, -1):
        module, *names = path.rsplit(".", path.count(".") - parts + 1)
        try:
            found = import_module(module)
        except ModuleNotFoundError:
            continue
        for name in names:
            found = getattr(found, name)
        return found
    raise LookupError(path)


def _signature(found) -> str:
    """Names and defaults; types are in the code."""
    signature = inspect.signature(found)
    parameters = [_untyped(one) for one in signature.parameters.values() if one.name not in ("self", "cls")]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


class _Shown(str):
    """A default that is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _untyped(parameter: inspect.Parameter) -> inspect.Parameter:
    default = parameter.default
    if "<" in repr(default):  # a function or a class has no text to type
        default = _Shown(default.__name__ if isinstance(default, type) else "...")
    return parameter.replace(
        annotation=inspect.Parameter.empty,
        default=default if parameter.default is not parameter.empty else parameter.empty,
    )


def _parts(found: type) -> list[tuple[str, object]]:
    """Public methods and properties of a class, and those that it inherits from a class of ours, in the order of the code."""
    own = {}
    for base in found.__mro__[::-1]:
        if base.__module__.split(".")[0] in ("sim", "real", "calibration"):
            own |= {name: one for name, one in vars(base).items() if not name.startswith("_")}
    kinds = (property, classmethod, staticmethod)
    return [(name, one) for name, one in own.items() if inspect.isfunction(one) or isinstance(one, kinds)]


def _part(part: tuple[str, object]) -> str:
    name, found = part
    called = getattr(found, "__func__", found)
    signature = "" if isinstance(found, property) else _signature(called)
    return f"#### `{name}{signature}`\n\n{prose(inspect.getdoc(called) or '')}".strip()
