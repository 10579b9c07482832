"""A user's own class, module:Class, and the places of its mistakes, which become one line."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from operator import attrgetter

from sim.base.errors import WrongSetting
from sim.base.home import PACKAGE, installed

LONGEST = 300  # characters of somebody else's complaint
SOURCES: set[str] = set()  # files of the classes that were found
MOVED = "; here import from trainsim.language, trainsim.texts, trainsim.laws or trainsim.base"
IMPORTING = (__file__, importlib.__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")


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
        if (here := os.getcwd()) not in sys.path and "" not in sys.path:
            sys.path.append(here)  # as the last: a console script does not search the current folder by itself
        return attrgetter(attribute)(importlib.import_module(module))
    except BaseException as error:  # whatever a module does as it is imported, to leave included
        raise WrongSetting(option, name, f"a class that can be imported ({_at_import(error)})") from error


def sources(own: type, base: type = object) -> set[str]:
    """The files of a class and of those that it derives from, as far as these derive from a base, but ours."""
    theirs = [c for c in own.__mro__ if issubclass(c, base) and not c.__module__.startswith(installed("sim."))]
    modules = [sys.modules.get(c.__module__) for c in theirs]
    return {file for module in modules if (file := getattr(module, "__file__", None))}


def place(error: BaseException, files: set[str] = SOURCES) -> str:
    """The place in a user's own files where an exception arose, as file:line; empty if there is none."""
    mine = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
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
    package = (error.name if isinstance(error, ImportError) else "") or ""
    return MOVED if PACKAGE and package.partition(".")[0] == "sim" else ""


def complaint(error: BaseException) -> str:
    """An exception in one line."""
    words = " ".join(str(error).split())[:LONGEST]
    if isinstance(error, ImportError | AttributeError | SyntaxError) and words:
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
