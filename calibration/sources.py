"""The sources of a fit or a check as they are named on a command line: FILE, or SOURCE=FILE, with what is its own behind commas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from calibration.importers import IMPORTERS
from calibration.importers.logs import beginning
from sim.base.errors import WrongSetting, nearest
from sim.base.ranges import MOST, MOST_RANKS, check_integer

TRACE, TIMELINE, STEPS, NCCL, TORCH, SCALING = "trace", "horovod-timeline", "steps", "nccl-tests", "torch", "scaling"
PROFILES = (TIMELINE, NCCL, TORCH, SCALING)  # sources of which files make a profile, without traces
KINDS = (TRACE, *IMPORTERS, *PROFILES)
CONTENTS = {  # by kind, the beginning of a file of that kind; the first that matches
    SCALING: re.compile(
        rb'(?i)(?:\xef\xbb\xbf)?(?:sep=.)?\s*(?=(?:[^\n]*[,;\t|])?[ "]*(?:hosts|nodes)[ "]*[,;\t|\r\n])'
        rb'(?:[^\n]*[,;\t|])?[ "]*(?:total[ _])?gpus(?:(?:[ _]per[ _]|/)(?:host|node))?[ "]*[,;\t|\r\n]'
    ),
    TORCH: re.compile(rb'.*"(?:schemaVersion|deviceProperties)"|.*ProfilerStep#', re.DOTALL),
    TIMELINE: re.compile(rb".*NEGOTIATE_", re.DOTALL),
    NCCL: re.compile(rb".*(?:\bbusbw\b|# *OSU |Benchmarking \w|#bytes +#iter|bits/sec\b|bits_per_second)", re.DOTALL),
}
BEGINNING = 2**16  # bytes
OWN = {"batch": MOST, "ranks": MOST_RANKS}  # what a source may say of itself, and the most of it


class Named(NamedTuple):
    """One source.

    Args:
        kind: one of KINDS.
        path: a file, or a folder.
        batch, ranks: of its run; None if they are those of the options.
    """

    kind: str
    path: str
    batch: int | None = None
    ranks: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} {Path(self.path).name}" + (f", batch {self.batch}" if self.batch else "")


def guessed(path: str) -> str:
    """The kind of a file that nobody named: by how it begins, or a table of steps; .jsonl, .parquet and folders are traces, or torch's."""
    if path.endswith((".jsonl", ".parquet")):
        return TRACE
    if Path(path).is_dir():
        first = next(iter(sorted(Path(path).glob("*.json*"))), None)
        return TORCH if first and guessed(str(first)) == TORCH else TRACE
    if not Path(path).exists():
        raise WrongSetting("TRACE", path, "a file or a folder that is there")
    begins = beginning(path, BEGINNING)
    return next((kind for kind, like in CONTENTS.items() if like.match(begins)), STEPS)


def parsed(texts: Sequence[str], kind: str | None = None) -> list[Named]:
    """The sources of a command line, such as links.txt or torch=traces/,batch=8.

    Args:
        kind: of those that do not say it; None if their contents say it.

    Raises:
        WrongSetting: an unknown kind, a number that cannot be, or a file that is there twice.
    """
    found = [_parsed(text, kind) for text in texts]
    paths = [Path(one.path).resolve() for one in found]
    for at, path in enumerate(paths):
        others = paths[:at] + paths[at + 1 :]
        if path in paths[:at] or not {*others}.isdisjoint(path.parents):
            raise WrongSetting("TRACE", found[at].path, "each file once, and none of a folder that is there whole")
    return found


def _parsed(text: str, kind: str | None) -> Named:
    before, equals, after = text.partition("=")
    if equals and before in KINDS:
        kind, text = before, after
    elif equals and not Path(text).exists() and "/" not in before and before.isidentifier():
        raise WrongSetting("TRACE", text, f"a file, or SOURCE=FILE of {', '.join(KINDS)}{nearest(before, KINDS)}")
    own: dict[str, int] = {}
    while (comma := text.rpartition(","))[1] and comma[2].partition("=")[0] in OWN and not Path(text).exists():
        name, _, value = comma[2].partition("=")
        if name in own:
            raise WrongSetting(f"{text}: {name}", value, "each once")
        check_integer(f"{text}: {name}", int(value) if value.isdecimal() else value, 1, OWN[name])  # type: ignore[arg-type]
        text, own[name] = comma[0], int(value)
    if not text:
        raise WrongSetting("TRACE", f"{kind}=", "the name of a file or a folder")
    if comma[1] and comma[2].partition("=")[1] and not Path(text).exists():
        raise WrongSetting(f"{comma[0]}: {comma[2].partition('=')[0]}", comma[2], f"{', '.join(OWN)}, each a number")
    return Named(kind or guessed(text), text, **own)


def groups(named: Sequence[Named], kind: str) -> list[list[Named]]:
    """The sources of a kind, those together that are of one run: of equal batches and ranks."""
    found: dict[tuple[int | None, int | None], list[Named]] = {}
    for one in named:
        if one.kind == kind:
            found.setdefault((one.batch, one.ranks), []).append(one)
    return list(found.values())
