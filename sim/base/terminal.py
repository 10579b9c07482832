"""The surroundings of a command: streams that are closed or cannot show a character, and variables that libraries would choke on."""

from __future__ import annotations

import io
import os
import sys

SIZES = ("COLUMNS", "LINES")
LEAST = 20  # of a terminal's size: less is no terminal's, and rich would print a letter a line
STRICT = ("strict", "surrogateescape")  # Python's own choices, by which a character may raise; others are the user's


def prepare() -> None:
    """Make them usable. Pictures need no display, whatever MPLBACKEND says."""
    os.environ["MPLBACKEND"] = "agg"
    for name in SIZES:
        given = os.environ.get(name, "")
        if not (given.isascii() and given.isdecimal() and int(given[:9]) >= LEAST):
            os.environ.pop(name, None)
    if sys.stdout is None:
        sys.stdout = _in_place_of(1, os.O_RDONLY)  # which refuses what is written, as a full disk does
    if sys.stderr is None:
        sys.stderr = _in_place_of(2, os.O_WRONLY)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in STRICT:
        sys.stdout.reconfigure(errors="replace")


def _in_place_of(descriptor: int, mode: int) -> io.TextIOWrapper:
    """A stream for one that is closed. It takes the number too, or the next file that is opened would get what is printed."""
    number = os.open(os.devnull, mode)
    if number != descriptor and not _is_open(descriptor):
        os.dup2(number, descriptor)
        os.close(number)
        number = descriptor
    return os.fdopen(number, "w", encoding="utf-8", closefd=False)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
