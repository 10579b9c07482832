"""Files that other programs and launchers wrote: packed or not, and lines with what a launcher has put around them."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from contextlib import suppress
from itertools import chain
from pathlib import Path

from sim.base.errors import WrongSetting
from sim.base.files import reading

PACKED = b"\x1f\x8b"
LONGEST_EVENT = 1000  # characters, and more than any of a trace has that may lack its end
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
OF_RANK = re.compile(  # mpirun --tag-output; srun -l; mpiexec -prepend-rank, torchrun
    r"\s*(?:\[(?:[^\[\]]*@)?\d+,(\d{1,6})\](?:<std\w*>)?:?|(\d{1,6}):\s|\[(?:rank|default)?(\d{1,6})\]:?)"
)
OF_CONTAINER = ("log", "message", "msg")  # keys of a line of JSON: docker's and others'


def content(path: Path, what: str, allowed: str, most_bytes: int, less: str = "") -> bytes:
    """What a file has, unpacked if it is packed by gzip.

    Args:
        what: the option that names the file.
        allowed: the files that it takes, for complaints.
        less: how to make a file smaller.

    Raises:
        WrongSetting: no such file, one that is packed and cut, or one that is larger than `most_bytes`.
    """
    too_large = WrongSetting(what, str(path), f"{allowed}, of at most {most_bytes // 2**20} MiB{less}")
    try:
        with reading(what, path), open(path, "rb") as raw:
            if os.fstat(raw.fileno()).st_size > most_bytes:
                raise too_large
            packed = raw.read(2) == PACKED
            raw.seek(0)
            with gzip.open(raw) if packed else raw as file:
                found = file.read(most_bytes + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile, WrongSetting) as error:
        if isinstance(error, WrongSetting) and not isinstance(error.__cause__, gzip.BadGzipFile):
            raise
        raise WrongSetting(what, str(path), f"{allowed}, whole") from error
    if len(found) > most_bytes:
        raise too_large
    return found


def trace_events(path: Path, what: str, allowed: str, most_bytes: int, less: str = "", open_end: bool = False) -> dict:
    """The table of a file in the Trace Event Format (Google, 2016), with a list `traceEvents`.

    Args:
        what, allowed, most_bytes, less: see `content`.
        open_end: whether the file may lack its end.

    Raises:
        WrongSetting: see `content`; or no such table.
    """
    text, why = content(path, what, allowed, most_bytes, less).decode(errors="replace"), ""
    begins = max(0, len(text) - LONGEST_EVENT)
    ends = [begins + found.end() for found in re.finditer(r"\}", text[begins:])] if open_end else []
    found = None
    try:
        for whole in chain([text], (text[:end] + "]" for end in reversed(ends))):
            try:
                found = json.loads(whole, strict=False)
                break
            except ValueError as error:  # or that was the end of something within an event
                why = f", whole ({' '.join(str(error).split())[:80]})"
    except RecursionError:
        why = ", not nested so deeply"
    found = {"traceEvents": found} if isinstance(found, list) else found
    if not isinstance(found, dict) or not isinstance(found.get("traceEvents"), list):
        raise WrongSetting(what, str(path), f"{allowed}{why}")
    return found


def beginning(path: str | Path, most_bytes: int) -> bytes:
    """The first bytes of a file, unpacked if it is packed by gzip; none of one that cannot be read, whose reader says why."""
    with suppress(OSError, EOFError, zlib.error), open(path, "rb") as raw:
        packed = raw.read(2) == PACKED
        raw.seek(0)
        with gzip.open(raw) if packed else raw as file:
            return file.read(most_bytes)
    return b""


def lines(path: Path, what: str, allowed: str, most_bytes: int, ends: bool = False) -> list[str]:
    """The lines of a log, without colours, and with their ends if wanted; those that a container's log keeps as JSON are unwrapped.

    Raises:
        WrongSetting: see `content`.
    """
    text = COLOURS.sub("", content(path, what, allowed, most_bytes).decode(errors="replace"))
    return [_unwrapped(line) for line in text.splitlines(keepends=ends)]


def _unwrapped(line: str) -> str:
    if not line.startswith("{"):
        return line
    with suppress(ValueError, RecursionError):  # it only looks like JSON
        table = json.loads(line)
        said = next((table[key] for key in OF_CONTAINER if isinstance(table.get(key), str)), line)
        return said.rstrip("\r\n")
    return line


def speaker(line: str) -> str:
    """The rank that a launcher says has written a line; "" if it says none."""
    found = OF_RANK.match(line)
    return next((rank for rank in found.groups() if rank), "") if found else ""


def without_speaker(line: str) -> str:
    """The line without what a launcher has put before it."""
    found = OF_RANK.match(line)
    return line[found.end() :].lstrip() if found else line
