"""The file of a trace of torch.profiler: its events, its steps, and whose it is."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from calibration.importers import logs
from sim.base.errors import WrongSetting
from sim.base.ranges import check_integer

SOURCE = "--from torch"
ALLOWED = "a trace of torch.profiler (export_chrome_trace), .json or .json.gz"
MOST_TEXT = 2**29  # bytes, unpacked: some twenty times as many in memory
LATEST = 1e18  # microseconds
STEP = re.compile(r"ProfilerStep#(\d{1,12})")
RANK_OF_NAME = re.compile(r"rank[-_.]?(\d{1,6})", re.IGNORECASE)
ON_CPU = {"cpu_op", "operator"}
MOST_RANKS = 10**5


class Event(NamedTuple):
    """One event of a trace, with its beginning and its end."""

    name: str
    start: float  # microseconds, as is `end`
    end: float
    args: dict


def read(path: Path) -> tuple[dict[str, list[Event]], list[tuple[int, Event]], int | None, int | None, str]:
    """What the trace of a rank has.

    Returns:
        Complete events by their category, in lower case; the steps in order, by number, of which each begins where the one before
        ended; the rank, and how many there are, None if nothing says it; the name of the first GPU, "" if there is none.

    Raises:
        WrongSetting: the file is no such trace, has fewer than two steps, or has impossible numbers.
    """
    table = logs.trace_events(path, SOURCE, ALLOWED, MOST_TEXT, ": profile fewer steps")
    kinds: dict[str, list[Event]] = {}
    for event in table["traceEvents"]:
        if isinstance(event, dict) and event.get("ph") == "X" and isinstance(event.get("cat"), str):
            kinds.setdefault(event["cat"].lower(), []).append(_event_of(event, str(path)))
    devices = table.get("deviceProperties")
    first = devices[0] if isinstance(devices, list) and devices else None
    device = str(first.get("name", ""))[:80] if isinstance(first, dict) else ""
    return kinds, _steps_of(kinds, str(path)), *_place_of(table, path), device


def _event_of(event: dict, path: str) -> Event:
    start, lasted = (_microseconds(event, name, path) for name in ("ts", "dur"))
    args = event.get("args")
    return Event(str(event.get("name", "")), start, start + lasted, args if isinstance(args, dict) else {})


def _microseconds(event: dict, name: str, path: str) -> float:
    value = event.get(name, 0 if name == "dur" else None)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
        raise WrongSetting(f"{path}: {str(event.get('name'))[:60]}", f"{name} {value!r:.20}", "microseconds")
    return value


def _steps_of(kinds: dict[str, list[Event]], path: str) -> list[tuple[int, Event]]:
    """The steps; fewer than two, one that is missing or there twice, or out of order, are refused."""
    named = [(int(found[1]), one) for one in kinds.get("user_annotation", ()) if (found := STEP.fullmatch(one.name))]
    if not named:
        named = [(int(m[1]), one) for kind in ON_CPU for one in kinds.get(kind, ()) if (m := STEP.fullmatch(one.name))]
    named.sort(key=lambda pair: (pair[1].start, pair[0]))
    numbers = [number for number, _ in named]
    if len(numbers) < 2 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        given = ", ".join(map(str, numbers[:6])) or "none"
        raise WrongSetting(f"{path}: steps", given, "two or more, one after another: call profiler.step() after each")
    for (_, before), (number, after) in pairwise(named):
        if not (before.start < before.end <= after.end and before.start < after.start):
            raise WrongSetting(
                f"{path}: steps", f"step {number} at {after.start:g} us", "steps that follow one another"
            )
    return named


def _place_of(table: dict, path: Path) -> tuple[int | None, int | None]:
    said = table.get("distributedInfo")
    said = said if isinstance(said, dict) else {}
    rank, world = said.get("rank"), said.get("world_size")
    for name, value, least in (("rank", rank, 0), ("world_size", world, 1)):
        if value is not None:
            check_integer(f"{path}: {name}", value, least, MOST_RANKS)
    if rank is not None and world is not None and rank >= world:
        raise WrongSetting(f"{path}: distributedInfo", f"rank {rank} of {world}", "a rank below the number of ranks")
    found = RANK_OF_NAME.search(path.name)
    return (int(found[1]) if rank is None and found else rank), world
