"""A user's own protocol: a class named module:Class; its mistakes become one line."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from dataclasses import MISSING, Field, fields, is_dataclass
from operator import attrgetter
from typing import get_origin

from sim.base.errors import WrongSetting
from sim.base.home import PACKAGE, installed
from sim.base.nearest import nearest
from sim.protocols.base import Protocol

KINDS = ("int", "float", "str", "bool")  # types of settings, which a command line and the header of a trace can hold
LONGEST = 300  # characters of somebody else's complaint
SOURCES: set[str] = set()  # files of the classes that were found
MOVED = "; here import from trainsim.protocols, trainsim.verbs, trainsim.laws or trainsim.base"
IMPORTING = (__file__, importlib.__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")


def find(name: str, ours: dict[str, type[Protocol]]) -> type[Protocol]:
    """The class that is called module:Class.

    Args:
        ours: the protocols that have a name without a module.

    Raises:
        WrongSetting: there is none, or none that can be run.
    """
    allowed = f"{', '.join(ours)}, or module:Class of your own{nearest(name, ours)}"
    found = imported("--protocol", name, allowed)
    if not (isinstance(found, type) and issubclass(found, Protocol)):
        raise WrongSetting("--protocol", name, f"{', '.join(ours)}, or module:Class of your own")
    if found not in ours.values():
        SOURCES.update(sources(found))
        _check(found, name, ours)
    return found


def imported(option: str, name: str, allowed: str):
    """The object called module:Class.

    Args:
        allowed: what a refusal lists if the name is none of that kind.

    Raises:
        WrongSetting: it is not, or cannot be imported.
    """
    module, colon, attribute = name.partition(":")
    if not (colon and module and attribute):
        raise WrongSetting(option, name, allowed)
    try:
        _look_here_too()
        return attrgetter(attribute)(importlib.import_module(module))
    except BaseException as error:  # whatever a module does as it is imported, to leave included
        raise WrongSetting(option, name, f"a class that can be imported ({_at_import(error)})") from error


def _look_here_too() -> None:
    """Add the current folder to the places of modules, as the last: a console script does not search it by itself."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


def _check(found: type[Protocol], name: str, ours: dict[str, type[Protocol]]) -> None:
    """Refuse a class whose settings could not be given, or whose name is another's.

    Raises:
        WrongSetting: naming what it lacks.
    """
    declared = [key for key, kind in vars(found).get("__annotations__", {}).items() if "ClassVar" not in str(kind)]
    undecorated = not is_dataclass(found) or (declared and "__dataclass_fields__" not in vars(found))
    if undecorated or not found.__dataclass_params__.frozen:
        raise WrongSetting("--protocol", name, "a class below @dataclass(frozen=True)")
    for setting in fields(found):
        if kind_of(setting) not in KINDS or not setting.init:
            allowed = f"settings of type {', '.join(KINDS)}; {setting.name} is {_said(setting)}"
            raise WrongSetting("--protocol", name, allowed)
    if "name" in found.__dataclass_fields__ and found.__dataclass_fields__["name"] in fields(found):
        raise WrongSetting("--protocol", name, "a name that is no setting: `name = ...`, without a type")
    if not isinstance(found.name, str) or not found.name or found.name in ours:
        raise WrongSetting("--protocol", name, f"a name of its own; given {found.name!r}")


def kind_of(setting: Field) -> str:
    """The type of a setting by its name, without `| None`."""
    kind = setting.type if isinstance(setting.type, str) else _said(setting)
    return kind.removesuffix(" | None").strip()


def _said(setting: Field) -> str:
    """A setting's type as it was written, or nearly."""
    kind = setting.type
    said = kind.__name__ if isinstance(kind, type) and get_origin(kind) is None else str(kind)
    return said if setting.init else f"{said} with init=False"


def is_required(setting: Field) -> bool:
    """Whether a setting has no default."""
    return setting.default is MISSING and setting.default_factory is MISSING


def default_of(setting: Field) -> str:
    """The settings as text, name=default."""
    if is_required(setting):
        return f"{setting.name}=..."
    return f"{setting.name}={setting.default if setting.default_factory is MISSING else setting.default_factory()}"


def sources(protocol: type[Protocol]) -> set[str]:
    """The files of a class and of those that it derives from, but ours."""
    modules = [
        sys.modules.get(c.__module__) for c in protocol.__mro__ if not c.__module__.startswith(installed("sim."))
    ]
    return {file for module in modules if (file := getattr(module, "__file__", None))}


def place(error: BaseException) -> str:
    """The place in a user's own files where an exception arose, as file:line; empty if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if frame.filename in SOURCES]
    return f"{os.path.basename(mine[-1].filename)}:{mine[-1].lineno}" if mine else ""


def _at_import(error: BaseException) -> str:
    """The error of a module when it was imported, and its place: the last line that is no library's, if there is one."""
    import sysconfig

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in IMPORTING]
    libraries = tuple(map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
    frames = [frame for frame in frames if not frame.filename.startswith(libraries)] or frames
    said = complaint(error) + _moved(error)
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: {said}" if frames else said


def _moved(error: BaseException) -> str:
    """Words for a file that imports from the source tree's `sim`, where a wheel is installed."""
    is_sim = isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "sim"
    return MOVED if is_sim and PACKAGE else ""


def complaint(error: BaseException) -> str:
    """An exception in one line."""
    words = " ".join(str(error).split())[:LONGEST]
    if isinstance(error, ImportError | AttributeError | SyntaxError) and words:
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
