"""Errors for users: the message of a wrong setting has its name, the given value and the allowed values."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable

LONGEST = 300  # characters of what was given
NEAR = 0.5  # of two names: the share of letters that they have in common, in order
# Characters that move a terminal's cursor, colour it or turn the direction of text: C0 and C1, separators, bidirectional ones.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""A name that may be printed: its control characters are escaped, as Python writes them.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


class Default:
    """A value that nobody gave, for complaints about it.

    >>> str(WrongSetting("--workers", Default(3), "at most 2"))
    '--workers: given nothing, which means 3; allowed: at most 2'
    """

    def __init__(self, value: object):
        self.value = value

    def __repr__(self):
        return f"nothing, which means {self.value!r}"


class WrongSetting(ValueError):
    """A setting that cannot be used; commands print it on one line and exit with 2.

    Args:
        setting: the option, or the file and key, as the user wrote it.
        given: what was given; None if nothing was.
        allowed: what would have been accepted.
    """

    def __init__(self, setting: str, given: object, allowed: str):
        self.setting, self.given, self.allowed = setting, given, allowed
        found = "missing; needed" if given is None else f"given {_shown(given)}; allowed"
        super().__init__(f"{_line(setting)}: {found}: {_line(allowed)}")


def _line(text: str) -> str:
    return printable(" ".join(text.split()))


def _shown(given: object) -> str:
    """The value as Python writes it, shortened; a number of an array as a number."""
    try:
        text = repr(float(given) if isinstance(given, float) else given)
    except ValueError:  # an integer of more digits than Python writes
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def nearest(given: object, known: Iterable[object], most: int = 1) -> str:
    """The known names that were probably meant, as a question to add to a refusal; empty if none is near.

    >>> nearest("abm", ["amb", "fmb"]), nearest("abm", ["amb", "fmb", "abc"], 2)
    (' (did you mean amb?)', ' (did you mean amb or abc?)')
    """
    names = {str(name).lower(): str(name) for name in known}
    found = [names[near] for near in difflib.get_close_matches(str(given).lower(), names, n=most, cutoff=NEAR)]
    return f" (did you mean {' or '.join(found)}?)" if found else ""


OTHERWISE = {  # pydantic's complaints, in a file's words
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "a table"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    "string_type": "text",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "an integer"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
}


class WrongValue(WrongSetting):
    """A value that an object of ours cannot have, which a program gives."""


class RunFailed(RuntimeError):
    """A run that started and could not be finished; the message names the rank. Commands exit with 1."""


class WrongText(RunFailed):
    """A protocol's text that does what no world can run.

    Args:
        message: what it does.
        place: where, as file:line, if it is known here.
    """

    def __init__(self, message: str, place: str = ""):
        self.place = place
        super().__init__(message)


def of_system(error: OSError) -> str:
    """The system's own message, without a library's words around it."""
    return os.strerror(error.errno) if error.errno else str(error)


def from_validation(source: str, error, model=None) -> WrongSetting:
    """The first complaint of a pydantic ValidationError as a WrongSetting about `source`.

    Args:
        source: the file; empty for options.
        model: the pydantic model of the whole of it, which knows the allowed keys.
    """
    first = error.errors()[0]
    about = first.get("ctx", {})
    cause = about.get("error")
    where = ".".join(str(part) for part in first["loc"]) or getattr(cause, "setting", "")
    place = ": ".join(part for part in (source, where) if part)
    if isinstance(cause, WrongSetting):
        return WrongSetting(place, cause.given, cause.allowed)
    allowed = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if kind := about.get("discriminator", "").strip("'"):  # the key that says which of several tables it is
        tag = first["input"].get(kind) if isinstance(first["input"], dict) else None
        return WrongSetting(f"{place}: {kind}", tag, about.get("expected_tags", "this key").replace("'", ""))
    if first["type"] in OTHERWISE:
        allowed = OTHERWISE[first["type"]]
    if first["type"] == "missing":
        return WrongSetting(place, None, "this key")
    if first["type"] == "extra_forbidden":
        from sim.base.models import allowed_keys

        return WrongSetting(place, first.get("input"), allowed_keys(model, first["loc"]) if model else "no such key")
    return WrongSetting(place, first.get("input"), allowed)
