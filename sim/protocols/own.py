"""A user's own protocol: a class named module:Class, and its settings."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, Field, fields, is_dataclass

from sim.base.errors import WrongSetting, nearest
from sim.base.home import installed
from sim.base.own import SOURCES, imported, sources
from sim.language.text import Text, kind_of, require
from sim.protocols.base import Protocol, protocol_of

COMMENT = re.compile(r"^ +(\w+): \w+ = [^#\n]+  # (.+)$", re.MULTILINE)  # behind a setting
OPTION = "--protocol"
KINDS = ("int", "float", "str", "bool")  # types of settings, which a command line and the header of a trace can hold


def find(name: str, ours: dict[str, type[Protocol]]) -> type[Protocol]:
    """The protocol of the class of texts that is called module:Class.

    Args:
        ours: the protocols that have a name without a module.

    Raises:
        WrongSetting: there is none, or none that can be run.
    """
    allowed = f"{', '.join(ours)}, or module:Class of your own"
    found = imported(OPTION, name, allowed + nearest(name, ours))
    if not (isinstance(found, type) and issubclass(found, Text) and Text in found.__mro__[1:]):
        raise WrongSetting(OPTION, name, allowed)
    if not found.__module__.startswith(installed("sim.texts")):
        SOURCES.update(sources(found))
        _check(found, name, ours)
    return protocol_of(found)


def _check(found: type[Text], name: str, ours: dict[str, type[Protocol]]) -> None:
    """Refuse a class whose settings could not be given, or whose name is another's.

    Raises:
        WrongSetting: naming what it lacks.
    """
    declared = [key for key, kind in vars(found).get("__annotations__", {}).items() if "ClassVar" not in str(kind)]
    decorated = is_dataclass(found) and (not declared or "__dataclass_fields__" in vars(found))
    require(decorated and found.__dataclass_params__.frozen, OPTION, name, "a class below @dataclass(frozen=True)")
    for setting in fields(found):
        kind = kind_of(setting) + " with init=False" * (not setting.init)
        require(kind in KINDS, OPTION, name, f"settings of type {', '.join(KINDS)}; {setting.name} is {kind}")
        of_all = setting.name in dir(Protocol) and not hasattr(Text, setting.name)
        require(not of_all, OPTION, name, f"another name than {setting.name} for a setting: all protocols have it")
    typed = any(setting.name == "name" for setting in fields(found))
    require(not typed, OPTION, name, "a name that is no setting: `name = ...`, without a type")
    free = isinstance(found.name, str) and found.name and found.name not in ours
    require(bool(free), OPTION, name, f"a name of its own; given {found.name!r}")


def about(of: type[Text]) -> str:
    """The docstring of a class of texts; what comments in its source say of settings stands under `Args:`."""
    said: dict[str, str] = {}
    for one in of.__mro__[::-1]:
        if "__dataclass_fields__" in vars(one):
            said |= {name: "" for name in said if f" {name}: " in (one.__doc__ or "")}
            said |= dict(COMMENT.findall(_source(one)))
    text, args, told = inspect.cleandoc(of.__doc__ or "").partition("Args:")
    lines = [f"    {one.name}: {said[one.name]}" for one in fields(of) if said.get(one.name)]
    return "\n".join([f"{text}Args:{told}" if args else f"{text}\n\nArgs:", *lines]) if lines else text + args + told


def _source(of: type) -> str:
    try:
        return inspect.getsource(of)
    except OSError:  # of a class that was typed
        return ""


def is_required(setting: Field) -> bool:
    """Whether a setting has no default."""
    return setting.default is MISSING and setting.default_factory is MISSING


def default_of(setting: Field) -> str:
    """The settings as text, name=default."""
    if is_required(setting):
        return f"{setting.name}=..."
    return f"{setting.name}={setting.default if setting.default_factory is MISSING else setting.default_factory()}"
